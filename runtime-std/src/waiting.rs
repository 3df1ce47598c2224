//! What waits, on threads: each call is a [`Wait`] of core in one loop that parks the thread.
//!
//! Nothing here decides when a call is woken, or what it finds: core does.

use std::borrow::Borrow;
use std::hash::Hash;
use std::time::Duration;

use requeue_core::binding::{Access, Adding, Getter, Look, Next, Wait};
use requeue_core::{
    Action, AddOptions, Added, Drained, GetError, Instant, KeyState, Priorities, RateLimiter,
    Rejected, Scheduled, Storage,
};

use crate::queue::{Batch, Guard, Shared, ThreadHost, WorkQueue};
use crate::sync::Parker;

impl<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage> WorkQueue<K, P, L, S> {
    /// Returns the first ready key; waits for one if there is none. `None` once the queue is shut
    /// down and no key is ready.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_std::WorkQueue;
    ///
    /// let queue = WorkQueue::new();
    /// let _ = queue.add("node-7");
    /// let guard = queue.get().unwrap();
    /// assert_eq!((*guard, guard.attempt()), ("node-7", 1));
    /// guard.success().unwrap();
    ///
    /// queue.shut_down();
    /// assert!(queue.get().is_none());
    /// ```
    #[must_use = "a guard that is dropped unreported counts as failed, and its key is retried"]
    pub fn get(&self) -> Option<Guard<'_, K, P, L, S>>
    where
        K: Clone,
    {
        self.try_get().or_else(|| self.wait_for_key(None).ok())
    }

    /// As [`get`](Self::get), but waits no longer than `timeout`. [`Duration::MAX`] waits as
    /// [`get`](Self::get) does.
    ///
    /// # Errors
    ///
    /// [`GetError`]: no key was ready in time, or the queue is shut down.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use requeue_std::{GetError, WorkQueue};
    ///
    /// let queue = WorkQueue::new();
    /// let _ = queue.add("node-7");
    /// match queue.get_timeout(Duration::from_secs(1)) {
    ///     Ok(guard) => guard.success().map(drop).unwrap(),
    ///     Err(GetError::TimedOut) => println!("nothing to do: time for something else"),
    ///     Err(error) => println!("stopping: {error}"),
    /// }
    /// assert!(!queue.contains(&"node-7"));
    /// ```
    pub fn get_timeout(&self, timeout: Duration) -> Result<Guard<'_, K, P, L, S>, GetError>
    where
        K: Clone,
    {
        self.get_deadline(self.clock().now() + timeout)
    }

    /// As [`get`](Self::get), but waits no longer than until `deadline` of the queue's clock. A key
    /// that is ready is returned even if the deadline has passed.
    ///
    /// # Errors
    ///
    /// As [`get_timeout`](Self::get_timeout).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use requeue_std::core::binding::Clock;
    /// use requeue_std::{ManualClock, WorkQueue};
    ///
    /// let clock = ManualClock::new();
    /// let queue = WorkQueue::builder().clock(clock.clone()).build();
    /// queue.add_many(["node-7", "node-8"], |_| {});
    ///
    /// // One second for a whole round, however long each key takes.
    /// let deadline = clock.now() + Duration::from_secs(1);
    /// let mut seen = Vec::new();
    /// while let Ok(guard) = queue.get_deadline(deadline) {
    ///     seen.push(*guard);
    ///     guard.success().unwrap();
    ///     clock.advance(Duration::from_millis(500));
    /// }
    /// assert_eq!(seen, ["node-7", "node-8"]);
    /// ```
    pub fn get_deadline(&self, deadline: Instant) -> Result<Guard<'_, K, P, L, S>, GetError>
    where
        K: Clone,
    {
        let found = self.try_get();
        found.map_or_else(|| self.wait_for_key(Some(deadline)), Ok)
    }

    /// Returns up to `max` ready keys, at least one; waits for the first if there is none. `None`
    /// once the queue is shut down and no key is ready. O(1) per key.
    ///
    /// Takes the lock once for up to [`KEYS_PER_LOCK`](requeue_core::binding::KEYS_PER_LOCK) keys.
    /// Of more, another worker may get some in between.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_std::WorkQueue;
    ///
    /// let queue = WorkQueue::new();
    /// queue.add_many(0..5, |rejected| panic!("{rejected}"));
    /// let batch = queue.get_many(3).unwrap();
    /// assert_eq!(batch.keys().copied().collect::<Vec<_>>(), [0, 1, 2]);
    /// batch.success().unwrap();
    /// assert_eq!(queue.len(), 2);
    /// ```
    #[must_use = "a batch that is dropped unreported counts as failed, and its keys are retried"]
    pub fn get_many(&self, max: usize) -> Option<Batch<'_, K, P, L, S>>
    where
        K: Clone,
    {
        let mut batch = Batch::take(&*self.shared, max);
        if batch.is_empty() {
            let call = Wait::for_key(&*self.shared);
            self.wait(call, None, |session, getter| {
                batch.poll_get(max, session, getter)
            })
            .ok()?;
            batch.fill_further(max);
        }
        Some(batch)
    }

    /// Ends a run and returns the next key, under one lock: what a worker's loop does. Waits as
    /// [`get`](Self::get).
    ///
    /// A guard of another queue ends its run in that queue. Finish the guard yourself to learn what
    /// became of the key.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_std::{Action, WorkQueue};
    ///
    /// let queue = WorkQueue::new();
    /// queue.add_many(["a", "b"], |_| {});
    /// queue.shut_down();
    ///
    /// let mut seen = Vec::new();
    /// let mut next = queue.get();
    /// while let Some(guard) = next {
    ///     seen.push(*guard);
    ///     next = queue.next(guard, Action::Success);
    /// }
    /// assert_eq!(seen, ["a", "b"]);
    /// ```
    #[must_use = "a guard that is dropped unreported counts as failed, and its key is retried"]
    pub fn next(
        &self,
        guard: Guard<'_, K, P, L, S>,
        action: Action,
    ) -> Option<Guard<'_, K, P, L, S>>
    where
        K: Clone,
    {
        let found = self.try_next(guard, action);
        found.or_else(|| self.wait_for_key(None).ok())
    }

    /// Waits until no key is ready or active. Delayed keys are not waited for until they are due.
    /// Any number of threads may wait, also after shutdown.
    ///
    /// Without workers it waits for ever if a key is ready, and so it does while the queue is
    /// [paused](requeue_core::binding::Shared::pause), or if a worker calls it while it holds a
    /// guard. A thread that waits costs the queue one look each time it may be idle.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_std::{Drained, WorkQueue};
    ///
    /// let queue = WorkQueue::new();
    /// queue.add_many(["node-7", "node-8"], |_| {});
    /// std::thread::scope(|scope| {
    ///     scope.spawn(|| {
    ///         while let Some(guard) = queue.get() {
    ///             guard.success().unwrap();
    ///         }
    ///     });
    ///     queue.wait_idle();
    ///     assert!(!queue.contains("node-8"));
    ///     // It takes keys as before.
    ///     let _ = queue.add("node-9");
    ///     assert_eq!(queue.drain(), Drained::Complete);
    /// });
    /// ```
    pub fn wait_idle(&self) {
        let _ = self.watch(None, |session| session.poll_idle());
    }

    /// As [`wait_idle`](Self::wait_idle), but waits no longer than `timeout`. Returns whether the
    /// queue was idle by then.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use requeue_std::WorkQueue;
    ///
    /// let queue = WorkQueue::new();
    /// assert!(queue.wait_idle_timeout(Duration::ZERO));
    /// let _ = queue.add("node-7");
    /// assert!(!queue.wait_idle_timeout(Duration::ZERO));
    /// ```
    pub fn wait_idle_timeout(&self, timeout: Duration) -> bool {
        let came = self.watch(Some(timeout), |session| session.poll_idle());
        came.is_ok()
    }

    /// Waits until no key is ready, active or delayed, so that nothing runs again unless it is
    /// added. Otherwise as [`wait_idle`](Self::wait_idle).
    ///
    /// After shutdown delayed keys stay until they are
    /// [taken](requeue_core::binding::Shared::leftovers).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use requeue_std::WorkQueue;
    ///
    /// let queue = WorkQueue::new();
    /// let _ = queue.add_after("lease-3", Duration::from_secs(60));
    /// std::thread::scope(|scope| {
    ///     scope.spawn(|| queue.cancel("lease-3"));
    ///     queue.wait_settled();
    /// });
    /// assert!(queue.is_settled());
    /// ```
    pub fn wait_settled(&self) {
        let _ = self.watch(None, |session| session.poll_settled());
    }

    /// As [`wait_settled`](Self::wait_settled), but waits no longer than `timeout`. Returns whether
    /// the queue was settled by then.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use requeue_std::WorkQueue;
    ///
    /// let queue = WorkQueue::new();
    /// let _ = queue.add_after("lease-3", Duration::from_secs(60));
    /// assert!(queue.wait_idle_timeout(Duration::ZERO));
    /// assert!(!queue.wait_settled_timeout(Duration::ZERO));
    /// ```
    pub fn wait_settled_timeout(&self, timeout: Duration) -> bool {
        let came = self.watch(Some(timeout), |session| session.poll_settled());
        came.is_ok()
    }

    /// Waits until the work of a key that is known now is done or cancelled: its present run, and
    /// one more if the key is ready or dirty. Returns at once if there is none. O(log n) to begin,
    /// and O(1) each time a run of any key has ended meanwhile.
    ///
    /// A delay is not waited for: [`expedite`](requeue_core::binding::Shared::expedite) ends it
    /// first. If the key begins another run just as this looks, that is waited for too. A worker
    /// that holds the key's guard waits for itself.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_std::WorkQueue;
    ///
    /// let queue = WorkQueue::new();
    /// queue.add_many(["node-7", "node-8"], |_| {});
    /// std::thread::scope(|scope| {
    ///     scope.spawn(|| queue.get().unwrap().success());
    ///     queue.flush("node-7");
    /// });
    /// assert!(!queue.contains("node-7"));
    /// assert!(queue.contains("node-8"), "the others are not waited for");
    /// ```
    pub fn flush<B>(&self, key: &B)
    where
        K: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        let mut flush = self.with(|session| session.begin_flush(key));
        let _ = self.watch(None, |session| session.poll_flush(key, &mut flush));
    }

    /// As [`flush`](Self::flush), but waits no longer than `timeout`. Returns whether the work was
    /// done by then.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use requeue_std::WorkQueue;
    ///
    /// let queue = WorkQueue::new();
    /// let _ = queue.add("node-7");
    /// assert!(!queue.flush_timeout("node-7", Duration::ZERO));
    /// assert!(queue.flush_timeout("node-8", Duration::ZERO), "it has no work");
    /// ```
    pub fn flush_timeout<B>(&self, key: &B, timeout: Duration) -> bool
    where
        K: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        let mut flush = self.with(|session| session.begin_flush(key));
        let done = self.watch(Some(timeout), |session| session.poll_flush(key, &mut flush));
        done.is_ok()
    }

    /// [Cancels](requeue_core::binding::Shared::cancel) a key, and waits until its present run
    /// has ended. Returns what the key was, as `cancel` does. Costs as [`flush`](Self::flush).
    ///
    /// The run learns of it by [`Guard::is_cancelled`](requeue_core::Guard::is_cancelled). What is
    /// added meanwhile is not waited for. A worker that holds the key's guard waits for itself.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_std::WorkQueue;
    ///
    /// let queue = WorkQueue::new();
    /// let _ = queue.add("node-7");
    /// let guard = queue.get().unwrap();
    /// std::thread::scope(|scope| {
    ///     let cancels = scope.spawn(|| queue.cancel_and_wait("node-7"));
    ///     guard.success().unwrap();
    ///     cancels.join().unwrap();
    /// });
    /// assert!(!queue.contains("node-7"));
    /// ```
    pub fn cancel_and_wait<B>(&self, key: &B) -> Option<KeyState>
    where
        K: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        let (was, mut flush) = self.with(|session| (session.cancel(key), session.begin_flush(key)));
        let _ = self.watch(None, |session| session.poll_flush(key, &mut flush));
        was
    }

    /// As [`cancel_and_wait`](Self::cancel_and_wait), but waits no longer than `timeout`. Returns
    /// what the key was, and whether its run had ended by then.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use requeue_std::WorkQueue;
    ///
    /// let queue = WorkQueue::new();
    /// let _ = queue.add("node-7");
    /// let guard = queue.get().unwrap();
    /// let (was, has_ended) = queue.cancel_and_wait_timeout("node-7", Duration::ZERO);
    /// assert!(was.unwrap().active && !has_ended);
    /// # guard.success().unwrap();
    /// ```
    pub fn cancel_and_wait_timeout<B>(&self, key: &B, timeout: Duration) -> (Option<KeyState>, bool)
    where
        K: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        let (was, mut flush) = self.with(|session| (session.cancel(key), session.begin_flush(key)));
        let ended = self.watch(Some(timeout), |session| session.poll_flush(key, &mut flush));
        (was, ended.is_ok())
    }

    /// As [`add`](requeue_core::binding::Shared::add), but waits for room if the key is new and
    /// there is none. O(1) for each look. A queue that grows always has room.
    ///
    /// Each place that becomes free wakes one call, in the order in which they began to wait. A key
    /// that is added otherwise meanwhile takes the place before it; then the call waits on, and
    /// stays the first. A key that the queue holds needs no room. A worker that calls this while it
    /// holds the only key that could make room waits for ever.
    ///
    /// # Errors
    ///
    /// [`Rejected::Closed`] returns the key once the queue is shut down.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_std::core::{Fixed, NoLimit, Plain, Reporter};
    /// use requeue_std::{Added, Queue, WorkQueue};
    ///
    /// let bounded: WorkQueue<u16, Plain, NoLimit, Fixed<2>> =
    ///     Queue::with_metrics(NoLimit, Reporter::NONE).into();
    /// std::thread::scope(|scope| {
    ///     scope.spawn(|| {
    ///         for _ in 0..100 {
    ///             bounded.get().unwrap().success().unwrap();
    ///         }
    ///     });
    ///     // The producer is as fast as the worker.
    ///     for sensor in 0..100 {
    ///         assert_eq!(bounded.add_wait(sensor), Ok(Added::Ready));
    ///     }
    /// });
    /// ```
    pub fn add_wait(&self, key: K) -> Result<Added, Rejected<K>> {
        let scheduled = self.add_wait_with(key, AddOptions::new());
        scheduled.map(|scheduled| scheduled.added)
    }

    /// As [`add_wait`](Self::add_wait), but waits no longer than `timeout`.
    ///
    /// # Errors
    ///
    /// As [`add_wait`](Self::add_wait), and [`Rejected::Full`] returns the key if there was no room
    /// in time.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use requeue_std::core::{Fixed, NoLimit, Plain, Reporter};
    /// use requeue_std::{Queue, Rejected, WorkQueue};
    ///
    /// let bounded: WorkQueue<u16, Plain, NoLimit, Fixed<1>> =
    ///     Queue::with_metrics(NoLimit, Reporter::NONE).into();
    /// let _ = bounded.add(17);
    /// let added = bounded.add_wait_timeout(18, Duration::from_millis(1));
    /// assert_eq!(added, Err(Rejected::Full(18)));
    /// ```
    pub fn add_wait_timeout(&self, key: K, timeout: Duration) -> Result<Added, Rejected<K>> {
        let scheduled = self.add_wait_with_timeout(key, AddOptions::new(), timeout);
        scheduled.map(|scheduled| scheduled.added)
    }

    /// As [`add_with`](requeue_core::binding::Shared::add_with), but waits for room as
    /// [`add_wait`](Self::add_wait) does. A delay begins once there is room.
    ///
    /// # Errors
    ///
    /// As [`add_wait`](Self::add_wait), and if the queue has no such priority level.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_std::{AddOptions, WorkQueue};
    ///
    /// let queue = WorkQueue::builder().levels::<2>().build();
    /// let urgent = AddOptions { priority: Some(1), ..AddOptions::new() };
    /// queue.add_wait_with("node-7", urgent).unwrap();
    /// assert_eq!(queue.state("node-7").unwrap().priority, 1);
    /// ```
    pub fn add_wait_with(&self, key: K, options: AddOptions) -> Result<Scheduled, Rejected<K>> {
        self.add_until(key, options, None)
    }

    /// As [`add_wait_with`](Self::add_wait_with), but waits no longer than `timeout`.
    ///
    /// # Errors
    ///
    /// As [`add_wait_timeout`](Self::add_wait_timeout), and if the queue has no such priority
    /// level.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use requeue_std::core::{Fixed, NoLimit, Plain, Reporter};
    /// use requeue_std::{AddOptions, Queue, Rejected, WorkQueue};
    ///
    /// let bounded: WorkQueue<u16, Plain, NoLimit, Fixed<1>> =
    ///     Queue::with_metrics(NoLimit, Reporter::NONE).into();
    /// let _ = bounded.add(17);
    /// let later = AddOptions { after: Some(Duration::from_secs(60)), ..AddOptions::new() };
    /// let added = bounded.add_wait_with_timeout(18, later, Duration::from_millis(1));
    /// assert_eq!(added, Err(Rejected::Full(18)));
    /// ```
    pub fn add_wait_with_timeout(
        &self,
        key: K,
        options: AddOptions,
        timeout: Duration,
    ) -> Result<Scheduled, Rejected<K>> {
        let deadline = self.clock().now() + timeout;
        self.add_until(key, options, Some(deadline))
    }

    /// Shuts the queue down and waits until no key is ready, dirty or active. Any number of threads
    /// may wait. Returns how the drain ended: a
    /// [`shut_down`](requeue_core::binding::Shared::shut_down) meanwhile interrupts it.
    ///
    /// Without workers it waits for ever. So it does for a guard that was leaked, and if a worker
    /// calls it while it holds a guard, as in [`on_give_up`](crate::Workers::on_give_up): use
    /// [`drain_timeout`](Self::drain_timeout) there. Delayed keys are not waited for:
    /// [`leftovers`](requeue_core::binding::Shared::leftovers) returns them.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_std::{Drained, WorkQueue};
    ///
    /// let queue = WorkQueue::new();
    /// queue.add_many(["node-7", "node-8"], |_| {});
    /// std::thread::scope(|scope| {
    ///     scope.spawn(|| {
    ///         while let Some(guard) = queue.get() {
    ///             guard.success().unwrap();
    ///         }
    ///     });
    ///     assert_eq!(queue.drain(), Drained::Complete);
    /// });
    /// assert!(!queue.contains(&"node-8"));
    /// ```
    #[doc(alias = "ShutDownWithDrain")]
    pub fn drain(&self) -> Drained {
        let drain = self.begin_drain();
        let ended = self.watch(None, |session| session.poll_drain(Some(&drain)));
        ended.unwrap_or(Drained::Pending)
    }

    /// As [`drain`](Self::drain), but waits no longer than `timeout`, and then returns
    /// [`Drained::Pending`]. The queue is shut down all the same.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use requeue_std::{Drained, WorkQueue};
    ///
    /// let queue = WorkQueue::new();
    /// let _ = queue.add("node-7");
    /// let guard = queue.get().unwrap();
    /// assert_eq!(queue.drain_timeout(Duration::ZERO), Drained::Pending);
    /// guard.success().unwrap();
    /// assert_eq!(queue.drain_timeout(Duration::ZERO), Drained::Complete);
    /// ```
    pub fn drain_timeout(&self, timeout: Duration) -> Drained {
        let drain = self.begin_drain();
        let ended = self.watch(Some(timeout), |session| session.poll_drain(Some(&drain)));
        ended.unwrap_or(Drained::Pending)
    }

    /// Waits until the queue has been shut down by another call, and nothing is ready, dirty or
    /// active. Any number of threads may wait.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_std::WorkQueue;
    ///
    /// let queue = WorkQueue::new();
    /// let _ = queue.add("node-7");
    /// std::thread::scope(|scope| {
    ///     let drained = scope.spawn(|| queue.wait_drained());
    ///     queue.get().unwrap().success().unwrap();
    ///     queue.shut_down();
    ///     drained.join().unwrap();
    /// });
    /// ```
    pub fn wait_drained(&self) {
        let _ = self.watch(None, |session| session.poll_drain(None));
    }

    /// Slow path: most calls find a key without.
    #[cold]
    fn wait_for_key(&self, deadline: Option<Instant>) -> Result<Guard<'_, K, P, L, S>, GetError>
    where
        K: Clone,
    {
        let call = Wait::for_key(&*self.shared);
        let work = self.wait(call, deadline, |session, getter| session.poll_get(getter))?;
        Ok(Guard::new(work, &*self.shared))
    }

    fn add_until(
        &self,
        key: K,
        options: AddOptions,
        deadline: Option<Instant>,
    ) -> Result<Scheduled, Rejected<K>> {
        let mut adding = Adding::new(key, options);
        let call = Wait::for_room(&*self.shared);
        let deadline = adding.deadline(deadline);
        // An error says that there was no room in time, and so does what becomes of the key.
        let _ = self.wait(call, deadline, |session, getter| {
            session.poll_add(&mut adding, getter)
        });
        adding.into_result()
    }

    /// Looks until a state of the queue has come. An error says that it has not in time.
    fn watch<T>(
        &self,
        timeout: Option<Duration>,
        mut look: impl FnMut(&mut Access<'_, ThreadHost<K, P, L, S>>) -> Next<T>,
    ) -> Result<T, GetError> {
        let deadline = timeout.map(|timeout| self.clock().now() + timeout);
        let call = Wait::for_state(&*self.shared);
        self.wait(call, deadline, |session, _| look(session))
    }

    /// Looks until there is a result, and sleeps in between.
    #[cold]
    pub(crate) fn wait<T>(
        &self,
        mut call: Call<'_, K, P, L, S>,
        deadline: Option<Instant>,
        mut look: impl FnMut(&mut Access<'_, ThreadHost<K, P, L, S>>, &mut Getter) -> Next<T>,
    ) -> Result<T, GetError> {
        Parker::with(|parker| {
            loop {
                match call.look(parker.waker(), deadline, &mut look) {
                    Look::Done(result) => return result,
                    Look::Sleep { until } => self.clock().park(parker, until),
                }
            }
        })
    }
}

/// A call that waits.
pub(crate) type Call<'q, K, P, L, S> = Wait<ThreadHost<K, P, L, S>, &'q Shared<K, P, L, S>>;
