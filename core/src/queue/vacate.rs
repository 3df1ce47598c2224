//! Slots that are live no longer.

use core::hash::Hash;

use crate::Instant;
use crate::id::SlotId;
use crate::limiter::RateLimiter;
use crate::lists::Lists;
use crate::metrics::Metrics;
use crate::priority::Priorities;
use crate::storage::{Phase, Slots, Storage};

use super::Queue;

type Group<S> = <<S as Storage>::Priorities as Priorities>::Group;
type Seat<S> = <<S as Storage>::Lists as Lists>::Seat;

impl<K: Eq + Hash, S: Storage, L: RateLimiter, M: Metrics> Queue<K, S, L, M> {
    /// Discards the oldest failure record. Returns the freed slot.
    #[cold]
    pub(super) fn drop_oldest_record(&mut self) -> Option<SlotId> {
        let id = self.lists.oldest_record()?;
        self.drop_record(id);
        Some(id)
    }

    /// Discards the failure records of a group that has nothing else, if there is one, because work
    /// outranks history. Returns the place of the new key's group. O(n) in the records.
    #[cold]
    #[inline(never)]
    pub(super) fn seat_of_records(&mut self, group: &Group<S>, now: Instant) -> Option<Seat<S>> {
        let mut leaving = None;
        let mut next = self.lists.oldest_record();
        while let Some(id) = next {
            next = self.lists.record_after(id);
            let own = self.lists.group_of_records(id);
            if own.is_some_and(|own| *leaving.get_or_insert(own) == own) {
                self.drop_record(id);
            }
        }
        self.lists.seat(group, now)
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
