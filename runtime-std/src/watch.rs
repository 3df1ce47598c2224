//! Waiting until the queue, or a key, has no more work.

use std::borrow::Borrow;
use std::hash::Hash;
use std::time::Duration;

use requeue_core::binding::{Access, Next, Wait};
use requeue_core::{KeyState, RateLimiter, Storage};

use crate::queue::{ThreadHost, WorkQueue};

impl<K: Eq + Hash, L: RateLimiter, S: Storage> WorkQueue<K, L, S> {
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
        self.watch(None, |session| session.poll_idle());
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
        self.watch(Some(timeout), |session| session.poll_idle())
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
        self.watch(None, |session| session.poll_settled());
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
        self.watch(Some(timeout), |session| session.poll_settled())
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
        self.watch(None, |session| session.poll_flush(key, &mut flush));
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
        self.watch(Some(timeout), |session| session.poll_flush(key, &mut flush))
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
        self.watch(None, |session| session.poll_flush(key, &mut flush));
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
        let has_ended = self.watch(Some(timeout), |session| session.poll_flush(key, &mut flush));
        (was, has_ended)
    }

    /// Looks until a state of the queue has come. Returns false if it has not in time.
    fn watch(
        &self,
        timeout: Option<Duration>,
        mut look: impl FnMut(&mut Access<'_, ThreadHost<K, L, S>>) -> Next<()>,
    ) -> bool {
        let deadline = timeout.map(|timeout| self.clock().now() + timeout);
        let call = Wait::for_state(&*self.shared);
        self.wait(call, deadline, |session, _| look(session))
            .is_ok()
    }
}
