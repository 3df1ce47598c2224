//! Taking work back.

use core::borrow::Borrow;
use core::hash::Hash;

use crate::Instant;
use crate::id::SlotId;
use crate::limiter::RateLimiter;
use crate::metrics::Metrics;
use crate::outcome::{Effect, KeyState};
use crate::storage::{Located, Phase, Slots, Storage};
use crate::work::Ticket;

use super::Queue;

impl<K: Eq + Hash, S: Storage, L: RateLimiter, M: Metrics> Queue<K, S, L, M> {
    /// Takes back the work of a key: it is no longer ready, dirty or delayed. O(log n).
    ///
    /// Returns what the key was, `None` if it was neither ready, active nor delayed: then nothing
    /// changes. A present run goes on, and [can ask](Self::is_cancelled). The failures of the key
    /// stay on record, until [`forget`](Self::forget). The other keys keep their order.
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

    /// Returns whether the key of a run was cancelled since the run began. O(1).
    ///
    /// It stays so until the run ends, even if the key is added meanwhile: that makes another run,
    /// so this one may stop in any case. False if the run has ended.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_core::{Fixed, Instant, NoLimit, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<&str, Fixed<4>, NoLimit> = Queue::new(NoLimit);
    /// let _ = queue.add("node-7", now);
    /// let work = queue.try_get(now).value.unwrap();
    /// assert!(!queue.is_cancelled(&work.ticket));
    /// let _ = queue.cancel(&"node-7", now);
    /// assert!(queue.is_cancelled(&work.ticket));
    /// ```
    pub fn is_cancelled(&self, ticket: &Ticket) -> bool {
        let slot = self.slots.slot(ticket.id);
        slot.is_some_and(|slot| slot.is_run_by(ticket) && slot.phase.is_cancelled())
    }

    /// Takes back the deadline of a key. Returns it, `None` if the key is not delayed. O(log n).
    ///
    /// A key that is also ready or active stays so. A deadline that has passed is an add that has
    /// happened: there is nothing left to take back but with [`cancel`](Self::cancel).
    ///
    /// # Examples
    ///
    /// A lease is given up, so that it need not be renewed:
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue_core::{Fixed, Instant, NoLimit, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let due = now + Duration::from_secs(60);
    /// let mut queue: Queue<&str, Fixed<4>, NoLimit> = Queue::new(NoLimit);
    /// let _ = queue.add("lease-3", now);
    /// let _ = queue.add_at("lease-3", due, now);
    ///
    /// assert_eq!(queue.cancel_delay(&"lease-3", now).value, Some(due));
    /// assert!(queue.state(&"lease-3", now).value.unwrap().ready, "it runs now, and only now");
    /// ```
    pub fn cancel_delay<B>(&mut self, key: &B, now: Instant) -> Effect<Option<Instant>>
    where
        K: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        let mut due = None;
        if let Located::Found(id) = self.locate(key, now) {
            due = self.drop_delay(id);
            if due.is_some() {
                self.release_if_idle(id);
            }
        }
        self.effect(due)
    }

    /// Takes back the work of a key that has a slot. The key's `Drop` may run here, last.
    pub(super) fn cancel_slot(&mut self, id: SlotId) {
        let slot = self.slots.slot(id);
        match slot.map(|slot| slot.phase) {
            Some(Phase::Ready) => return self.retire(id),
            Some(phase) if phase.is_active() => self.cancel_run(id),
            _ => {}
        }
        let _ = self.drop_delay(id);
        self.release_if_idle(id);
    }

    pub(super) fn drop_delay(&mut self, id: SlotId) -> Option<Instant> {
        let due = self.delays.remove(id)?;
        self.note_change();
        self.metrics.delayed(self.delays.len());
        Some(due)
    }
}
