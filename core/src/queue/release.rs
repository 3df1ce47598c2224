//! Deadlines that have passed: a bounded number of keys becomes ready with each operation.

use core::borrow::Borrow;
use core::hash::Hash;

use crate::Instant;
use crate::delay::Horizon;
use crate::id::SlotId;
use crate::limiter::RateLimiter;
use crate::lists::Lists;
use crate::metrics::Metrics;
use crate::priority::KeyLevels;
use crate::storage::{Located, Slots, Storage};

use super::Queue;

impl<K: Eq + Hash, S: Storage, L: RateLimiter, M: Metrics> Queue<K, S, L, M> {
    /// Moves due keys to the ready list, in the order of their deadlines, and at most as many as
    /// the storage allows for one operation. Returns whether more are due: the backlog.
    ///
    /// Every operation whose result could depend on it begins with this. While there is a backlog,
    /// an operation on a key [settles](Self::settle) that key before anything else.
    // Inlines only the check, to keep code small.
    #[inline(always)]
    pub(crate) fn release_due(&mut self, now: Instant) -> bool {
        !self.delays.is_empty() && self.release_some(now)
    }

    #[inline(never)]
    pub(super) fn release_some(&mut self, now: Instant) -> bool {
        let horizon = self.horizon(now);
        for _ in 0..self.release_max {
            match self.delays.pop_due(horizon) {
                Some((id, due)) => self.come_due(id, due),
                None => return false,
            }
        }
        self.delays.is_due(horizon)
    }

    /// Finds the slot of a key that an operation may change.
    #[inline]
    pub(super) fn locate<B>(&mut self, key: &B, now: Instant) -> Located
    where
        K: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        let located = self.slots.locate(key);
        let backlog = self.release_due(now);
        if let Located::Found(id) = located
            && backlog
        {
            self.settle(id, now);
        }
        located
    }

    /// Moves a key whose own deadline has passed to the ready list, ahead of those that are due
    /// before it, so that nothing an operation does or returns depends on the backlog.
    #[cold]
    pub(super) fn settle(&mut self, id: SlotId, now: Instant) {
        if self.delays.has_come(id, self.horizon(now))
            && let Some(due) = self.delays.remove(id)
        {
            self.come_due(id, due);
        }
    }

    /// What a passed deadline does: an add at its time.
    pub(super) fn come_due(&mut self, id: SlotId, due: Instant) {
        let level = self.levels(id).delayed();
        let _ = self.mark(id, due, level);
        self.metrics.delayed(self.delays.len());
    }

    /// Up to where deadlines have passed. Shutdown stops it: what has not come by then never does.
    #[inline]
    fn horizon(&self, now: Instant) -> Horizon {
        if self.closed {
            self.closed_horizon
        } else {
            Horizon::at(now)
        }
    }

    /// The first ready key. Goes on with the backlog until there is one: then as many steps as
    /// there are active keys whose own deadlines have passed.
    #[inline]
    pub(super) fn first_ready(&mut self, now: Instant, backlog: &mut bool) -> Option<SlotId> {
        loop {
            let first = self.lists.first_ready();
            if first.is_some() || !*backlog {
                return first;
            }
            *backlog = self.release_some(now);
        }
    }
}
