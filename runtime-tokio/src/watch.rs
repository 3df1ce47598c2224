//! Waiting until the queue, or a key, has no more work.

use std::borrow::Borrow;
use std::hash::Hash;

use requeue_core::binding::{Effect, Next, Wait};
use requeue_core::{Instant, KeyState, Queue, RateLimiter, Reporter, Storage};

use crate::queue::WorkQueue;

impl<K: Eq + Hash, L: RateLimiter, S: Storage> WorkQueue<K, L, S> {
    /// Waits until no key is ready or active. Delayed keys are not waited for until they are due.
    /// Any number of tasks may wait, also after shutdown.
    ///
    /// Without workers it waits for ever if a key is ready, and so it does while the queue is
    /// [paused](requeue_core::binding::WorkQueue::pause), or if a worker calls it while it holds a
    /// guard. A task that waits costs the queue one look each time it may be idle.
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
    /// queue.add_many(["node-7", "node-8"], |_| {});
    /// tokio::spawn({
    ///     let queue = queue.clone();
    ///     async move {
    ///         while let Some(guard) = queue.get().await {
    ///             guard.success().unwrap();
    ///         }
    ///     }
    /// });
    /// queue.wait_idle().await;
    /// assert!(!queue.contains("node-8"));
    /// // It takes keys as before.
    /// queue.add("node-9").unwrap();
    /// # }
    /// ```
    pub async fn wait_idle(&self) {
        self.watch(|queue, now| queue.poll_idle(now)).await;
    }

    /// Waits until no key is ready, active or delayed, so that nothing runs again unless it is
    /// added. Otherwise as [`wait_idle`](Self::wait_idle).
    ///
    /// After shutdown delayed keys stay until they are [taken](Self::leftovers).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the wait.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use requeue_tokio::WorkQueue;
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() {
    /// let queue = WorkQueue::new();
    /// queue.add_after("lease-3", Duration::from_secs(60)).unwrap();
    /// let renewed = async {
    ///     queue.get().await.unwrap().success().unwrap();
    /// };
    /// tokio::join!(queue.wait_settled(), renewed);
    /// assert!(queue.is_settled());
    /// # }
    /// ```
    pub async fn wait_settled(&self) {
        self.watch(|queue, _| queue.poll_settled()).await;
    }

    /// Waits until the work of a key that is known at the first poll is done or cancelled: its
    /// present run, and one more if the key is ready or dirty. Returns at once if there is none.
    /// O(log n) to begin, and O(1) each time a run of any key has ended meanwhile.
    ///
    /// A delay is not waited for: [`expedite`](requeue_core::binding::WorkQueue::expedite) ends it
    /// first. If the key begins another run just as this looks, that is waited for too. A worker
    /// that holds the key's guard waits for itself.
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
    /// queue.add_many(["node-7", "node-8"], |_| {});
    /// let work = async {
    ///     queue.get().await.unwrap().success().unwrap();
    /// };
    /// tokio::join!(queue.flush("node-7"), work);
    /// assert!(!queue.contains("node-7"));
    /// assert!(queue.contains("node-8"), "the others are not waited for");
    /// # }
    /// ```
    pub async fn flush<B>(&self, key: &B)
    where
        K: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        let mut flush = self.with(|queue, now| queue.begin_flush(key, now));
        self.watch(|queue, _| queue.poll_flush(key, &mut flush))
            .await;
    }

    /// [Cancels](requeue_core::binding::WorkQueue::cancel) a key, and waits until its present run
    /// has ended. Returns what the key was, as `cancel` does. Costs as [`flush`](Self::flush).
    ///
    /// The run learns of it by [`Guard::is_cancelled`](requeue_core::Guard::is_cancelled). What is
    /// added meanwhile is not waited for. A worker that holds the key's guard waits for itself.
    ///
    /// # Cancel safety
    ///
    /// The key is cancelled by the first poll. Dropping the future ends the wait and changes
    /// nothing else.
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
    /// let guard = queue.get().await.unwrap();
    /// let run = async {
    ///     while !guard.is_cancelled() {
    ///         tokio::task::yield_now().await;
    ///     }
    ///     guard.success().unwrap();
    /// };
    /// let (was, ()) = tokio::join!(queue.cancel_and_wait("node-7"), run);
    /// assert!(was.unwrap().active);
    /// assert!(!queue.contains("node-7"));
    /// # }
    /// ```
    pub async fn cancel_and_wait<B>(&self, key: &B) -> Option<KeyState>
    where
        K: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        let (was, mut flush) = self.with(|queue, now| queue.begin_cancel(key, now));
        self.watch(|queue, _| queue.poll_flush(key, &mut flush))
            .await;
        was
    }

    /// Looks until a state of the queue has come.
    async fn watch(
        &self,
        mut look: impl FnMut(&mut Queue<K, S, L, Reporter>, Instant) -> Effect<Next<()>>,
    ) {
        let call = Wait::for_state(&*self.shared);
        // Without a deadline it ends only when the state has come.
        let _ = self
            .wait(call, None, |queue, now, _| look(queue, now))
            .await;
    }
}
