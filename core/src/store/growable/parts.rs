//! Vectors in parts, whose growth copies at most the first part. Owns the memory of the slots;
//! never moves a slot of a later part.

use alloc::vec::Vec;

/// A vector in parts of `LEN` items. The first part grows like any vector, which copies at most
/// `LEN` items. Each other part is allocated at once, and never copied.
///
/// The first part is a separate field, so that a small queue does not pay for the rest.
///
/// `LEN` is a power of two, for fast division.
#[derive(Debug)]
pub(super) struct Parts<T, const LEN: usize> {
    first: Vec<T>,
    /// Full parts, and after them at most one that has items and is not full.
    rest: Vec<Vec<T>>,
    len: usize,
}

impl<T, const LEN: usize> Parts<T, LEN> {
    pub(super) const fn new() -> Self {
        const { assert!(LEN.is_power_of_two()) }
        Self {
            first: Vec::new(),
            rest: Vec::new(),
            len: 0,
        }
    }

    #[inline]
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    // The rest is sliced at the item instead of indexed. Two indexed vectors are compiled into one
    // access of either, which costs 13 instructions per steady cycle.
    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<&T> {
        match self.first.get(index) {
            None => {
                let part = self.rest.get(of_rest::<LEN>(index))?;
                part.get(index % LEN..)?.first()
            }
            found => found,
        }
    }

    #[inline]
    pub(super) fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        match self.first.get_mut(index) {
            None => {
                let part = self.rest.get_mut(of_rest::<LEN>(index))?;
                part.get_mut(index % LEN..)?.first_mut()
            }
            found => found,
        }
    }

    /// Adds an item at the end. O(1) amortized; it copies up to `LEN` items.
    pub(super) fn push(&mut self, item: T) {
        if self.len == (self.rest.len() + 1) * LEN {
            self.rest.push(Vec::with_capacity(LEN));
        }
        let part = match self.rest.get_mut(of_rest::<LEN>(self.len)) {
            Some(part) => part,
            None => &mut self.first,
        };
        if part.len() == part.capacity() {
            // Grows by a quarter only, because slots are most of a queue's memory.
            part.reserve_exact((part.len() / 4 + 4).min(LEN - part.len()));
        }
        part.push(item);
        self.len += 1;
    }

    /// Makes room for `additional` more items. O(`additional`); it copies up to `LEN` items.
    pub(super) fn reserve(&mut self, additional: usize) {
        let wanted = self.len.saturating_add(additional);
        let first = wanted.min(LEN).saturating_sub(self.first.len());
        self.first.reserve_exact(first);
        let parts = wanted.div_ceil(LEN).saturating_sub(1);
        self.rest.reserve(parts.saturating_sub(self.rest.len()));
        for _ in self.rest.len()..parts {
            self.rest.push(Vec::with_capacity(LEN));
        }
    }
}

/// The index of an item's part among those after the first. Out of range if the item is in the
/// first.
#[inline]
const fn of_rest<const LEN: usize>(index: usize) -> usize {
    (index / LEN).wrapping_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(count: u32) -> Parts<u32, 8> {
        let mut parts = Parts::new();
        (0..count).for_each(|item| parts.push(item));
        parts
    }

    #[test]
    fn what_was_pushed_is_found_and_nothing_else() {
        for count in 0..40 {
            let mut parts = of(count);
            assert_eq!(parts.len(), count as usize);
            for index in 0..50 {
                let expected = (index < count).then_some(index);
                assert_eq!(parts.get(index as usize).copied(), expected);
                assert_eq!(parts.get_mut(index as usize).copied(), expected);
            }
        }
    }

    #[test]
    fn only_the_first_part_is_ever_copied() {
        let mut parts = of(8);
        let mut places = std::vec::Vec::new();
        for item in 8..40 {
            parts.push(item);
            if item % 8 == 0 {
                places.push(parts.rest.last().unwrap().as_ptr());
            }
        }
        let after = parts.rest.iter().map(|part| part.as_ptr());
        assert!(places.into_iter().eq(after));
        assert!(parts.rest.iter().all(|part| part.capacity() == 8));
    }

    #[test]
    fn what_is_reserved_is_there_in_exactly_as_many_parts() {
        for (items, additional) in [
            (0, 0),
            (0, 5),
            (3, 2),
            (3, 5),
            (3, 6),
            (8, 1),
            (9, 40),
            (20, 0),
        ] {
            let mut parts = of(items);
            parts.reserve(additional);
            let wanted = items as usize + additional;
            let room = |parts: &Parts<u32, 8>| {
                let rest = parts.rest.iter().map(Vec::capacity).sum::<usize>();
                parts.first.capacity() + rest
            };
            assert_eq!(parts.rest.len(), wanted.div_ceil(8).saturating_sub(1));
            let before = room(&parts);
            assert!(before >= wanted);
            (0..additional as u32).for_each(|item| parts.push(item));
            assert_eq!(room(&parts), before, "{items} and {additional}");
        }
    }
}
