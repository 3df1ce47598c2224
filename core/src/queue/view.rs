//! Shows the state of a queue and of a key. Owns no state. The only change is to make due keys
//! ready, as every operation does first.

use crate::outcome::Stats;

use super::*;

impl<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage, M: Metrics>
    Session<'_, K, P, L, S, M>
{
    /// Returns the number of ready keys: client-go's `Len`. Active and delayed keys do not count.
    /// O(1), and O(log n) for each due key that is not ready yet: [`advance`](Self::advance) makes
    /// a bounded number of them ready.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue::limiter::default_item_based;
    /// use requeue::priority::Plain;
    /// use requeue::storage::Fixed;
    /// use requeue::{Instant, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let minute = Duration::from_secs(60);
    /// let mut queue: Queue<&str, Plain, _, Fixed<8>> = Queue::new(default_item_based());
    /// let _ = queue.at(now).add_many(["node-7", "node-8", "node-9"], |_| {});
    /// let _ = queue.at(now).add_after("lease-3", minute);
    /// let _work = queue.at(now).try_get();
    ///
    /// assert_eq!(queue.at(now).len(), 2);
    /// assert_eq!(queue.at(now + minute).len(), 3);
    /// ```
    #[doc(alias = "Len")]
    pub fn len(&mut self) -> usize {
        while self.queue.make_due_ready(SlotId::NONE, self.now) {}
        self.queue.lists.ready_len()
    }

    /// Makes due keys ready, at most as many as [`limit_due_keys`](Queue::limit_due_keys) says, and
    /// returns whether more are due. O(log n).
    ///
    /// Every operation that depends on deadlines does the same first. Only a caller that is about
    /// to count keys, and may not hold its lock for as long as many of them take, calls this.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue::limiter::NoLimit;
    /// use requeue::priority::Plain;
    /// use requeue::storage::Fixed;
    /// use requeue::{Instant, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let due = now + Duration::from_secs(60);
    /// let mut queue: Queue<u16, Plain, NoLimit, Fixed<16>> = Queue::new(NoLimit);
    /// for sensor in 0..16 {
    ///     let _ = queue.at(now).add_at(sensor, due);
    /// }
    /// // Interrupts are served between any two calls.
    /// while queue.at(due).advance() {}
    /// assert_eq!(queue.at(due).len(), 16);
    /// ```
    pub fn advance(&mut self) -> bool {
        let _ = self.queue.make_due_ready(SlotId::NONE, self.now);
        self.queue.delays.is_due(self.now)
    }

    /// Returns whether no key is ready. O(log n), and O(log n) for each active key whose own deadline
    /// has passed: [`advance`](Self::advance) applies a bounded number of them.
    ///
    /// A ready key may have to wait: until the queue is unpaused, for another run of its group, or
    /// for a token. A loop that would sleep while there is nothing to do calls
    /// [`poll_get`](Self::poll_get).
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::limiter::NoLimit;
    /// use requeue::priority::Plain;
    /// use requeue::storage::Fixed;
    /// use requeue::{Instant, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<&str, Plain, NoLimit, Fixed<4>> = Queue::new(NoLimit);
    /// let _ = queue.at(now).add("node-7");
    /// assert!(!queue.at(now).is_empty());
    /// let _work = queue.at(now).try_get();
    /// assert!(queue.at(now).is_empty(), "an active key is not ready");
    /// ```
    pub fn is_empty(&mut self) -> bool {
        self.queue.first_left(self.now).is_none()
    }

    /// Returns what the queue knows about a key, `None` if it does not have the key. O(log n).
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue::limiter::NoLimit;
    /// use requeue::priority::Plain;
    /// use requeue::storage::Fixed;
    /// use requeue::{Instant, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let due = now + Duration::from_secs(60);
    /// let mut queue: Queue<&str, Plain, NoLimit, Fixed<4>> = Queue::new(NoLimit);
    /// let _ = queue.at(now).add_at("lease-3", due);
    ///
    /// let state = queue.at(now).state(&"lease-3").unwrap();
    /// assert_eq!((state.ready, state.due), (false, Some(due)));
    /// let state = queue.at(due).state(&"lease-3").unwrap();
    /// assert_eq!((state.ready, state.due), (true, None));
    /// ```
    pub fn state<B>(&mut self, key: &B) -> Option<KeyState>
    where
        K: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        let id = self.queue.locate(key, self.now).found()?;
        self.queue.state_of(id)
    }
}

impl<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage, M: Metrics> Queue<K, P, L, S, M> {
    pub(super) fn state_of(&self, id: SlotId) -> Option<KeyState> {
        let slot = self.slots.slot(id)?;
        Some(KeyState {
            ready: slot.phase == Phase::Ready,
            active: slot.phase.is_active(),
            dirty: slot.phase.is_active() && slot.phase.is_queued(),
            cancelled: slot.phase.is_cancelled(),
            due: self.deadline(id),
            suspended: self.suspended_until(id),
            failures: self.limiter.failures(&slot.meta.record),
            priority: match slot.phase {
                _ if self.is_suspended(id) => self.level_when_due(id, Instant::NEVER),
                phase if phase.is_queued() => slot.meta.levels.get().queued,
                phase if phase.is_active() => slot.meta.levels.get().running,
                _ if self.delays.has(id) => slot.meta.levels.get().delayed,
                _ => LOWEST,
            },
            active_since: self.active_since(id).filter(|_| slot.phase.is_active()),
        })
    }

    /// Returns whether a key is ready, active, delayed or suspended. Failures alone do not count.
    /// O(1).
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::limiter::NoLimit;
    /// use requeue::priority::Plain;
    /// use requeue::storage::Fixed;
    /// use requeue::{Action, Instant, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<&str, Plain, NoLimit, Fixed<4>> = Queue::new(NoLimit);
    /// let _ = queue.at(now).add("node-7");
    /// assert!(queue.contains(&"node-7"));
    ///
    /// let work = queue.at(now).try_get().unwrap();
    /// assert!(queue.contains(&"node-7"), "it is active");
    /// queue.at(now).finish(work.ticket, Action::Success);
    /// assert!(!queue.contains(&"node-7"));
    /// ```
    pub fn contains<B>(&self, key: &B) -> bool
    where
        K: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        let found = self.slots.locate(key).found();
        found.is_some_and(|id| !self.is_record_only(id))
    }

    /// Returns how many failures of a key are on record. O(1).
    ///
    /// # Examples
    ///
    /// A worker gives up a key that has failed too often:
    ///
    /// ```
    /// use requeue::limiter::default_item_based;
    /// use requeue::priority::Plain;
    /// use requeue::storage::Fixed;
    /// use requeue::{Action, Instant, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<&str, Plain, _, Fixed<4>> = Queue::new(default_item_based());
    /// for _ in 0..3 {
    ///     let _ = queue.at(now).add_rate_limited("node-7");
    /// }
    /// let later = Instant::from_nanos(1_000_000);
    /// let work = queue.at(later).try_get().unwrap();
    /// if queue.failures(&work.key) >= 3 {
    ///     queue.at(later).finish(work.ticket, Action::Success);
    /// }
    /// assert_eq!(queue.failures(&"node-7"), 0);
    /// ```
    #[doc(alias = "NumRequeues")]
    pub fn failures<B>(&self, key: &B) -> u32
    where
        K: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        let found = self.slots.locate(key).found();
        found.map_or(0, |id| self.failures_of(id))
    }

    /// Returns the counts of the queue, all of one moment. O(1). [`Stats`] has an example.
    ///
    /// Changes nothing. So a key whose deadline has passed counts as delayed until an operation
    /// makes it ready: an operation of any worker does, and so does
    /// [`advance`](crate::Session::advance).
    pub fn stats(&self) -> Stats {
        Stats {
            total: self.total(),
            ready: self.lists.ready_len(),
            active: self.active,
            dirty: self.dirty,
            delayed: self.delays.len() - self.policy.suspended(),
            suspended: self.policy.suspended(),
            failure_records: self.lists.records_len(),
            max_keys: self.max_keys(),
            next_deadline: self.next_deadline(),
            paused: self.is_paused(),
            shutting_down: self.closed,
        }
    }

    pub(crate) fn active_len(&self) -> usize {
        self.active
    }

    pub(crate) fn delayed_len(&self) -> usize {
        self.delays.len()
    }

    pub(crate) fn total(&self) -> usize {
        self.slots.len()
    }

    pub(crate) fn max_keys(&self) -> Option<usize> {
        self.slots.capacity()
    }

    /// Returns the earliest deadline. `None` if there is no deadline except [`Instant::NEVER`],
    /// while the queue is [paused](crate::Session::pause), and after shutdown. O(1).
    ///
    /// The next token of a [run rate](crate::Policy::run_rate) counts as a deadline if ready keys
    /// wait for it, and so does that of each group with ready keys. Both count after shutdown, too.
    ///
    /// A ready key has no deadline, so this alone does not say whether a worker may sleep:
    /// [`poll_get`](crate::Session::poll_get) does, and has an example of a bare loop.
    ///
    /// # Examples
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
    /// let _ = queue.at(now).add_after("lease-3", Duration::MAX);
    /// assert_eq!(queue.next_deadline(), None);
    /// let _ = queue.at(now).add_after("lease-4", Duration::from_secs(60));
    /// assert_eq!(queue.next_deadline(), Some(now + Duration::from_secs(60)));
    /// ```
    pub fn next_deadline(&self) -> Option<Instant> {
        if self.is_paused() {
            return None;
        }
        self.open_deadline()
    }

    /// The deadline that the queue would wait for if it were not paused.
    pub(super) fn open_deadline(&self) -> Option<Instant> {
        let delayed = if self.closed {
            None
        } else {
            self.delays.earliest()
        };
        let start = self.start_due().filter(|start| !start.is_never());
        earlier(earlier(delayed, self.lists.earliest()), start)
    }

    /// Returns whether the next operation reads `now`, because a key is delayed, or the metrics or
    /// [the policy](crate::Policy) measure time. Otherwise a runtime need not read its
    /// clock. O(1).
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue::limiter::NoLimit;
    /// use requeue::priority::Plain;
    /// use requeue::storage::Fixed;
    /// use requeue::{Instant, Queue};
    ///
    /// let mut queue: Queue<&str, Plain, NoLimit, Fixed<4>> = Queue::new(NoLimit);
    /// let _ = queue.at(Instant::EPOCH).add("node-7");
    /// assert!(!queue.needs_time());
    /// let _ = queue.at(Instant::EPOCH).add_after("lease-3", Duration::from_secs(60));
    /// assert!(queue.needs_time());
    /// ```
    #[inline]
    pub fn needs_time(&self) -> bool {
        self.metrics.needs_time()
            || !self.delays.is_empty()
            || self.policy_needs_time()
            || self.lists.needs_time()
            || P::Age::EXISTS
    }

    /// Returns how many getters sleep: those that have to wait, and have neither looked again nor
    /// left. O(1).
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::limiter::NoLimit;
    /// use requeue::priority::Plain;
    /// use requeue::storage::Fixed;
    /// use requeue::{Instant, Queue};
    /// use requeue::binding::Getter;
    ///
    /// let mut queue: Queue<&str, Plain, NoLimit, Fixed<4>> = Queue::new(NoLimit);
    /// let mut idle_worker = Getter::new();
    /// let _ = queue.at(Instant::EPOCH).poll_get(&mut idle_worker);
    /// assert_eq!(queue.asleep(), 1);
    /// queue.at(Instant::EPOCH).leave(&mut idle_worker);
    /// assert_eq!(queue.asleep(), 0);
    /// ```
    pub fn asleep(&self) -> usize {
        self.sleepers.asleep() as usize
    }

    /// Returns whether the queue has been shut down. O(1). [`shut_down`](crate::Session::shut_down)
    /// has an example.
    #[doc(alias = "ShuttingDown")]
    pub fn is_shutting_down(&self) -> bool {
        self.closed
    }

    /// Returns when the queue was first shut down, `None` if it was not. O(1).
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::limiter::NoLimit;
    /// use requeue::priority::Plain;
    /// use requeue::storage::Fixed;
    /// use requeue::{Instant, Queue};
    ///
    /// let mut queue: Queue<&str, Plain, NoLimit, Fixed<4>> = Queue::new(NoLimit);
    /// assert_eq!(queue.closed_at(), None);
    /// for nanos in [7, 9] {
    ///     queue.at(Instant::from_nanos(nanos)).shut_down();
    /// }
    /// assert_eq!(queue.closed_at(), Some(Instant::from_nanos(7)));
    /// ```
    pub fn closed_at(&self) -> Option<Instant> {
        self.closed.then_some(self.delays.stopped_at())
    }

    /// Returns the rate limiter. O(1).
    pub fn limiter(&self) -> &L {
        &self.limiter
    }

    /// Returns the metrics. O(1).
    pub fn metrics(&self) -> &M {
        &self.metrics
    }

    /// Returns the metrics, to read and reset them. O(1).
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::limiter::NoLimit;
    /// use requeue::metrics::Metrics;
    /// use requeue::priority::Plain;
    /// use requeue::storage::Fixed;
    /// use requeue::{Instant, Queue};
    ///
    /// #[derive(Default)]
    /// struct Adds(u32);
    ///
    /// impl Metrics for Adds {
    ///     type Timestamps = ();
    ///
    ///     fn added(&mut self) {
    ///         self.0 += 1;
    ///     }
    /// }
    ///
    /// let mut queue: Queue<&str, Plain, NoLimit, Fixed<4>, Adds> =
    ///     Queue::with_metrics(NoLimit, Adds::default());
    /// let _ = queue.at(Instant::EPOCH).add("node-7");
    /// let adds_since_last_time = core::mem::take(&mut queue.metrics_mut().0);
    /// assert_eq!((adds_since_last_time, queue.metrics().0), (1, 0));
    /// ```
    pub fn metrics_mut(&mut self) -> &mut M {
        &mut self.metrics
    }
}

/// The earlier of two deadlines.
#[inline]
fn earlier(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
