//! Vectors in segments of a fixed length, which grow without copying. Owns the memory of items that
//! were set; never frees a segment before it is dropped.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use crate::array::{Array, ConstDefault};

/// A vector in segments of `LEN` items. A segment is allocated when one of its items is first set.
/// So growth costs at most one segment, even for an item far behind the others.
///
/// `LEN` is a power of two, for fast division.
#[derive(Debug)]
#[doc(hidden)]
pub struct Segments<T, const LEN: usize> {
    segments: Vec<Option<Box<[T; LEN]>>>,
}

impl<T: Clone, const LEN: usize> Segments<T, LEN> {
    pub(crate) const fn new() -> Self {
        const { assert!(LEN.is_power_of_two()) }
        Self {
            segments: Vec::new(),
        }
    }

    /// Whether no item was ever set.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    #[inline]
    pub(crate) fn get(&self, index: usize) -> Option<&T> {
        let segment = self.segments.get(index / LEN)?.as_ref()?;
        segment.get(index % LEN)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        let segment = self.segments.get_mut(index / LEN)?.as_mut()?;
        segment.get_mut(index % LEN)
    }

    /// `COUNT` adjacent items, if all are in one segment.
    #[inline]
    pub(crate) fn adjacent<const COUNT: usize>(&self, first: usize) -> Option<&[T; COUNT]> {
        let segment = self.segments.get(first / LEN)?.as_ref()?;
        segment.get(first % LEN..)?.first_chunk()
    }

    /// The item at an index. A new segment is filled with `unset`.
    #[inline]
    pub(crate) fn slot(&mut self, index: usize, unset: T) -> Option<&mut T> {
        if self.get(index).is_some() {
            return self.get_mut(index);
        }
        self.slot_of_new(index, unset)
    }

    #[cold]
    fn slot_of_new(&mut self, index: usize, unset: T) -> Option<&mut T> {
        let place = index / LEN;
        if self.segments.len() <= place {
            self.segments.resize_with(place + 1, || None);
        }
        if let Some(segment) = self.segments.get_mut(place) {
            // Not as an array, which would be moved here from the stack.
            *segment = vec![unset; LEN].try_into().ok();
        }
        self.get_mut(index)
    }
}

impl<T: Clone, const LEN: usize> ConstDefault for Segments<T, LEN> {
    const DEFAULT: Self = Self::new();
}

impl<T: Clone + ConstDefault, const LEN: usize> Array for Segments<T, LEN> {
    type Item = T;

    #[inline]
    fn get(&self, index: usize) -> Option<&T> {
        self.get(index)
    }

    #[inline]
    fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        self.get_mut(index)
    }

    #[inline]
    fn slot(&mut self, index: usize) -> Option<&mut T> {
        self.slot(index, T::DEFAULT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_is_found_and_the_rest_is_unset() {
        let mut items = Segments::<u32, 4>::new();
        assert_eq!(items.get(9), None);
        for index in [9, 2] {
            if let Some(item) = items.slot(index, 0) {
                *item = 7;
            }
        }
        assert_eq!(
            [2, 3, 9].map(|index| items.get(index).copied()),
            [Some(7), Some(0), Some(7)]
        );
        assert_eq!(
            [4, 12].map(|index| items.get_mut(index).copied()),
            [None, None]
        );
        assert!(
            items.segments[1].is_none(),
            "no segment is allocated that is not needed"
        );
    }

    #[test]
    fn adjacent_items_are_in_one_segment() {
        let mut items = Segments::<u32, 4>::new();
        for index in 0..8_u32 {
            if let Some(item) = items.slot(index as usize, 0) {
                *item = index;
            }
        }
        assert_eq!(items.adjacent(4), Some(&[4, 5, 6, 7]));
        assert_eq!(items.adjacent::<4>(3), None);
        assert_eq!(items.adjacent::<4>(8), None);
    }
}
