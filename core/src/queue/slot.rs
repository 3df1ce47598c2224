//! Questions about one slot, for the other files of the queue.

use core::hash::Hash;

use crate::id::SlotId;
use crate::limiter::RateLimiter;
use crate::metrics::Metrics;
use crate::priority::Priorities;
use crate::storage::{Phase, Slots, Storage};

use super::Queue;

impl<K: Eq + Hash, S: Storage, L: RateLimiter, M: Metrics> Queue<K, S, L, M> {
    pub(super) fn levels(&self, id: SlotId) -> <S::Priorities as Priorities>::KeyLevels {
        self.slots
            .slot(id)
            .map_or_else(Default::default, |slot| slot.meta.levels)
    }

    pub(super) fn is_active(&self, id: SlotId) -> bool {
        self.slots
            .slot(id)
            .is_some_and(|slot| slot.phase.is_active())
    }

    pub(super) fn is_idle_slot(&self, id: SlotId) -> bool {
        self.slots
            .slot(id)
            .is_some_and(|slot| slot.phase == Phase::Idle)
    }

    /// Whether the key will be handed out without another add or deadline.
    pub(super) fn is_queued(&self, id: SlotId) -> bool {
        self.slots
            .slot(id)
            .is_some_and(|slot| slot.phase.is_queued())
    }

    pub(super) fn is_record_only(&self, id: SlotId) -> bool {
        self.is_idle_slot(id) && !self.delays.has(id)
    }

    pub(super) fn requeues(&self, id: SlotId) -> u32 {
        self.slots
            .slot(id)
            .map_or(0, |slot| self.limiter.requeues(&slot.meta.record))
    }
}
