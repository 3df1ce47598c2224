//! Taking keys: the getters, and how they wait.

use std::future::poll_fn;
use std::hash::Hash;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use requeue_core::binding::{Clock, Next, Timer, Wait};
use requeue_core::{Action, GetError, Instant, RateLimiter, Storage};

use crate::clock::TokioClock;
use crate::queue::{Batch, Guard, WorkQueue};
use crate::stream::Guards;

impl<K: Eq + Hash, L: RateLimiter, S: Storage> WorkQueue<K, L, S> {
    /// Returns the first ready key; waits for one if there is none. `None` once the queue is shut
    /// down and no key is ready.
    ///
    /// # Cancel safety
    ///
    /// No key is lost: dropping the future before it is ready takes no key out of the queue. If it
    /// was woken, or watched the clock, another task takes over. Only its place in the order is
    /// lost.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_tokio::WorkQueue;
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() {
    /// let queue = WorkQueue::new();
    /// let _ = queue.add("node-7");
    /// let guard = queue.get().await.unwrap();
    /// assert_eq!((*guard, guard.attempt()), ("node-7", 1));
    /// guard.success().unwrap();
    ///
    /// queue.shut_down();
    /// assert!(queue.get().await.is_none());
    /// # }
    /// ```
    #[must_use = "a guard that is dropped unreported counts as failed, and its key is retried"]
    pub async fn get(&self) -> Option<Guard<K, L, S>>
    where
        K: Clone,
    {
        // Most calls find a key, and need not be ones that can wait.
        let mut work = in_turn(|| self.with(|session| session.try_get())).await;
        if work.is_none() {
            let mut call = Wait::for_key(&*self.shared);
            work = call
                .wait(None, |session, getter| session.poll_get(getter))
                .await
                .ok();
        }
        Some(Guard::new(work?, Arc::clone(&self.shared)))
    }

    /// Returns the first ready key, if there is one. O(1). Does not wait, except for the lock.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_tokio::WorkQueue;
    ///
    /// let queue = WorkQueue::new();
    /// assert!(queue.try_get().is_none());
    /// let _ = queue.add("node-7");
    /// queue.try_get().unwrap().success().unwrap();
    /// ```
    #[must_use = "a guard that is dropped unreported counts as failed, and its key is retried"]
    pub fn try_get(&self) -> Option<Guard<K, L, S>>
    where
        K: Clone,
    {
        let work = self.with(|session| session.try_get())?;
        Some(Guard::new(work, Arc::clone(&self.shared)))
    }

    /// As [`get`](Self::get), but waits no longer than `timeout`, counted from the first poll.
    /// [`Duration::MAX`] waits as [`get`](Self::get) does.
    ///
    /// # Errors
    ///
    /// [`GetError`]: no key was ready in time, or the queue is shut down.
    ///
    /// # Cancel safety
    ///
    /// As [`get`](Self::get).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use requeue_tokio::{GetError, WorkQueue};
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() {
    /// let queue = WorkQueue::new();
    /// let _ = queue.add("node-7");
    /// match queue.get_timeout(Duration::from_secs(1)).await {
    ///     Ok(guard) => guard.success().map(drop).unwrap(),
    ///     Err(GetError::TimedOut) => println!("nothing to do: time for something else"),
    ///     Err(error) => println!("stopping: {error}"),
    /// }
    /// assert!(!queue.contains(&"node-7"));
    /// # }
    /// ```
    #[must_use = "a guard that is dropped unreported counts as failed, and its key is retried"]
    pub async fn get_timeout(&self, timeout: Duration) -> Result<Guard<K, L, S>, GetError>
    where
        K: Clone,
    {
        self.get_until(self.clock().now() + timeout).await
    }

    /// As [`get`](Self::get), but waits no longer than until `deadline`. A key that is ready is
    /// returned even if the deadline has passed.
    ///
    /// # Errors
    ///
    /// As [`get_timeout`](Self::get_timeout).
    ///
    /// # Cancel safety
    ///
    /// As [`get`](Self::get).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use requeue_tokio::WorkQueue;
    /// use tokio::time::Instant;
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() {
    /// let queue = WorkQueue::new();
    /// let _ = queue.add_after("lease-3", Duration::from_secs(60));
    /// let deadline = Instant::now() + Duration::from_secs(30);
    /// assert!(queue.get_deadline(deadline).await.is_err());
    /// assert_eq!(Instant::now(), deadline);
    /// # }
    /// ```
    #[must_use = "a guard that is dropped unreported counts as failed, and its key is retried"]
    pub async fn get_deadline(
        &self,
        deadline: tokio::time::Instant,
    ) -> Result<Guard<K, L, S>, GetError>
    where
        K: Clone,
    {
        self.get_until(self.clock().at(deadline)).await
    }

    /// Returns up to `max` ready keys, at least one; waits for the first if there is none. `None`
    /// once the queue is shut down and no key is ready. O(1) per key.
    ///
    /// Takes the lock once for up to [`KEYS_PER_LOCK`](requeue_core::binding::KEYS_PER_LOCK) keys.
    /// Of more, another worker may get some in between.
    ///
    /// # Cancel safety
    ///
    /// As [`get`](Self::get).
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_tokio::WorkQueue;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let queue = WorkQueue::new();
    /// queue.add_many(0..5, |rejected| panic!("{rejected}"));
    /// let batch = queue.get_many(3).await.unwrap();
    /// assert_eq!(batch.keys().copied().collect::<Vec<_>>(), [0, 1, 2]);
    /// batch.success().unwrap();
    /// assert_eq!(queue.len(), 2);
    /// # }
    /// ```
    #[must_use = "a batch that is dropped unreported counts as failed, and its keys are retried"]
    pub async fn get_many(&self, max: usize) -> Option<Batch<K, L, S>>
    where
        K: Clone,
    {
        Batch::wait(Arc::clone(&self.shared), max).await.ok()
    }

    /// Ends a run and returns the next key, under one lock: what a worker's loop does. Waits as
    /// [`get`](Self::get).
    ///
    /// A guard of another queue ends its run in that queue. Finish the guard yourself to learn what
    /// became of the key.
    ///
    /// # Cancel safety
    ///
    /// The run ends in any case, even if the future is dropped before its first poll. After that as
    /// [`get`](Self::get).
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_tokio::{Action, WorkQueue};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let queue = WorkQueue::new();
    /// queue.add_many(["a", "b"], |_| {});
    /// queue.shut_down();
    ///
    /// let mut seen = Vec::new();
    /// let mut next = queue.get().await;
    /// while let Some(guard) = next {
    ///     seen.push(*guard);
    ///     next = queue.next(guard, Action::Success).await;
    /// }
    /// assert_eq!(seen, ["a", "b"]);
    /// # }
    /// ```
    pub fn next(
        &self,
        guard: Guard<K, L, S>,
        action: Action,
    ) -> impl Future<Output = Option<Guard<K, L, S>>>
    where
        K: Clone,
    {
        let mut call = Wait::after(guard, action, &*self.shared);
        async move {
            let mut work = in_turn(|| call.try_get()).await;
            if work.is_none() {
                work = call
                    .wait(None, |session, getter| session.poll_get(getter))
                    .await
                    .ok();
            }
            Some(Guard::new(work?, Arc::clone(&self.shared)))
        }
    }

    /// Returns the keys as a [`Stream`](futures_core::Stream) of guards, which ends once the queue
    /// is shut down and no key is ready.
    pub fn guards(&self) -> Guards<K, L, S> {
        Guards::new(self)
    }

    async fn get_until(&self, deadline: Instant) -> Result<Guard<K, L, S>, GetError>
    where
        K: Clone,
    {
        let call = Wait::for_key(&*self.shared);
        call.get(Some(deadline), |work| {
            Ok(Guard::new(work?, Arc::clone(&self.shared)))
        })
        .await
    }

    /// Waits until the queue has been shut down.
    pub(crate) async fn closed(&self) {
        let mut call = Wait::for_state(&*self.shared);
        // Without a deadline it ends only when the queue is closed.
        let _ = call
            .wait(None, |session, _| {
                if session.shutting_down() {
                    Next::Work(())
                } else {
                    Next::Wait { until: None }
                }
            })
            .await;
    }
}

/// Does what does not wait, when it is the turn of the task. A worker's loop uses this instead of
/// [`Wait::get`], because each future around another costs it instructions.
pub(crate) fn in_turn<T>(mut act: impl FnMut() -> T) -> impl Future<Output = T> {
    poll_fn(move |context| TokioClock::in_turn(context, |_| Poll::Ready(act())))
}
