//! Ending a queue without losing a key.

use core::hash::Hash;
use core::time::Duration;

use crate::Instant;
use crate::limiter::RateLimiter;
use crate::lists::Lists;
use crate::metrics::Metrics;
use crate::outcome::{Drain, Drained, Effect, Leftover, Wake};
use crate::priority::Marks;
use crate::slots::{Slots, Storage};

use super::{Queue, SlotId};

impl<K: Eq + Hash, S: Storage, L: RateLimiter, M: Metrics> Queue<K, S, L, M> {
    /// Takes no more keys. Keys that are ready, or become ready by being dirty, are still handed
    /// out; then getters are told that the queue is closed. Drains that are under way end. O(1).
    ///
    /// Reads `now` whatever [`needs_time`](Self::needs_time) says, as does
    /// [`shut_down_with_drain`](Self::shut_down_with_drain).
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_core::{Fixed, Getter, Instant, Next, NoLimit, Queue, Rejected};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<&str, Fixed<4>, NoLimit> = Queue::new(NoLimit);
    /// let _ = queue.add("node-7", now);
    /// let _ = queue.shut_down(now);
    /// assert!(queue.shutting_down());
    /// assert_eq!(queue.add("node-8", now).value, Err(Rejected::Closed("node-8")));
    ///
    /// // What was ready is still handed out.
    /// let work = queue.try_get(now).value.unwrap();
    /// let _ = queue.done(work.ticket, now);
    /// assert_eq!(queue.get(now, &mut Getter::new()).value, Next::Closed);
    /// ```
    pub fn shut_down(&mut self, now: Instant) -> Effect<()> {
        self.epoch = self.epoch.wrapping_add(1);
        self.close(now)
    }

    /// As [`shut_down`](Self::shut_down), but to be followed by waiting until the queue has
    /// drained: until [`drained`](Self::drained) says so. O(1).
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_core::{Drained, Fixed, Instant, NoLimit, Queue, Wake};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<&str, Fixed<4>, NoLimit> = Queue::new(NoLimit);
    /// let _ = queue.add("node-7", now);
    /// let drain = queue.shut_down_with_drain(now).value;
    ///
    /// let work = queue.try_get(now).value.unwrap();
    /// assert_eq!(queue.drained(&drain), Drained::Pending);
    /// // The last key that is completed wakes whoever waits for the drain.
    /// assert_eq!(queue.done(work.ticket, now).wake, Wake::All);
    /// assert_eq!(queue.drained(&drain), Drained::Complete);
    /// ```
    pub fn shut_down_with_drain(&mut self, now: Instant) -> Effect<Drain> {
        let Effect { wake, .. } = self.close(now);
        let epoch = self.epoch;
        Effect {
            value: Drain { epoch },
            wake,
        }
    }

    /// How a drain stands; [`Drained`] has an example. O(1).
    ///
    /// Delayed keys are not waited for: [`take_delayed`](Self::take_delayed) hands them back.
    pub fn drained(&self, drain: &Drain) -> Drained {
        if self.is_drained() {
            Drained::Complete
        } else if drain.epoch == self.epoch {
            Drained::Pending
        } else {
            Drained::Interrupted
        }
    }

    /// Whether the queue is shut down and nothing is ready, dirty or in work. O(1).
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_core::{Fixed, Instant, NoLimit, Queue};
    ///
    /// let mut queue: Queue<&str, Fixed<4>, _> = Queue::new(NoLimit);
    /// queue.add("node-7", Instant::EPOCH).value.unwrap();
    /// let _ = queue.shut_down(Instant::EPOCH);
    /// assert!(!queue.is_drained());
    ///
    /// let work = queue.try_get(Instant::EPOCH).value.unwrap();
    /// queue.done(work.ticket, Instant::EPOCH).value.unwrap();
    /// assert!(queue.is_drained());
    /// ```
    pub fn is_drained(&self) -> bool {
        self.closed && self.active == 0 && self.lists.ready_len() == 0
    }

    fn close(&mut self, now: Instant) -> Effect<()> {
        self.release_due(now);
        if !self.closed {
            self.closed = true;
            self.closed_at = now;
        }
        self.sleepers.all_woken();
        Effect {
            value: (),
            wake: Wake::All,
        }
    }
}

impl<K: Eq + Hash + Clone, S: Storage, L: RateLimiter, M: Metrics> Queue<K, S, L, M> {
    /// After shutdown: takes out one key that waits for a deadline, the earliest first. Nothing
    /// before shutdown. O(log n).
    ///
    /// A key that is ready or in work besides stays so.
    ///
    /// # Examples
    ///
    /// A service that restarts writes down what it still has to do:
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue_core::{Fixed, Instant, NoLimit, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<&str, Fixed<4>, NoLimit> = Queue::new(NoLimit);
    /// let _ = queue.add_after("lease-4", Duration::from_secs(90), now);
    /// let _ = queue.add_after("lease-3", Duration::from_secs(60), now);
    /// let _ = queue.shut_down(now);
    ///
    /// let mut to_do = Vec::new();
    /// while let Some(leftover) = queue.take_delayed(now) {
    ///     to_do.push((leftover.key, leftover.left.as_secs()));
    /// }
    /// assert_eq!(to_do, [("lease-3", 60), ("lease-4", 90)]);
    /// ```
    pub fn take_delayed(&mut self, now: Instant) -> Option<Leftover<K>> {
        if !self.closed {
            return None;
        }
        let id = self.delays.first()?;
        let mut leftover = self.leftover(id, self.marks(id).delayed())?;
        let (_, due) = self.delays.pop()?;
        if due.is_never() {
            leftover.left = Duration::MAX;
        } else {
            leftover.left = due.saturating_since(now);
        }
        self.metrics.delayed(self.delays.len());
        self.settle_idle(id);
        Some(leftover)
    }

    /// After shutdown: takes out one key that is ready, the first in line, before a worker gets it.
    /// A delay that it has besides goes with it. Nothing before shutdown. O(log n).
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_core::{Drained, Fixed, Instant, NoLimit, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<&str, Fixed<4>, NoLimit> = Queue::new(NoLimit);
    /// let _ = queue.add("node-7", now);
    /// let drain = queue.shut_down_with_drain(now).value;
    ///
    /// // The time for draining is over: nobody shall begin with it.
    /// assert_eq!(queue.take_ready().value.unwrap().key, "node-7");
    /// assert_eq!(queue.drained(&drain), Drained::Complete);
    /// ```
    pub fn take_ready(&mut self) -> Effect<Option<Leftover<K>>> {
        let leftover = self.take_ready_quietly();
        self.effect(leftover)
    }

    fn take_ready_quietly(&mut self) -> Option<Leftover<K>> {
        if !self.closed {
            return None;
        }
        let id = self.lists.first_ready()?;
        let mut level = self.marks(id).queued();
        if self.delays.has(id) {
            // The delay goes with the key.
            level = level.max(self.marks(id).delayed());
        }
        let leftover = self.leftover(id, level)?;
        let _ = self.lists.pop_ready();
        self.put_to_rest(id);
        Some(leftover)
    }

    fn leftover(&self, id: SlotId, priority: u8) -> Option<Leftover<K>> {
        let slot = self.slots.slot(id)?;
        Some(Leftover {
            key: slot.key.clone(),
            left: Duration::ZERO,
            requeues: self.limiter.requeues(&slot.note.memory),
            priority,
        })
    }
}
