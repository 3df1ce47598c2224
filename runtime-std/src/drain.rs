//! Ending the queue, and waiting for the drain.

use std::hash::Hash;
use std::time::Duration;

use requeue_core::{Drain, Drained, Instant, Metrics, RateLimiter, Storage};

use crate::clock::Timer;
use crate::queue::WorkQueue;

impl<K, L, M, C, S> WorkQueue<K, L, M, C, S>
where
    K: Eq + Hash,
    L: RateLimiter,
    M: Metrics,
    S: Storage,
    C: Timer,
{
    /// Takes no more keys and waits until nothing is ready, dirty or in work, however many threads
    /// wait for that. Answers how it ended: a [`shut_down`](requeue_core::WorkQueue::shut_down)
    /// meanwhile interrupts it.
    ///
    /// Somebody has to do the work: without workers this waits for ever. A worker that calls it
    /// while it holds a guard waits for itself. Delayed keys are not waited for:
    /// [`leftovers`](Self::leftovers) hands them back.
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
    ///             guard.forget().unwrap();
    ///         }
    ///     });
    ///     assert_eq!(queue.shut_down_with_drain(), Drained::Complete);
    /// });
    /// assert!(!queue.contains(&"node-8"));
    /// ```
    pub fn shut_down_with_drain(&self) -> Drained {
        self.drain(None)
    }

    /// As [`shut_down_with_drain`](Self::shut_down_with_drain), but waits no longer than `timeout`:
    /// [`Drained::Pending`] says that it was not enough. The queue takes no more keys all the same.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use requeue_std::{Drained, WorkQueue};
    ///
    /// let queue = WorkQueue::new();
    /// queue.add("node-7").unwrap();
    /// let guard = queue.get().unwrap();
    /// assert_eq!(queue.drain_timeout(Duration::ZERO), Drained::Pending);
    /// drop(guard);
    /// assert_eq!(queue.drain_timeout(Duration::ZERO), Drained::Complete);
    /// ```
    pub fn drain_timeout(&self, timeout: Duration) -> Drained {
        self.drain(Some(self.clock().now() + timeout))
    }

    fn drain(&self, deadline: Option<Instant>) -> Drained {
        let drain: Drain = self.begin_drain();
        let mut state = self.lock().lock();
        loop {
            let drained = state.drained(&drain);
            if drained != Drained::Pending || self.is_past(deadline) {
                return drained;
            }
            self.clock()
                .wait(&self.waker().drains, &mut state, deadline);
        }
    }

    fn is_past(&self, deadline: Option<Instant>) -> bool {
        deadline.is_some_and(|deadline| self.clock().now() >= deadline)
    }
}
