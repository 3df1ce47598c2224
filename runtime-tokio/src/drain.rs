//! Ending the queue, and waiting for the drain.

use std::hash::Hash;
use std::time::Duration;

use requeue_core::binding::{Clock, Wait};
use requeue_core::{Drained, Instant, Queue, RateLimiter, Storage};

use crate::queue::WorkQueue;

impl<K: Eq + Hash, L: RateLimiter, S: Storage> WorkQueue<K, L, S> {
    /// Shuts the queue down and waits until no key is ready, dirty or active. Any number of tasks
    /// may wait. Returns how the drain ended: a
    /// [`shut_down`](requeue_core::binding::WorkQueue::shut_down) meanwhile interrupts it.
    ///
    /// Without workers it waits for ever. So it does for a guard that was leaked, and if a worker
    /// calls it while it holds a guard, as in [`on_give_up`](crate::Workers::on_give_up): use
    /// [`drain_timeout`](Self::drain_timeout) there. Delayed keys are not waited for:
    /// [`leftovers`](Self::leftovers) returns them.
    ///
    /// # Cancel safety
    ///
    /// The queue is shut down by the first poll. Dropping the future ends the wait and changes
    /// nothing else.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_tokio::{Drained, WorkQueue};
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() {
    /// let queue = WorkQueue::new();
    /// queue.add_many(["node-7", "node-8"], |_| {});
    /// let worker = tokio::spawn({
    ///     let queue = queue.clone();
    ///     async move {
    ///         while let Some(guard) = queue.get().await {
    ///             guard.success().unwrap();
    ///         }
    ///     }
    /// });
    /// assert_eq!(queue.drain().await, Drained::Complete);
    /// assert!(!queue.contains(&"node-8"));
    /// # worker.await.unwrap();
    /// # }
    /// ```
    #[doc(alias = "ShutDownWithDrain")]
    pub async fn drain(&self) -> Drained {
        self.drain_until(None).await
    }

    /// As [`drain`](Self::drain), but waits no longer than `timeout`, and then returns
    /// [`Drained::Pending`]. The queue is shut down all the same.
    ///
    /// # Cancel safety
    ///
    /// As [`drain`](Self::drain).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use requeue_tokio::{Drained, WorkQueue};
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() {
    /// let queue = WorkQueue::new();
    /// queue.add("node-7").unwrap();
    /// let guard = queue.get().await.unwrap();
    /// let ten_seconds = Duration::from_secs(10);
    /// assert_eq!(queue.drain_timeout(ten_seconds).await, Drained::Pending);
    /// guard.release().unwrap();
    /// assert_eq!(queue.drain_timeout(ten_seconds).await, Drained::Complete);
    /// # }
    /// ```
    pub async fn drain_timeout(&self, timeout: Duration) -> Drained {
        self.drain_until(Some(self.clock().now() + timeout)).await
    }

    /// Waits until the queue has been shut down by another call, and nothing is ready, dirty or
    /// active. Any number of tasks may wait.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the wait.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_tokio::WorkQueue;
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() {
    /// let queue = WorkQueue::new();
    /// queue.add("node-7").unwrap();
    /// let flushed = tokio::spawn({
    ///     let queue = queue.clone();
    ///     async move { queue.drained().await }
    /// });
    /// queue.get().await.unwrap().success().unwrap();
    /// queue.shut_down();
    /// flushed.await.unwrap();
    /// # }
    /// ```
    pub async fn drained(&self) {
        let call = Wait::for_state(&*self.shared);
        let look = |queue: &mut Queue<_, _, _, _>, _, _: &mut _| queue.poll_drain(None);
        // Without a deadline it ends only when the queue has drained.
        let _ = self.wait(call, None, look).await;
    }

    async fn drain_until(&self, deadline: Option<Instant>) -> Drained {
        let drain = self.begin_drain();
        let call = Wait::for_state(&*self.shared);
        let look = |queue: &mut Queue<_, _, _, _>, _, _: &mut _| queue.poll_drain(Some(&drain));
        let ended = self.wait(call, deadline, look).await;
        ended.unwrap_or(Drained::Pending)
    }
}
