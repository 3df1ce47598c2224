//! Slots that are live no longer.

use core::hash::Hash;

use crate::Instant;
use crate::id::SlotId;
use crate::limiter::RateLimiter;
use crate::lists::Lists;
use crate::metrics::Metrics;
use crate::storage::{Phase, Slots, Storage};

use super::Queue;

impl<K: Eq + Hash, S: Storage, L: RateLimiter, M: Metrics> Queue<K, S, L, M> {
    /// Discards the oldest failure record. Returns the freed slot.
    #[cold]
    pub(super) fn drop_oldest_record(&mut self) -> Option<SlotId> {
        let id = self.lists.oldest_record()?;
        self.drop_record(id);
        Some(id)
    }

    /// Releases a slot that is live for its failures alone.
    pub(super) fn drop_record(&mut self, id: SlotId) {
        self.lists.discard_record(id);
        self.release_slot(id);
    }

    /// Releases a slot that has become idle, or lost its delay, unless it has another reason to be
    /// live. Comes last, because the key's `Drop` may run here.
    #[inline]
    pub(super) fn release_if_unused(&mut self, id: SlotId, has_failed: bool) {
        if self.delays.has(id) {
            return;
        }
        if !has_failed {
            self.release_slot(id);
            return;
        }
        self.lists.retain_record(id);
        if self.lists.records_len() > self.failure_records_max || self.slots.is_over_full() {
            let _ = self.drop_oldest_record();
        }
    }

    /// The key's `Drop` runs here, last.
    // Without a hint to inline it: a copy at each call would cost a board 80 bytes of flash.
    pub(super) fn release_slot(&mut self, id: SlotId) {
        self.lists.dismiss(id);
        self.slots.release(id);
    }

    /// [`release_if_unused`](Self::release_if_unused) for a slot that may still be ready or active.
    pub(super) fn release_if_idle(&mut self, id: SlotId) {
        let failed = self.slots.slot(id).map(|slot| {
            let idle = slot.phase == Phase::Idle;
            idle.then(|| !self.limiter.is_blank(&slot.meta.record, Instant::EPOCH))
        });
        if let Some(Some(has_failed)) = failed {
            self.release_if_unused(id, has_failed);
        }
    }
}
