//! Taking keys: the getters, and how they wait.

use std::future::poll_fn;
use std::hash::Hash;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use requeue_core::{
    Clock, Completion, Effect, GetError, Getter, Instant, Leftover, Metrics, Next, Queue,
    RateLimiter, Storage, Turn,
};

use crate::queue::{Batch, Guard, Shared, WorkQueue};
use crate::stream::Guards;
use crate::waiting::{State, Waiting};

impl<K, L, M, S> WorkQueue<K, L, M, S>
where
    K: Eq + Hash + Clone,
    L: RateLimiter,
    M: Metrics,
    S: Storage,
{
    /// Hands out the first ready key; waits for one if there is none. Nothing once the queue is
    /// shut down and no key is ready.
    ///
    /// # Cancel safety
    ///
    /// No key is lost: dropping the future before it is ready takes nothing out of the queue. If it
    /// had been woken, or watched the clock, another task takes that over. It loses its place in
    /// line.
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
    /// assert_eq!((*guard, guard.attempt()), ("node-7", 1));
    /// guard.forget().unwrap();
    ///
    /// queue.shut_down();
    /// assert!(queue.get().await.is_none());
    /// # }
    /// ```
    pub async fn get(&self) -> Option<Guard<K, L, M, S>> {
        let work = self.wait(None, Queue::get).await.ok()?;
        Some(Guard::new(work, Arc::clone(&self.shared)))
    }

    /// Hands out the first ready key, if there is one. O(1). Never waits but for the lock.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_tokio::WorkQueue;
    ///
    /// let queue = WorkQueue::new();
    /// assert!(queue.try_get().is_none());
    /// queue.add("node-7").unwrap();
    /// queue.try_get().unwrap().forget().unwrap();
    /// ```
    pub fn try_get(&self) -> Option<Guard<K, L, M, S>> {
        let work = self.act(Queue::try_get)?;
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
    /// queue.add("node-7").unwrap();
    /// match queue.get_timeout(Duration::from_secs(1)).await {
    ///     Ok(guard) => guard.forget().map(drop).unwrap(),
    ///     Err(GetError::TimedOut) => println!("nothing to do: time for something else"),
    ///     Err(error) => println!("stopping: {error}"),
    /// }
    /// assert!(!queue.contains(&"node-7"));
    /// # }
    /// ```
    pub async fn get_timeout(&self, timeout: Duration) -> Result<Guard<K, L, M, S>, GetError> {
        self.get_until(self.clock().now() + timeout).await
    }

    /// As [`get`](Self::get), but waits no longer than until `deadline`. A key that is ready is
    /// handed out even if the deadline has passed.
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
    /// queue.add_after("lease-3", Duration::from_secs(60)).unwrap();
    /// let deadline = Instant::now() + Duration::from_secs(30);
    /// assert!(queue.get_deadline(deadline).await.is_err());
    /// assert_eq!(Instant::now(), deadline);
    /// # }
    /// ```
    pub async fn get_deadline(
        &self,
        deadline: tokio::time::Instant,
    ) -> Result<Guard<K, L, M, S>, GetError> {
        self.get_until(self.clock().at(deadline)).await
    }

    /// Hands out up to `max` ready keys, one at least, under one lock; waits for the first if there
    /// is none. Nothing once the queue is shut down and no key is ready. O(1) per key.
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
    /// batch.done().unwrap();
    /// assert_eq!(queue.len(), 2);
    /// # }
    /// ```
    pub async fn get_many(&self, max: usize) -> Option<Batch<K, L, M, S>> {
        // A batch from the start: if a key's clone panics, those before it are given back.
        let work = Vec::with_capacity(max.min(BATCH_RESERVE_MAX));
        let mut batch = Batch::new(work, Arc::clone(&self.shared));
        self.wait(None, |queue, now, getter| {
            queue.get_many(max, now, getter, |taken| batch.push(taken))
        })
        .await
        .ok()?;
        Some(batch)
    }

    /// Completes a key as told and hands out the next, under one lock: what a worker's loop does.
    /// Waits as [`get`](Self::get).
    ///
    /// A guard of another queue is completed there. To learn what became of the key, complete it by
    /// its guard.
    ///
    /// # Cancel safety
    ///
    /// The key is completed as told in any case, even if the future is dropped before its first
    /// poll. From then on as [`get`](Self::get).
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_tokio::{Completion, WorkQueue};
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
    ///     next = queue.next(guard, Completion::Succeeded).await;
    /// }
    /// assert_eq!(seen, ["a", "b"]);
    /// # }
    /// ```
    pub fn next(
        &self,
        guard: Guard<K, L, M, S>,
        completion: Completion,
    ) -> impl Future<Output = Option<Guard<K, L, M, S>>> {
        // Made before the first poll: the caller has said how it went, and may drop the future.
        let mut turn = Turn::new(&*self.shared, guard, completion);
        async move {
            let look = |state: &mut _, now, getter: &mut _| turn.look(state, now, getter);
            let work = self.wait(None, look).await.ok()?;
            Some(Guard::new(work, Arc::clone(&self.shared)))
        }
    }

    /// The keys as a [`Stream`](futures_core::Stream) of guards, which ends once the queue is shut
    /// down and no key is ready.
    pub fn guards(&self) -> Guards<K, L, M, S> {
        Guards::new(self.clone())
    }

    /// After shutdown: takes out every key that has not been worked on, ready keys first, then
    /// delayed ones in the order of their deadlines. Keys in work are not touched; nothing comes
    /// out before shutdown. O(log n) per key, each under a lock of its own.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use requeue_tokio::WorkQueue;
    ///
    /// let queue = WorkQueue::new();
    /// queue.add_after("lease-3", Duration::from_secs(60)).unwrap();
    /// queue.add("node-7").unwrap();
    /// queue.shut_down();
    /// let keys: Vec<_> = queue.leftovers().into_iter().map(|left| left.key).collect();
    /// assert_eq!(keys, ["node-7", "lease-3"]);
    /// ```
    pub fn leftovers(&self) -> Vec<Leftover<K>> {
        self.shared.leftovers().collect()
    }

    async fn get_until(&self, deadline: Instant) -> Result<Guard<K, L, M, S>, GetError> {
        let work = self.wait(Some(deadline), Queue::get).await?;
        Ok(Guard::new(work, Arc::clone(&self.shared)))
    }

    /// Looks until there is an answer, and sleeps in between.
    async fn wait<T>(
        &self,
        deadline: Option<Instant>,
        mut look: impl FnMut(&mut State<K, S, L, M>, Instant, &mut Getter) -> Effect<Next<T>>,
    ) -> Result<T, GetError> {
        let mut sleeper = Sleeper {
            queue: &self.shared,
            waiting: Waiting::default(),
        };
        let mut timer = pin!(None);
        poll_fn(|context| {
            let timer = timer.as_mut();
            sleeper
                .waiting
                .poll(sleeper.queue, context, timer, deadline, &mut look)
        })
        .await
    }
}

/// What `get_many` reserves at most before it knows how many keys there are.
const BATCH_RESERVE_MAX: usize = 64;

/// A call that waits for a key. However it ends, the queue is told if it has to know.
struct Sleeper<'q, K: Eq + Hash, L: RateLimiter, M: Metrics, S: Storage> {
    queue: &'q Shared<K, L, M, S>,
    waiting: Waiting,
}

impl<K: Eq + Hash, L: RateLimiter, M: Metrics, S: Storage> Drop for Sleeper<'_, K, L, M, S> {
    fn drop(&mut self) {
        self.waiting.end(self.queue);
    }
}
