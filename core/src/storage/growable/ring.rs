//! The ready keys: a queue in segments, which grows without a copy of what it holds.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::mem;

/// How many slot numbers a segment holds at most: 4 KiB of them.
const LEN: usize = 1024;

/// Slot numbers, first in, first out.
#[derive(Debug)]
pub(super) struct Ring {
    /// The first segment. While the ring is not empty, it holds the first number.
    head: Vec<u32>,
    /// Where the first number is in `head`. Those before it have left.
    first: usize,
    /// The segments between the first and the last. All of them are full.
    middle: VecDeque<Vec<u32>>,
    /// The last segment.
    tail: Vec<u32>,
    len: usize,
    /// Segments that are not in use.
    spare: Vec<Vec<u32>>,
}

impl Ring {
    pub(super) const fn new() -> Self {
        Self {
            head: Vec::new(),
            first: 0,
            middle: VecDeque::new(),
            tail: Vec::new(),
            len: 0,
            spare: Vec::new(),
        }
    }

    /// Makes room for `additional` more numbers. O(additional).
    pub(super) fn reserve(&mut self, additional: usize) {
        let segments = additional.div_ceil(LEN);
        self.middle.reserve(segments);
        for _ in self.spare.len()..segments {
            self.spare.push(Vec::with_capacity(LEN));
        }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(super) fn front(&self) -> Option<u32> {
        self.head.get(self.first).copied()
    }

    /// The number at a place, for checks. O(1).
    pub(super) fn get(&self, place: usize) -> Option<u32> {
        let in_head = self.head.len() - self.first;
        let Some(place) = place.checked_sub(in_head) else {
            return self.head.get(self.first + place).copied();
        };
        let segment = self.middle.get(place / LEN).unwrap_or(&self.tail);
        let before_tail = self.middle.len().min(place / LEN) * LEN;
        segment.get(place - before_tail).copied()
    }

    #[inline]
    pub(super) fn push_back(&mut self, number: u32) {
        if self.tail.len() == LEN {
            self.add_segment();
        }
        self.tail.push(number);
        self.len += 1;
        if self.len == 1 {
            self.refill();
        }
    }

    #[inline]
    pub(super) fn pop_front(&mut self) -> Option<u32> {
        let first = self.front()?;
        self.first += 1;
        self.len -= 1;
        if self.first == self.head.len() {
            self.refill();
        }
        Some(first)
    }

    /// Takes the first number out, without counting it as gone. O(1).
    pub(super) fn shift(&mut self) -> Option<u32> {
        self.settle();
        let first = self.front()?;
        self.first += 1;
        self.settle();
        Some(first)
    }

    /// Counts a number as gone that stays where it is, or that [`shift`](Self::shift) has taken.
    pub(super) fn uncount(&mut self) {
        self.len -= 1;
    }

    /// Exchanges the first segment, and the place of the first number in it.
    pub(super) fn swap_head(&mut self, (head, first): &mut (Vec<u32>, usize)) {
        mem::swap(&mut self.head, head);
        mem::swap(&mut self.first, first);
    }

    /// Moves on to the next segment if all numbers of the first one have left.
    pub(super) fn settle(&mut self) {
        if self.first == self.head.len() {
            self.refill();
        }
    }

    #[cold]
    fn add_segment(&mut self) {
        let segment = self.spare.pop();
        let segment = segment.unwrap_or_else(|| Vec::with_capacity(LEN));
        self.middle.push_back(mem::replace(&mut self.tail, segment));
    }

    /// Replaces a first segment whose numbers have all left.
    fn refill(&mut self) {
        self.head.clear();
        self.first = 0;
        match self.middle.pop_front() {
            Some(next) => self.spare.push(mem::replace(&mut self.head, next)),
            None => mem::swap(&mut self.head, &mut self.tail),
        }
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
