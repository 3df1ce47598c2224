//! Deadlines that have passed: a bounded number of keys becomes ready with each operation.

use core::borrow::Borrow;
use core::hash::Hash;

use crate::Instant;
use crate::id::SlotId;
use crate::limiter::RateLimiter;
use crate::lists::Lists;
use crate::metrics::Metrics;
use crate::priority::KeyLevels;
use crate::storage::{Located, Slots, Storage};

use super::{Place, Queue};

impl<K: Eq + Hash, S: Storage, L: RateLimiter, M: Metrics> Queue<K, S, L, M> {
    /// Moves due keys to the ready list, in the order of their deadlines, and at most as many as
    /// the storage allows for one operation. Returns whether it moved as many: then there may be
    /// more, the backlog. Groups whose rates allow a run again come back in the same order.
    ///
    /// Every operation whose result could depend on it begins with this. `own` is the slot that the
    /// operation concerns, or [`SlotId::NONE`]. If it is due it is always moved, as the last of
    /// them at the latest, so that nothing an operation does or returns depends on the backlog.
    // Inlines only the check, to keep code small.
    #[inline(always)]
    pub(crate) fn release_due(&mut self, own: SlotId, now: Instant) -> bool {
        self.has_deadlines() && self.release_some(own, now)
    }

    #[inline(always)]
    pub(super) fn has_deadlines(&self) -> bool {
        !self.delays.is_empty() || self.lists.earliest().is_some()
    }

    #[inline(never)]
    pub(super) fn release_some(&mut self, own: SlotId, now: Instant) -> bool {
        let (clock, now) = (now, self.time_at(now));
        let may_be_due = self.delays.may_be_due(now) || self.lists.is_due(clock);
        may_be_due && self.release_at_most(own, now, clock)
    }

    /// The time by which deadlines pass: shutdown has stopped it, wherever the clock goes.
    #[inline(always)]
    pub(super) fn time_at(&self, now: Instant) -> Instant {
        if self.closed { Instant::NEVER } else { now }
    }

    #[inline(never)]
    fn release_at_most(&mut self, own: SlotId, now: Instant, clock: Instant) -> bool {
        for left in (0..u32::from(self.due_keys_max.get())).rev() {
            let preferred = if left == 0 { own } else { SlotId::NONE };
            if self.is_group_first(preferred, now, clock) {
                self.lists.come_due(clock);
                continue;
            }
            match self.delays.take_due(preferred, now) {
                Some((id, due)) => self.come_due(id, due),
                None => return false,
            }
        }
        true
    }

    /// Whether the deadline that comes next is that of a group. Shutdown does not stop the time of
    /// groups.
    #[inline(always)]
    fn is_group_first(&self, preferred: SlotId, now: Instant, clock: Instant) -> bool {
        if !S::Lists::BLOCKS || !self.lists.is_due(clock) {
            return false;
        }
        let is_key_earlier =
            self.delays.is_due(now) && self.delays.earliest() < self.lists.earliest();
        !is_key_earlier && !self.delays.has_passed(preferred, now)
    }

    /// Finds the slot of a key that an operation may change.
    #[inline]
    pub(super) fn locate<B>(&mut self, key: &B, now: Instant) -> Located<Place<K, S, L, M>>
    where
        K: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        let located = self.slots.locate(key);
        let _ = match located {
            Located::Found(id) => self.release_due(id, now),
            Located::Absent(_) => self.release_due(SlotId::NONE, now),
        };
        located
    }

    /// What a passed deadline does: an add at its time.
    pub(super) fn come_due(&mut self, id: SlotId, due: Instant) {
        let level = self.levels(id).delayed();
        let _ = self.mark(id, due, level);
        self.metrics.delayed(self.delays.len());
    }

    /// The first ready key, and no deadline of it has passed: if it was not the first before, its
    /// deadline has just made it ready or raised it. Goes on with the backlog until a key is ready:
    /// then as many steps as there are active keys whose own deadlines have passed.
    #[inline]
    pub(super) fn first_ready(&mut self, now: Instant) -> Option<SlotId> {
        let most = self.due_keys_max.get();
        while self.lists.catch_up(most) {}
        let first = self.first_released(now, S::Lists::first_ready);
        self.first_aged(now).or(first)
    }

    /// [`first_ready`](Self::first_ready), with the lists' own idea of the first key.
    #[inline]
    pub(super) fn first_released(
        &mut self,
        now: Instant,
        first_of: impl Fn(&S::Lists) -> Option<SlotId>,
    ) -> Option<SlotId> {
        if !self.has_deadlines() {
            return first_of(&self.lists);
        }
        let own = first_of(&self.lists).unwrap_or(SlotId::NONE);
        loop {
            let backlog = self.release_some(own, now);
            let first = first_of(&self.lists);
            if first.is_some() || !backlog {
                return first;
            }
        }
    }
}
