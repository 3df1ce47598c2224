//! Slot numbers in segments, which grow without copying: the ready keys as a queue, the vacant
//! slots as a stack. Owns order and memory; never searches for a number.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::mem;

/// How many slot numbers a segment has: 4 KiB of them.
const LEN: usize = 1024;

/// Slot numbers, first in, first out.
// In this order, producers and workers write to different cache lines.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Ring {
    /// The last segment.
    tail: Vec<u32>,
    /// Unused segments.
    spare: Vec<Vec<u32>>,
    /// The first segment.
    head: Vec<u32>,
    /// How many numbers of the first segment have left.
    left: usize,
    /// How many counted numbers are not in the segments. While this is not zero, the ring shows no
    /// first number.
    hidden: usize,
    /// The segments between the first and the last. All of them are full.
    middle: VecDeque<Vec<u32>>,
}

/// The first segment of a ring whose numbers are hidden.
#[derive(Debug, Default)]
pub(crate) struct HiddenFront {
    head: Vec<u32>,
    left: usize,
}

impl HiddenFront {
    pub(crate) fn numbers(&self) -> &[u32] {
        self.head.get(self.left..).unwrap_or(&[])
    }
}

impl Default for Ring {
    fn default() -> Self {
        Self::new()
    }
}

impl Ring {
    pub(crate) const fn new() -> Self {
        Self {
            head: Vec::new(),
            left: 0,
            middle: VecDeque::new(),
            tail: Vec::new(),
            spare: Vec::new(),
            hidden: 0,
        }
    }

    /// Makes room for `additional` more numbers. O(additional).
    pub(crate) fn reserve(&mut self, additional: usize) {
        let segments = additional.div_ceil(LEN);
        self.middle.reserve(segments);
        for _ in self.spare.len()..segments {
            self.spare.push(Vec::with_capacity(LEN));
        }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.head.len() - self.left + self.middle.len() * LEN + self.tail.len() + self.hidden
    }

    #[inline]
    pub(crate) fn front(&self) -> Option<u32> {
        match self.head.get(self.left) {
            Some(&first) => Some(first),
            None if self.hidden > 0 => None,
            None => self.middle.front().unwrap_or(&self.tail).first().copied(),
        }
    }

    /// The number at a place, for checks. O(1).
    pub(crate) fn get(&self, place: usize) -> Option<u32> {
        let in_head = self.head.len() - self.left;
        let Some(place) = place.checked_sub(in_head) else {
            return self.head.get(self.left + place).copied();
        };
        match self.middle.get(place / LEN) {
            Some(segment) => segment.get(place % LEN).copied(),
            None => self.tail.get(place - self.middle.len() * LEN).copied(),
        }
    }

    #[inline]
    pub(crate) fn push_back(&mut self, number: u32) {
        if self.tail.len() == self.tail.capacity() {
            self.extend_tail();
        }
        self.tail.push(number);
    }

    #[inline]
    pub(crate) fn pop_front(&mut self) -> Option<u32> {
        if let Some(&first) = self.head.get(self.left) {
            self.left += 1;
            return Some(first);
        }
        self.pop_of_next()
    }

    /// Removes the last number. Only for a ring that is used as a stack.
    #[inline]
    pub(crate) fn pop_back(&mut self) -> Option<u32> {
        match self.tail.pop() {
            // Usually the stack is empty here, because its owner keeps the last number itself.
            None if self.middle.is_empty() => None,
            None => self.pop_of_previous(),
            last => last,
        }
    }

    /// How many counted numbers are not in the segments. Not zero while the numbers are hidden.
    pub(crate) fn hidden(&self) -> usize {
        self.hidden
    }

    /// Removes the first segment, which hides all numbers. The ring still counts as many of them as
    /// `counted` says. [`show`](Self::show) undoes that.
    pub(crate) fn hide(&mut self, counted: impl FnOnce(&HiddenFront) -> usize) -> HiddenFront {
        let front = HiddenFront {
            head: mem::take(&mut self.head),
            left: mem::take(&mut self.left),
        };
        self.hidden = counted(&front);
        front
    }

    pub(crate) fn show(&mut self, front: HiddenFront) {
        self.head = front.head;
        self.left = front.left;
        self.hidden = 0;
    }

    /// Makes room in the last segment, or begins another.
    #[cold]
    fn extend_tail(&mut self) {
        if self.tail.is_empty()
            && let Some(segment) = self.spare.pop()
        {
            self.tail = segment;
            return;
        }
        if self.tail.len() < LEN {
            let grown = (self.tail.len() * 2).clamp(4, LEN);
            self.tail.reserve_exact(grown - self.tail.len());
            return;
        }
        let segment = self.spare.pop();
        let segment = segment.unwrap_or_else(|| Vec::with_capacity(LEN));
        self.middle.push_back(mem::replace(&mut self.tail, segment));
    }

    /// Replaces a last segment whose numbers have all left, and keeps it for reuse. A stack that
    /// was once large frees the rest.
    #[inline(never)]
    fn pop_of_previous(&mut self) -> Option<u32> {
        let full = self.middle.pop_back()?;
        let empty = mem::replace(&mut self.tail, full);
        if self.spare.is_empty() {
            self.spare.push(empty);
        }
        self.tail.pop()
    }

    /// Replaces a first segment whose numbers have all left.
    #[inline(never)]
    fn pop_of_next(&mut self) -> Option<u32> {
        if self.hidden > 0 {
            return None;
        }
        self.head.clear();
        self.left = 0;
        match self.middle.pop_front() {
            Some(next) => self.spare.push(mem::replace(&mut self.head, next)),
            None => mem::swap(&mut self.head, &mut self.tail),
        }
        let first = self.head.first()?;
        self.left = 1;
        Some(*first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_leave_in_the_order_in_which_they_came() {
        let mut ring = Ring::new();
        let (mut next, mut expected) = (0, 0);
        for round in 0..40 {
            for _ in 0..round * 37 % 900 {
                ring.push_back(next);
                next += 1;
            }
            assert_eq!(ring.get(0), ring.front());
            for place in 0..ring.len() {
                assert_eq!(ring.get(place), Some(expected + place as u32));
            }
            for _ in 0..(round * 53 % 1100).min(next - expected) {
                assert_eq!(ring.pop_front(), Some(expected));
                expected += 1;
            }
        }
        assert!(next > 3 * LEN as u32, "several segments came and went");
        while let Some(first) = ring.pop_front() {
            assert_eq!(first, expected);
            expected += 1;
        }
        assert_eq!(
            (expected, ring.len(), ring.front(), ring.get(0)),
            (next, 0, None, None)
        );
    }

    #[test]
    fn the_last_number_leaves_first_and_large_stacks_free_their_memory() {
        let mut stack = Ring::new();
        for count in [3, 5 * LEN as u32 + 7, 2 * LEN as u32] {
            (0..count).for_each(|number| stack.push_back(number));
            for number in (0..count).rev() {
                assert_eq!(stack.pop_back(), Some(number));
            }
            assert_eq!((stack.pop_back(), stack.len()), (None, 0));
            assert!(stack.middle.len() + stack.spare.len() <= 1);
        }
    }

    #[test]
    fn segments_are_used_again() {
        let mut ring = Ring::new();
        ring.reserve(2 * LEN);
        for number in 0..20 * LEN as u32 {
            ring.push_back(number);
            if ring.len() > LEN {
                assert!(ring.pop_front().is_some());
            }
        }
        assert!(ring.middle.len() + ring.spare.len() <= 2);
    }
}
