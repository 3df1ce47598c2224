//! States of the queue, on threads: looking, waiting for a state, control, and shutting down.
//!
//! Each call that waits is a [`Wait`] of core in one loop that parks the thread. Nothing here
//! decides when a call is woken, or what it finds: core does.

use std::borrow::Borrow;
use std::hash::Hash;
use std::time::Duration;

use requeue_core::binding::{Access, Adding, AsShared, Getter, Host, Look, Next, Shared, Wait};
use requeue_core::limiter::RateLimiter;
use requeue_core::priority::Priorities;
use requeue_core::storage::{Growable, Storage};
use requeue_core::{AddOptions, Instant, KeyState, Rejected, Scheduled, WaitError};

use crate::clock::QueueClock;
use crate::queue::{Guard, ThreadHost, WorkQueue, face};
use crate::sync::Parker;

/// Looking, and waiting for a state.
impl<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage> WorkQueue<K, P, L, S> {
    face!(looking);

    /// Returns the clock. O(1).
    pub fn clock(&self) -> &QueueClock {
        self.shared.clock()
    }

    /// Waits until no key is ready or active. Does not wait for delayed keys until they are due,
    /// and not for suspended keys. Also works after shutdown. Costs one look, O(log n), each time
    /// the queue may be idle.
    ///
    /// Waits for ever while the queue is [paused](Self::pause). The same holds if a key is ready and
    /// there are no workers, and if a worker calls it while it has a guard.
    /// [`wait_idle_timeout`](Self::wait_idle_timeout) limits the wait.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::std::WorkQueue;
    ///
    /// let queue = WorkQueue::new();
    /// let _ = queue.add_many(["node-7", "node-8"]);
    /// std::thread::scope(|scope| {
    ///     scope.spawn(|| {
    ///         while let Ok(guard) = queue.get() {
    ///             guard.success();
    ///         }
    ///     });
    ///     queue.wait_idle();
    ///     assert!(!queue.contains("node-8"));
    ///     // It takes keys as before.
    ///     let _ = queue.add("node-9");
    ///     assert_eq!(queue.drain(), Ok(()));
    /// });
    /// ```
    pub fn wait_idle(&self) {
        let _ = self.watch(None, |session| session.poll_idle());
    }

    /// As [`wait_idle`](Self::wait_idle), but waits no longer than `timeout`.
    ///
    /// # Errors
    ///
    /// [`TimedOut`](WaitError::TimedOut) if the queue was not idle by then.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use requeue::std::WorkQueue;
    ///
    /// let queue = WorkQueue::new();
    /// assert!(queue.wait_idle_timeout(Duration::ZERO).is_ok());
    /// let _ = queue.add("node-7");
    /// assert!(queue.wait_idle_timeout(Duration::ZERO).is_err());
    /// ```
    pub fn wait_idle_timeout(&self, timeout: Duration) -> Result<(), WaitError> {
        self.watch(Some(timeout), |session| session.poll_idle())
    }

    /// Waits until no key is ready, active, delayed or suspended, so that no key runs again unless
    /// you add it. Otherwise as [`wait_idle`](Self::wait_idle).
    ///
    /// After shutdown delayed and suspended keys stay until you take the
    /// [leftovers](Self::leftovers).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use requeue::std::WorkQueue;
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

    /// As [`wait_settled`](Self::wait_settled), but waits no longer than `timeout`.
    ///
    /// # Errors
    ///
    /// [`TimedOut`](WaitError::TimedOut) if the queue was not settled by then.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use requeue::std::WorkQueue;
    ///
    /// let queue = WorkQueue::new();
    /// let _ = queue.add_after("lease-3", Duration::from_secs(60));
    /// assert!(queue.wait_idle_timeout(Duration::ZERO).is_ok());
    /// assert!(queue.wait_settled_timeout(Duration::ZERO).is_err());
    /// ```
    pub fn wait_settled_timeout(&self, timeout: Duration) -> Result<(), WaitError> {
        self.watch(Some(timeout), |session| session.poll_settled())
    }

    /// Waits for the runs of a key that are certain now: its present run, and one more if the key
    /// is ready or dirty. Returns when they have ended or were cancelled, and immediately if there
    /// are none. O(log n) to begin, and O(1) each time a run of any key has ended meanwhile.
    ///
    /// Does not wait for a delay: [`expedite`](Self::expedite) ends it first. If the key begins
    /// another run just as this looks, it waits for that run too. A worker that has the key's guard
    /// waits for itself.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::std::WorkQueue;
    ///
    /// let queue = WorkQueue::new();
    /// let _ = queue.add_many(["node-7", "node-8"]);
    /// std::thread::scope(|scope| {
    ///     scope.spawn(|| queue.get().unwrap().success());
    ///     queue.flush("node-7");
    /// });
    /// assert!(!queue.contains("node-7"));
    /// assert!(queue.contains("node-8"), "it does not wait for the others");
    /// ```
    pub fn flush<B>(&self, key: &B)
    where
        K: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        let mut flush = self.shared.with(|session| session.begin_flush(key));
        let _ = self.watch(None, |session| session.poll_flush(key, &mut flush));
    }

    /// As [`flush`](Self::flush), but waits no longer than `timeout`. After
    /// [`cancel`](Self::cancel) it waits for the present run.
    ///
    /// # Errors
    ///
    /// [`TimedOut`](WaitError::TimedOut) if the work was not done by then.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use requeue::std::WorkQueue;
    ///
    /// let queue = WorkQueue::new();
    /// let _ = queue.add("node-7");
    /// assert!(queue.flush_timeout("node-7", Duration::ZERO).is_err());
    /// assert!(queue.flush_timeout("node-8", Duration::ZERO).is_ok(), "it has no work");
    /// ```
    pub fn flush_timeout<B>(&self, key: &B, timeout: Duration) -> Result<(), WaitError>
    where
        K: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        let mut flush = self.shared.with(|session| session.begin_flush(key));
        self.watch(Some(timeout), |session| session.poll_flush(key, &mut flush))
    }

    /// [Cancels](Self::cancel) a key, and waits until its present run has ended. Returns the state
    /// that the key had, as `cancel` does. Costs as [`flush`](Self::flush).
    ///
    /// The run can ask [`Guard::is_cancelled`](requeue_core::Guard::is_cancelled). Does not wait for
    /// keys that are added meanwhile. A worker that has the key's guard waits for itself.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::std::WorkQueue;
    ///
    /// let queue = WorkQueue::new();
    /// let _ = queue.add("node-7");
    /// let guard = queue.get().unwrap();
    /// std::thread::scope(|scope| {
    ///     let cancels = scope.spawn(|| queue.cancel_and_wait("node-7"));
    ///     guard.success();
    ///     cancels.join().unwrap();
    /// });
    /// assert!(!queue.contains("node-7"));
    /// ```
    pub fn cancel_and_wait<B>(&self, key: &B) -> Option<KeyState>
    where
        K: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        let (was, mut flush) = self
            .shared
            .with(|session| (session.cancel(key), session.begin_flush(key)));
        let _ = self.watch(None, |session| session.poll_flush(key, &mut flush));
        was
    }
}

/// Control.
impl<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage> WorkQueue<K, P, L, S> {
    face!(control);

    /// Wakes every waiting call, so that it looks at the queue and at the clock again. A
    /// [`ManualClock`](crate::ManualClock) that moves does so itself. O(n) in the waiting calls.
    pub fn wake_all(&self) {
        self.shared.wake_all();
    }
}

/// Limits and groups.
impl<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage> WorkQueue<K, P, L, S> {
    face!(limits);
}

/// Limits of queues that grow.
impl<K: Eq + Hash, L: RateLimiter, B: std::hash::BuildHasher, P: requeue_core::priority::Priorities>
    WorkQueue<K, P, L, Growable<B>>
{
    requeue_core::queue_face! {
        growing: "requeue::std", "# let queue = requeue::std::example();"
    }
}

/// Shutting down.
impl<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage> WorkQueue<K, P, L, S> {
    /// Shuts the queue down and waits until no key is ready, dirty or active. Any number of threads
    /// may wait.
    ///
    /// Waits for ever without workers, for a leaked guard, and if a worker calls it while it has a
    /// guard, as in [`on_give_up`](crate::Workers::on_give_up). Use
    /// [`drain_timeout`](Self::drain_timeout) there. Does not wait for delayed or suspended keys:
    /// [`leftovers`](Self::leftovers) returns them.
    ///
    /// # Errors
    ///
    /// [`Interrupted`](WaitError::Interrupted) if another call shuts the queue down meanwhile.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::std::WorkQueue;
    ///
    /// let queue = WorkQueue::new();
    /// let _ = queue.add_many(["node-7", "node-8"]);
    /// std::thread::scope(|scope| {
    ///     scope.spawn(|| {
    ///         while let Ok(guard) = queue.get() {
    ///             guard.success();
    ///         }
    ///     });
    ///     assert_eq!(queue.drain(), Ok(()));
    /// });
    /// assert!(!queue.contains(&"node-8"));
    /// ```
    #[doc(alias = "ShutDownWithDrain")]
    pub fn drain(&self) -> Result<(), WaitError> {
        self.drain_within(None)
    }

    /// As [`drain`](Self::drain), but waits no longer than `timeout`.
    ///
    /// # Errors
    ///
    /// As [`drain`](Self::drain), and [`TimedOut`](WaitError::TimedOut) if the queue was not drained
    /// by then. It is shut down all the same.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use requeue::std::{WaitError, WorkQueue};
    ///
    /// let queue = WorkQueue::new();
    /// let _ = queue.add("node-7");
    /// let guard = queue.get().unwrap();
    /// assert_eq!(queue.drain_timeout(Duration::ZERO), Err(WaitError::TimedOut));
    /// guard.success();
    /// assert_eq!(queue.drain_timeout(Duration::ZERO), Ok(()));
    /// ```
    pub fn drain_timeout(&self, timeout: Duration) -> Result<(), WaitError> {
        self.drain_within(Some(timeout))
    }

    /// Waits until another call has shut the queue down, and no key is ready, dirty or active. Any
    /// number of threads may wait.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::std::WorkQueue;
    ///
    /// let queue = WorkQueue::new();
    /// let _ = queue.add("node-7");
    /// std::thread::scope(|scope| {
    ///     let drained = scope.spawn(|| queue.wait_drained());
    ///     queue.get().unwrap().success();
    ///     queue.shut_down();
    ///     drained.join().unwrap();
    /// });
    /// ```
    pub fn wait_drained(&self) {
        let _ = self.watch(None, |session| session.poll_drain(None));
    }

    face!(closing);
}

// The loop of each call that waits.
impl<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage> WorkQueue<K, P, L, S> {
    #[cold]
    pub(crate) fn wait_for_key(
        &self,
        deadline: Option<Instant>,
    ) -> Result<Guard<'_, K, P, L, S>, WaitError>
    where
        K: Clone,
    {
        let call = Wait::for_key(&*self.shared);
        let work = block_on(call, deadline, |session, getter| session.poll_get(getter))?;
        Ok(Guard::new(work, &*self.shared))
    }

    fn drain_within(&self, timeout: Option<Duration>) -> Result<(), WaitError> {
        let drain = self.shared.begin_drain();
        let ended = self.watch(timeout, |session| session.poll_drain(Some(&drain)));
        ended?.into_result()
    }

    pub(crate) fn add_until(
        &self,
        key: K,
        options: AddOptions,
        deadline: Option<Instant>,
    ) -> Result<Scheduled, Rejected<K>> {
        let mut adding = Adding::new(key, options);
        let call = Wait::for_room(&*self.shared);
        let deadline = adding.deadline(deadline);
        let waited = block_on(call, deadline, |session, getter| {
            session.poll_add(&mut adding, getter)
        });
        adding.into_result(waited)
    }

    /// Looks until a state of the queue has come. An error says that it has not in time.
    fn watch<T>(
        &self,
        timeout: Option<Duration>,
        mut look: impl FnMut(&mut Access<'_, ThreadHost<K, P, L, S>>) -> Next<T>,
    ) -> Result<T, WaitError> {
        let deadline = timeout.map(|timeout| self.now() + timeout);
        let call = Wait::for_state(&*self.shared);
        block_on(call, deadline, |session, _| look(session))
    }
}

/// Looks until there is a result, and sleeps in between.
#[cold]
pub(crate) fn block_on<'q, H: Host<Clock = QueueClock>, T>(
    mut call: Wait<H, &'q Shared<H>>,
    deadline: Option<Instant>,
    mut look: impl FnMut(&mut Access<'_, H>, &mut Getter) -> Next<T>,
) -> Result<T, WaitError> {
    let queue: &'q Shared<H> = call.queue();
    Parker::with(|parker| {
        loop {
            match call.look(parker.waker(), deadline, &mut look) {
                Look::Done(result) => return result,
                Look::Sleep { until } => queue.clock().park(parker, until),
            }
        }
    })
}
