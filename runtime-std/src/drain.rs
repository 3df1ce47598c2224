//! Ending the queue, and waiting for the drain.

use std::hash::Hash;
use std::time::Duration;

use requeue_core::binding::Wait;
use requeue_core::{Drained, Instant, RateLimiter, Storage};

use crate::queue::WorkQueue;

impl<K: Eq + Hash, L: RateLimiter, S: Storage> WorkQueue<K, L, S> {
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
        self.drain_until(None)
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
        self.drain_until(Some(self.clock().now() + timeout))
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
    ///     let drained = scope.spawn(|| queue.drained());
    ///     queue.get().unwrap().success().unwrap();
    ///     queue.shut_down();
    ///     drained.join().unwrap();
    /// });
    /// ```
    pub fn drained(&self) {
        let call = Wait::for_state(&*self.shared);
        // Without a deadline it ends only when the queue has drained.
        let _ = self.wait(call, None, |session, _| session.poll_drain(None));
    }

    fn drain_until(&self, deadline: Option<Instant>) -> Drained {
        let drain = self.begin_drain();
        let call = Wait::for_state(&*self.shared);
        let ended = self.wait(call, deadline, |session, _| {
            session.poll_drain(Some(&drain))
        });
        ended.unwrap_or(Drained::Pending)
    }
}
