//! Waiting for room.

use std::hash::Hash;

use requeue_core::binding::{Adding, Wait};
use requeue_core::{AddOptions, Added, RateLimiter, Rejected, Scheduled, Storage};

use crate::queue::WorkQueue;

impl<K: Eq + Hash, L: RateLimiter, S: Storage> WorkQueue<K, L, S> {
    /// As [`add`](requeue_core::binding::WorkQueue::add), but waits for room if the key is new and
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
    /// # Cancel safety
    ///
    /// Dropping the future before it is ready adds nothing, and drops the key. Its turn passes on.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_tokio::core::{Fixed, NoLimit, Reporter};
    /// use requeue_tokio::{Added, Queue, WorkQueue};
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() {
    /// let bounded: WorkQueue<u16, NoLimit, Fixed<2>> =
    ///     Queue::with_metrics(NoLimit, Reporter::NONE).into();
    /// tokio::spawn({
    ///     let bounded = bounded.clone();
    ///     async move {
    ///         while let Some(guard) = bounded.get().await {
    ///             guard.success().unwrap();
    ///         }
    ///     }
    /// });
    /// // The producer is as fast as the worker.
    /// for sensor in 0..100 {
    ///     assert_eq!(bounded.add_wait(sensor).await, Ok(Added::Ready));
    /// }
    /// # }
    /// ```
    pub async fn add_wait(&self, key: K) -> Result<Added, Rejected<K>> {
        let scheduled = self.add_wait_with(key, AddOptions::new()).await;
        scheduled.map(|scheduled| scheduled.added)
    }

    /// As [`add_with`](requeue_core::binding::WorkQueue::add_with), but waits for room as
    /// [`add_wait`](Self::add_wait) does. A delay begins once there is room.
    ///
    /// # Errors
    ///
    /// As [`add_wait`](Self::add_wait), and if the queue has no such priority level.
    ///
    /// # Cancel safety
    ///
    /// As [`add_wait`](Self::add_wait).
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_tokio::{AddOptions, WorkQueue};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let queue = WorkQueue::builder().levels::<2>().build();
    /// let urgent = AddOptions { priority: Some(1), ..AddOptions::new() };
    /// queue.add_wait_with("node-7", urgent).await.unwrap();
    /// assert_eq!(queue.state("node-7").unwrap().priority, 1);
    /// # }
    /// ```
    pub async fn add_wait_with(
        &self,
        key: K,
        options: AddOptions,
    ) -> Result<Scheduled, Rejected<K>> {
        let mut adding = Adding::new(key, options);
        let call = Wait::for_room(&*self.shared);
        let deadline = adding.deadline(None);
        // Without a deadline it ends only when the key is added or refused.
        let _ = self
            .wait(call, deadline, |queue, now, getter| {
                queue.poll_add(&mut adding, now, getter)
            })
            .await;
        adding.into_result()
    }
}
