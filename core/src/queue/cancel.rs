//! Taking work back.

use core::borrow::Borrow;
use core::hash::Hash;

use crate::Instant;
use crate::id::SlotId;
use crate::limiter::RateLimiter;
use crate::lists::Lists;
use crate::metrics::Metrics;
use crate::outcome::{Effect, KeyState};
use crate::priority::KeyLevels;
use crate::storage::{Located, Phase, Slots, Storage};

use super::Queue;

impl<K: Eq + Hash, S: Storage, L: RateLimiter, M: Metrics> Queue<K, S, L, M> {
    /// Takes back the work of a key: it is no longer ready, dirty or delayed. O(log n).
    ///
    /// Returns what the key was, `None` if it was neither ready, active nor delayed: then nothing
    /// changes. A present run goes on. The failures of the key stay on record, until
    /// [`forget`](Self::forget). The other keys keep their order.
    ///
    /// After shutdown this works as before, and a drain ends if nothing is left.
    ///
    /// # Examples
    ///
    /// A node is deleted before a worker gets to it:
    ///
    /// ```
    /// use requeue_core::{Fixed, Instant, NoLimit, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<&str, Fixed<4>, NoLimit> = Queue::new(NoLimit);
    /// let _ = queue.add_many(["node-7", "node-8"], now, |_| {});
    ///
    /// assert!(queue.cancel(&"node-7", now).value.unwrap().ready);
    /// assert_eq!(queue.cancel(&"node-7", now).value, None);
    /// assert_eq!(queue.try_get(now).value.unwrap().key, "node-8");
    /// ```
    pub fn cancel<B>(&mut self, key: &B, now: Instant) -> Effect<Option<KeyState>>
    where
        K: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        let mut was = None;
        if let Located::Found(id) = self.locate(key, now)
            && !self.is_record_only(id)
        {
            was = self.state_of(id);
            self.cancel_slot(id);
        }
        self.effect(was)
    }

    /// Takes back the work of a key that has a slot. The key's `Drop` may run here, last.
    pub(super) fn cancel_slot(&mut self, id: SlotId) {
        let Some(slot) = self.slots.slot_mut(id) else {
            return;
        };
        let level = slot.meta.levels.queued();
        match slot.phase {
            Phase::Ready => {
                self.lists.remove_ready(id, level);
                return self.retire(id);
            }
            Phase::Dirty => {
                slot.phase = Phase::Active;
                self.dirty -= 1;
                self.lists.note_clean(level);
                self.report_depth(level);
            }
            Phase::Idle | Phase::Active => {}
        }
        if self.delays.remove(id).is_some() {
            self.metrics.delayed(self.delays.len());
        }
        self.release_if_idle(id);
    }
}
