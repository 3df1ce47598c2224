//! Removes keys from the middle of the ring in bounded time.
//!
//! The ring does not know where a slot is. A removed number stays in it, and is *stale*. A getter
//! must not step over stale numbers, because there may be many in a row. So while there are stale
//! numbers, the first keys are in a list that is longer than their number.
//!
//! To keep it longer, a removal moves up to two numbers from the front of the ring to the list, and
//! a pop moves one. A stale number is dropped instead of moved. A removal from the ring adds one
//! stale number. A removal from the list, or a pop, shortens the list by one. Each move makes up
//! for one of these.
//!
//! So the list has a key while the ring has a stale number. Once the list is empty, the ring is as
//! before. Meanwhile the first segment of the ring is kept here, which *hides* the numbers: the
//! ring shows no first number, and its methods need not know about removals.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::mem;

use crate::id::SlotId;
use crate::lists::List;
use crate::ring::{HiddenFront, Ring};
use crate::segments::Segments;

use super::GrowableLinks;

/// The stale numbers of a ring, and the keys that were moved out of it.
#[derive(Debug)]
pub(super) struct Removals {
    /// The first ready keys. While there are any, the ring is hidden.
    front: List<u32>,
    /// The first segment of the ring while it is hidden.
    hidden: HiddenFront,
    /// How many numbers of each slot are stale. They are the first ones of that slot in the ring.
    stale: Segments<u32, 512>,
    stale_len: usize,
}

impl Default for Removals {
    fn default() -> Self {
        Self {
            front: List::new(),
            hidden: HiddenFront::default(),
            stale: Segments::new(),
            stale_len: 0,
        }
    }
}

impl Removals {
    pub(super) fn first(&self) -> Option<SlotId> {
        self.front.first()
    }

    /// Removes the first key, if the ring is hidden. O(1).
    pub(super) fn pop(&mut self, ring: &mut Ring, links: &mut GrowableLinks) -> Option<SlotId> {
        let first = self.front.pop_front(links)?;
        self.restore(ring, links);
        Some(first)
    }

    /// Removes a ready key that is not the first number of the ring. O(1).
    pub(super) fn remove(&mut self, ring: &mut Ring, links: &mut GrowableLinks, id: SlotId) {
        if self.front.contains(links, id) {
            self.front.remove(links, id);
        } else if let Some(stale) = self.stale.slot(id.index(), 0) {
            *stale += 1;
            self.stale_len += 1;
        }
        self.restore(ring, links);
    }

    /// Makes the list longer than the number of stale numbers, if there are any. Hides the ring
    /// while the list has a key.
    fn restore(&mut self, ring: &mut Ring, links: &mut GrowableLinks) {
        if ring.hidden() > 0 {
            ring.show(mem::take(&mut self.hidden));
        }
        for _ in 0..2 {
            if self.stale_len > 0 && self.front.len() <= self.stale_len {
                self.shift(ring, links);
            }
        }
        if self.front.len() > 0 {
            let more = self.front.len() - self.stale_len;
            self.hidden = ring.hide(|front| front.numbers().len() + more);
        }
    }

    fn shift(&mut self, ring: &mut Ring, links: &mut GrowableLinks) {
        let Some(number) = ring.pop_front() else {
            return;
        };
        let id = SlotId(number);
        match self.stale.get_mut(id.index()) {
            Some(stale) if *stale > 0 => {
                *stale -= 1;
                self.stale_len -= 1;
            }
            _ => self.front.push_back(links, id),
        }
    }

    /// The ready key at a place, for checks. O(n log n).
    pub(super) fn get(&self, ring: &Ring, links: &GrowableLinks, place: usize) -> Option<SlotId> {
        assert!(
            self.stale_len == 0 || self.stale_len < self.front.len(),
            "fewer stale numbers than keys before them"
        );
        let mut numbers = Vec::new();
        let mut next = self.front.first();
        for _ in 0..self.front.len() {
            numbers.extend(next);
            next = next.and_then(|id| self.front.after(links, id));
        }
        if let Some(id) = numbers.get(place) {
            return Some(*id);
        }
        let hidden = self.hidden.numbers().iter().copied();
        let shown = (0..).map_while(|place| ring.get(place));
        let mut stale = BTreeMap::new();
        let is_live = |number: &u32| {
            let left = stale
                .entry(*number)
                .or_insert_with(|| self.stale.get(*number as usize).copied().unwrap_or(0));
            let live = *left == 0;
            *left = left.saturating_sub(1);
            live
        };
        let mut live = hidden.chain(shown).filter(is_live);
        live.nth(place - numbers.len()).map(SlotId)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::vec::Vec;

    use crate::Instant;
    use crate::id::SlotId;
    use crate::lists::Lists;

    use super::super::GrowableLists;

    /// Numbers from a fixed seed: xorshift.
    struct Chance(u32);

    impl Chance {
        fn below(&mut self, end: usize) -> usize {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 17;
            self.0 ^= self.0 << 5;
            self.0 as usize % end
        }
    }

    #[test]
    fn the_order_is_as_if_nothing_had_been_there() {
        let mut chance = Chance(7);
        let mut lists = GrowableLists::default();
        let mut expected = VecDeque::new();
        let mut idle: Vec<u32> = (0..3000).collect();
        for round in 0..if cfg!(miri) { 5_000 } else { 200_000 } {
            // Now the ring grows, now it shrinks, over several segments.
            let grows = round / 10_000 % 2 == 0;
            match chance.below(if grows { 4 } else { 6 }) {
                0 | 1 if !idle.is_empty() => {
                    let id = idle.swap_remove(chance.below(idle.len()));
                    lists.push_ready(SlotId(id), 0, Instant::EPOCH);
                    expected.push_back(id);
                }
                2 | 4 if !expected.is_empty() => {
                    let place = chance.below(expected.len());
                    let id = expected.remove(place).unwrap();
                    lists.remove_ready(SlotId(id), 0);
                    idle.push(id);
                }
                3 | 5 if chance.below(2) == 0 => {
                    let first = expected.pop_front();
                    assert_eq!(lists.pop_ready(0, Instant::EPOCH).map(|id| id.0), first);
                    idle.extend(first);
                }
                _ => {}
            }
            assert_eq!(
                lists.first_ready().map(|id| id.0),
                expected.front().copied()
            );
            assert_eq!(lists.ready_len(), expected.len());
            if round % 5000 == 0 {
                let place = expected.len() / 2;
                let listed = lists.ready_at(place).map(|id| id.0);
                assert_eq!(listed, expected.get(place).copied());
            }
        }
    }

    #[test]
    fn a_long_row_of_removed_keys_is_never_passed_in_one_step() {
        const KEYS: u32 = 5000;
        let mut lists = GrowableLists::default();
        for id in 0..KEYS {
            lists.push_ready(SlotId(id), 0, Instant::EPOCH);
        }
        for id in 1..KEYS - 1 {
            lists.remove_ready(SlotId(id), 0);
            let removals = lists.removals().unwrap();
            assert!(removals.stale_len == 0 || removals.stale_len < removals.front.len());
        }
        assert_eq!(lists.pop_ready(0, Instant::EPOCH), Some(SlotId(0)));
        assert_eq!(lists.pop_ready(0, Instant::EPOCH), Some(SlotId(KEYS - 1)));
        assert_eq!(
            (lists.pop_ready(0, Instant::EPOCH), lists.ready_len()),
            (None, 0)
        );
        // Nothing stale is left, and the ring is in use again.
        assert_eq!(lists.removals().unwrap().stale_len, 0);
        lists.push_ready(SlotId(7), 0, Instant::EPOCH);
        assert_eq!(lists.pop_ready(0, Instant::EPOCH), Some(SlotId(7)));
    }
}
