//! Shutdown and drain, which lose no key. Owns when a queue is drained and which keys are left;
//! never waits.

use crate::outcome::{Drain, Drained, Leftover};

use super::*;

impl<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage, M: Metrics>
    Session<'_, K, P, L, S, M>
{
    /// Shuts the queue down: it takes no more keys. Ready keys are still handed out. Interrupts
    /// drains that have not ended. O(1).
    ///
    /// Getters find the queue closed once no key is ready, as in client-go, even if an active key
    /// is dirty. That key is ready when its run ends. A getter that looks then gets it, else it is
    /// [left over](Self::take_ready). In a [drain](Self::begin_drain) getters wait for dirty keys.
    ///
    /// Reads `now` even if [`needs_time`](crate::Queue::needs_time) is false, as does
    /// [`begin_drain`](Self::begin_drain).
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::limiter::NoLimit;
    /// use requeue::priority::Plain;
    /// use requeue::storage::Fixed;
    /// use requeue::{Instant, Queue, Rejected};
    /// use requeue::binding::{Getter, Next};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<&str, Plain, NoLimit, Fixed<4>> = Queue::new(NoLimit);
    /// let _ = queue.at(now).add("node-7");
    /// queue.at(now).shut_down();
    /// assert!(queue.is_shutting_down());
    /// assert_eq!(queue.at(now).add("node-8"), Err(Rejected::Closed("node-8")));
    ///
    /// // What was ready is still handed out.
    /// let work = queue.at(now).try_get().unwrap();
    /// queue.at(now).release(work.ticket);
    /// assert_eq!(queue.at(now).poll_get(&mut Getter::new()), Next::Closed);
    /// ```
    #[doc(alias = "ShutDown")]
    pub fn shut_down(&mut self) {
        self.queue.epoch = self.queue.epoch.wrapping_add(1);
        self.queue.watched.remove(Watched::DRAINING);
        self.queue.close(self.now);
    }

    /// As [`shut_down`](Self::shut_down), but interrupts no drain, and begins one: the caller waits
    /// until [`drain_status`](crate::Queue::drain_status) is no longer pending. O(1).
    ///
    /// Until a `shut_down` interrupts the drain, getters find the queue closed once no key is ready
    /// or dirty. They wait for the end of a dirty key's run, so that one of them takes the key and
    /// the drain can end. A caller that has a dirty key must end its run before it waits for
    /// another key, or it waits for ever.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::limiter::NoLimit;
    /// use requeue::priority::Plain;
    /// use requeue::storage::Fixed;
    /// use requeue::binding::{Drained, Wake};
    /// use requeue::{Instant, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<&str, Plain, NoLimit, Fixed<4>> = Queue::new(NoLimit);
    /// let _ = queue.at(now).add("node-7");
    /// let drain = queue.at(now).begin_drain();
    ///
    /// let work = queue.at(now).try_get().unwrap();
    /// assert_eq!(queue.drain_status(&drain), Drained::Pending);
    /// // The end of the last run wakes every call that waits for the drain.
    /// queue.at(now).release(work.ticket);
    /// assert_eq!(queue.at(now).close(), Wake::ALL);
    /// assert_eq!(queue.drain_status(&drain), Drained::Complete);
    /// ```
    #[doc(alias = "ShutDownWithDrain")]
    pub fn begin_drain(&mut self) -> Drain {
        self.queue.watched.add(Watched::DRAINING);
        self.queue.close(self.now);
        let epoch = self.queue.epoch;
        Drain { epoch }
    }

    /// Checks whether a drain has ended, as a call that waits for it does. Without a drain, checks
    /// whether the queue is drained. O(1).
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::binding::{Drained, Next};
    /// use requeue::limiter::NoLimit;
    /// use requeue::priority::Plain;
    /// use requeue::storage::Fixed;
    /// use requeue::{Instant, Queue};
    ///
    /// let mut queue: Queue<&str, Plain, NoLimit, Fixed<4>> = Queue::new(NoLimit);
    /// assert_eq!(queue.at(Instant::EPOCH).poll_drain(None), Next::Wait { until: None });
    /// let drain = queue.at(Instant::EPOCH).begin_drain();
    /// let looked = queue.at(Instant::EPOCH).poll_drain(Some(&drain));
    /// assert_eq!(looked, Next::Work(Drained::Complete));
    /// ```
    pub fn poll_drain(&mut self, drain: Option<&Drain>) -> Next<Drained> {
        let status = match drain {
            Some(drain) => self.drain_status(drain),
            None if self.is_drained() => Drained::Complete,
            None => Drained::Pending,
        };
        match status {
            Drained::Pending => Next::Wait { until: None },
            ended => Next::Work(ended),
        }
    }
}

impl<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage, M: Metrics> Queue<K, P, L, S, M> {
    /// Returns the status of a drain. O(1). [`Drained`] has an example.
    ///
    /// A drain does not wait for delayed or suspended keys:
    /// [`take_delayed`](crate::Session::take_delayed) returns them.
    pub fn drain_status(&self, drain: &Drain) -> Drained {
        if self.is_drained() {
            Drained::Complete
        } else if drain.epoch == self.epoch {
            Drained::Pending
        } else {
            Drained::Interrupted
        }
    }

    /// Returns whether the queue is shut down and no key is ready or active. O(1).
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::limiter::NoLimit;
    /// use requeue::priority::Plain;
    /// use requeue::storage::Fixed;
    /// use requeue::{Instant, Queue};
    ///
    /// let mut queue: Queue<&str, Plain, _, Fixed<4>> = Queue::new(NoLimit);
    /// queue.at(Instant::EPOCH).add("node-7").unwrap();
    /// queue.at(Instant::EPOCH).shut_down();
    /// assert!(!queue.is_drained());
    ///
    /// let work = queue.at(Instant::EPOCH).try_get().unwrap();
    /// queue.at(Instant::EPOCH).release(work.ticket);
    /// assert!(queue.is_drained());
    /// ```
    pub fn is_drained(&self) -> bool {
        self.closed && self.active == 0 && self.lists.ready_len() == 0
    }

    fn close(&mut self, now: Instant) {
        let _ = self.make_due_ready(SlotId::NONE, now);
        if !self.closed {
            self.closed = true;
            self.gate.set(Gate::PAUSED, false);
            self.delays.stop(now);
            if !self.is_drained() {
                self.watched.add(Watched::DRAIN);
            }
            self.lists.close();
        }
        self.watched.owe_all();
    }
}

impl<K: Eq + Hash + Clone, P: Priorities, L: RateLimiter, S: Storage, M: Metrics>
    Session<'_, K, P, L, S, M>
{
    /// Takes out the delayed or suspended key whose time ends first, after shutdown. `None` before,
    /// and if no key is delayed or suspended. O(log n), and O(log n) for each due key that is not
    /// ready yet: [`advance`](Self::advance) makes a bounded number of them ready.
    ///
    /// A key that is also ready or active stays so. If a call waits for a queue that is
    /// [settled](crate::Queue::is_settled), [`close`](Self::close) names it.
    ///
    /// # Examples
    ///
    /// A service that restarts writes down what it still has to do:
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue::limiter::NoLimit;
    /// use requeue::priority::Plain;
    /// use requeue::storage::Fixed;
    /// use requeue::{Instant, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<&str, Plain, NoLimit, Fixed<4>> = Queue::new(NoLimit);
    /// let _ = queue.at(now).add_after("lease-4", Duration::from_secs(90));
    /// let _ = queue.at(now).add_after("lease-3", Duration::from_secs(60));
    /// queue.at(now).shut_down();
    ///
    /// let mut to_do = Vec::new();
    /// while let Some(leftover) = queue.at(now).take_delayed() {
    ///     to_do.push((leftover.key, leftover.left.as_secs()));
    /// }
    /// assert_eq!(to_do, [("lease-3", 60), ("lease-4", 90)]);
    /// ```
    pub fn take_delayed(&mut self) -> Option<Leftover<K>> {
        let Self { queue, now, .. } = self;
        if !queue.closed {
            return None;
        }
        // Groups may still get tokens, but from here no getter can be woken for that.
        while queue.make_due_ready(SlotId::NONE, queue.delays.stopped_at()) {}
        let id = queue.delays.first()?;
        let mut leftover = queue.leftover(id, queue.level_when_due(id, Instant::NEVER))?;
        let (_, due) = queue.delays.pop()?;
        if due.is_never() {
            leftover.left = Duration::MAX;
        } else {
            leftover.left = due.saturating_since(*now);
        }
        queue.metrics.delayed(queue.delays.len());
        queue.note_change();
        queue.release_if_idle(id);
        Some(leftover)
    }

    /// Takes out the first ready key before a worker gets it, after shutdown. `None` before, and if
    /// no key is ready. O(log n), and O(log n) for each active key whose own deadline has passed:
    /// [`advance`](Self::advance) applies a bounded number of them.
    ///
    /// A delay of the key is removed with it. Its failure record stays: the leftover has a copy of
    /// the count. Keys of higher levels come first, also if others have
    /// [aged](crate::priority::Aging). With groups, the keys that a worker could get come first,
    /// then those of the groups that have waited longest for a limit, at whatever level. The tokens
    /// of a group are those of the shutdown, or of the last [`advance`](Self::advance) after it.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::limiter::NoLimit;
    /// use requeue::priority::Plain;
    /// use requeue::storage::Fixed;
    /// use requeue::binding::Drained;
    /// use requeue::{Instant, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<&str, Plain, NoLimit, Fixed<4>> = Queue::new(NoLimit);
    /// let _ = queue.at(now).add("node-7");
    /// let drain = queue.at(now).begin_drain();
    ///
    /// // The time for draining is over: no worker may begin with it.
    /// assert_eq!(queue.at(now).take_ready().unwrap().key, "node-7");
    /// assert_eq!(queue.drain_status(&drain), Drained::Complete);
    /// ```
    pub fn take_ready(&mut self) -> Option<Leftover<K>> {
        let queue = &mut *self.queue;
        if !queue.closed {
            return None;
        }
        let now = queue.delays.stopped_at();
        // The key leaves with its own deadline, so another key may have to become ready (Q6).
        let _ = queue.make_due_ready(SlotId::NONE, now);
        let id = queue.first_left(now)?;
        queue.take_out_ready(id)
    }
}

impl<K: Eq + Hash + Clone, P: Priorities, L: RateLimiter, S: Storage, M: Metrics>
    Queue<K, P, L, S, M>
{
    /// Removes a ready key from the queue.
    pub(super) fn take_out_ready(&mut self, id: SlotId) -> Option<Leftover<K>> {
        let mut level = self.levels(id).queued;
        if self.delays.has(id) {
            // The key leaves with its delay.
            level = level.max(self.levels(id).delayed);
        }
        let leftover = self.leftover(id, level)?;
        self.retire(id);
        Some(leftover)
    }

    fn leftover(&self, id: SlotId, priority: u8) -> Option<Leftover<K>> {
        let slot = self.slots.slot(id)?;
        let mut leftover = Leftover::new(slot.key.clone());
        leftover.failures = self.limiter.failures(&slot.meta.record);
        leftover.priority = priority;
        Some(leftover)
    }
}
