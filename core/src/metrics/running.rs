//! The active runs in the order in which they began. From this the metrics know how long runs have
//! lasted, without visiting every slot. Owns the order and the sum of the starts; never begins or
//! ends a run.

use core::fmt;
use core::time::Duration;

use crate::Instant;
use crate::id::SlotId;
use crate::lists::{Link, Links, List, Lists};

/// What a queue keeps about its runs: [`Running`], or `()` if its metrics keep no times.
#[doc(hidden)]
pub trait KeepRunning: fmt::Debug {
    const EMPTY: Self;

    /// Adds the run of a slot, which must be in no list.
    fn begin(&mut self, lists: &mut impl Lists, id: SlotId, at: Instant);
    /// Removes the run of a slot.
    fn end(&mut self, lists: &mut impl Lists, id: SlotId, started: Instant);
    fn get(&self) -> Option<&Running>;
}

impl KeepRunning for () {
    const EMPTY: Self = ();

    #[inline]
    fn begin(&mut self, _: &mut impl Lists, _: SlotId, _: Instant) {}

    #[inline]
    fn end(&mut self, _: &mut impl Lists, _: SlotId, _: Instant) {}

    #[inline]
    fn get(&self) -> Option<&Running> {
        None
    }
}

/// The active slots, oldest run first. All operations are O(1).
#[doc(hidden)]
#[derive(Debug)]
pub struct Running {
    slots: List<u32>,
    /// The sum of all starts, in nanoseconds.
    starts: u128,
}

impl KeepRunning for Running {
    const EMPTY: Self = Self {
        slots: List::new(),
        starts: 0,
    };

    fn begin(&mut self, lists: &mut impl Lists, id: SlotId, at: Instant) {
        self.add(&mut SharedLinks(lists), id, at);
    }

    fn end(&mut self, lists: &mut impl Lists, id: SlotId, started: Instant) {
        self.remove(&mut SharedLinks(lists), id, started);
    }

    fn get(&self) -> Option<&Running> {
        Some(self)
    }
}

impl Running {
    pub(crate) fn add(&mut self, links: &mut impl Links<u32>, id: SlotId, at: Instant) {
        self.slots.push_back(links, id);
        self.starts += u128::from(at.as_nanos());
    }

    /// Removes a run. No effect if it is not here.
    pub(crate) fn remove(&mut self, links: &mut impl Links<u32>, id: SlotId, started: Instant) {
        let before = self.slots.len();
        self.slots.remove(links, id);
        if self.slots.len() < before {
            self.starts -= u128::from(started.as_nanos());
        }
    }

    pub(crate) fn oldest(&self) -> Option<SlotId> {
        self.slots.first()
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// The sum of all starts, in nanoseconds.
    pub(crate) fn starts(&self) -> u128 {
        self.starts
    }

    /// The total duration of all runs.
    pub(crate) fn sum(&self, now: Instant) -> Duration {
        let ends = self.slots.len() as u128 * u128::from(now.as_nanos());
        let sum = ends.saturating_sub(self.starts);
        let seconds = u64::try_from(sum / NANOS_PER_SECOND);
        seconds.map_or(Duration::MAX, |seconds| {
            Duration::new(seconds, (sum % NANOS_PER_SECOND) as u32)
        })
    }
}

const NANOS_PER_SECOND: u128 = 1_000_000_000;

/// The links of a queue's own lists. An active slot is in neither list.
struct SharedLinks<'a, L>(&'a mut L);

impl<L: Lists> Links<u32> for SharedLinks<'_, L> {
    fn link(&self, id: SlotId) -> Link<u32> {
        self.0.link(id)
    }

    fn set_link(&mut self, id: SlotId, link: Link<u32>) {
        self.0.set_link(id, link);
    }

    fn set_next(&mut self, id: SlotId, next: u32) {
        let link = self.link(id);
        self.set_link(id, Link { next, ..link });
    }

    fn set_previous(&mut self, id: SlotId, previous: u32) {
        let link = self.link(id);
        self.set_link(id, Link { previous, ..link });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::ConstDefault;
    use crate::lists::fixed::FixedLists;

    type Few = FixedLists<4, u8>;

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    #[test]
    fn the_oldest_run_is_the_first_whichever_ends() {
        let (mut lists, mut running) = (Few::DEFAULT, Running::EMPTY);
        for slot in 0..4 {
            running.begin(&mut lists, SlotId(slot), at(10 + u64::from(slot)));
        }
        running.end(&mut lists, SlotId(1), at(11));
        assert_eq!(running.oldest(), Some(SlotId(0)));
        running.end(&mut lists, SlotId(0), at(10));
        assert_eq!(running.oldest(), Some(SlotId(2)));
        assert_eq!(running.sum(at(20)).as_nanos(), 8 + 7);
        running.end(&mut lists, SlotId(1), at(11));
        assert_eq!(running.len(), 2, "a run that is not there is not removed");
    }

    /// As many runs as there can be, for as long as there is time.
    #[test]
    fn the_sum_saturates() {
        let (mut lists, mut running) = (Few::DEFAULT, Running::EMPTY);
        assert_eq!(running.sum(Instant::NEVER), Duration::ZERO);
        running.begin(&mut lists, SlotId(0), at(0));
        assert_eq!(running.sum(Instant::NEVER), Duration::from_nanos(u64::MAX));
        assert_eq!(running.sum(at(0)), Duration::ZERO);
        running.begin(&mut lists, SlotId(1), at(7));
        assert_eq!(running.sum(at(1)), Duration::ZERO, "the clock went back");
    }
}
