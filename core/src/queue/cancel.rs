//! Taking work back.

use core::borrow::Borrow;
use core::hash::Hash;

use crate::Instant;
use crate::id::SlotId;
use crate::limiter::RateLimiter;
use crate::metrics::Metrics;
use crate::outcome::KeyState;
use crate::storage::{Located, Phase, Slots, Storage};
use crate::work::Ticket;

use super::{Queue, Session};

impl<K: Eq + Hash, S: Storage, L: RateLimiter, M: Metrics> Session<'_, K, S, L, M> {
    /// Takes back the work of a key: it is no longer ready, dirty or delayed. O(log n).
    ///
    /// Returns what the key was, `None` if it was neither ready, active nor delayed: then nothing
    /// changes. A present run goes on, and [can ask](crate::Queue::is_cancelled). The failures of
    /// the key stay on record, until [`forget`](Self::forget). The other keys keep their order.
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
    /// let _ = queue.at(now).add_many(["node-7", "node-8"], |_| {});
    ///
    /// assert!(queue.at(now).cancel(&"node-7").unwrap().ready);
    /// assert_eq!(queue.at(now).cancel(&"node-7"), None);
    /// assert_eq!(queue.at(now).try_get().unwrap().key, "node-8");
    /// ```
    pub fn cancel<B>(&mut self, key: &B) -> Option<KeyState>
    where
        K: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        let Self { queue, now, .. } = self;
        let Located::Found(id) = queue.locate(key, *now) else {
            return None;
        };
        if queue.is_record_only(id) {
            return None;
        }
        let was = queue.state_of(id);
        queue.cancel_slot(id);
        was
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
    /// let _ = queue.at(now).add("lease-3");
    /// let _ = queue.at(now).add_at("lease-3", due);
    ///
    /// assert_eq!(queue.at(now).cancel_delay(&"lease-3"), Some(due));
    /// assert!(queue.at(now).state(&"lease-3").unwrap().ready, "it runs now, and only now");
    /// ```
    pub fn cancel_delay<B>(&mut self, key: &B) -> Option<Instant>
    where
        K: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        let Self { queue, now, .. } = self;
        let Located::Found(id) = queue.locate(key, *now) else {
            return None;
        };
        let due = queue.drop_delay(id)?;
        queue.release_if_idle(id);
        Some(due)
    }
}

impl<K: Eq + Hash, S: Storage, L: RateLimiter, M: Metrics> Queue<K, S, L, M> {
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
    /// let _ = queue.at(now).add("node-7");
    /// let work = queue.at(now).try_get().unwrap();
    /// assert!(!queue.is_cancelled(&work.ticket));
    /// let _ = queue.at(now).cancel(&"node-7");
    /// assert!(queue.is_cancelled(&work.ticket));
    /// ```
    pub fn is_cancelled(&self, ticket: &Ticket) -> bool {
        let slot = self.slots.slot(ticket.id);
        slot.is_some_and(|slot| slot.is_run_by(ticket) && slot.phase.is_cancelled())
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
