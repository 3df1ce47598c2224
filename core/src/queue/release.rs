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

use super::Queue;

impl<K: Eq + Hash, S: Storage, L: RateLimiter, M: Metrics> Queue<K, S, L, M> {
    /// Moves due keys to the ready list, in the order of their deadlines, and at most as many as
    /// the storage allows for one operation. Returns whether it moved as many: then there may be
    /// more, the backlog.
    ///
    /// Every operation whose result could depend on it begins with this. `own` is the slot that the
    /// operation concerns, or [`SlotId::NONE`]. If it is due it is always moved, as the last of
    /// them at the latest, so that nothing an operation does or returns depends on the backlog.
    // Inlines only the check, to keep code small.
    #[inline(always)]
    pub(crate) fn release_due(&mut self, own: SlotId, now: Instant) -> bool {
        !self.delays.is_empty() && self.release_some(own, now)
    }

    #[inline(never)]
    pub(super) fn release_some(&mut self, own: SlotId, now: Instant) -> bool {
        // Shutdown has stopped the time, wherever the clock goes.
        let now = if self.closed { Instant::NEVER } else { now };
        self.delays.may_be_due(now) && self.release_at_most(own, now)
    }

    #[inline(never)]
    fn release_at_most(&mut self, own: SlotId, now: Instant) -> bool {
        for left in (0..u32::from(self.release_max.get())).rev() {
            let preferred = if left == 0 { own } else { SlotId::NONE };
            match self.delays.take_due(preferred, now) {
                Some((id, due)) => self.come_due(id, due),
                None => return false,
            }
        }
        true
    }

    /// Finds the slot of a key that an operation may change.
    #[inline]
    pub(super) fn locate<B>(&mut self, key: &B, now: Instant) -> Located
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
        let most = self.release_max.get();
        while self.lists.catch_up(most, now) {}
        self.first_released(now, S::Lists::first_ready)
    }

    /// [`first_ready`](Self::first_ready), with the lists' own idea of the first key.
    #[inline]
    pub(super) fn first_released(
        &mut self,
        now: Instant,
        first_of: impl Fn(&S::Lists) -> Option<SlotId>,
    ) -> Option<SlotId> {
        let mut first = first_of(&self.lists);
        if !self.delays.is_empty() {
            let own = first.unwrap_or(SlotId::NONE);
            loop {
                let backlog = self.release_some(own, now);
                first = first_of(&self.lists);
                if first.is_some() || !backlog {
                    break;
                }
            }
        }
        first
    }
}
