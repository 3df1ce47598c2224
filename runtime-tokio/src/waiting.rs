//! What waits, on Tokio: the getters, whose guards own a handle to the queue, and the stream of
//! guards.
//!
//! Nothing here decides when a call is woken, or what it finds: core does.

use std::fmt;
use std::hash::Hash;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_core::Stream;
use requeue_core::binding::{Clock, Next, Wait, try_in_turn};
use requeue_core::{
    Action, DefaultController, GetError, Growable, Instant, Plain, Priorities, RateLimiter, Storage,
};
use tokio::time::Sleep;

use crate::clock::TokioClock;
use crate::queue::{Batch, Guard, Shared, TaskHost, WorkQueue};

impl<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage> WorkQueue<K, P, L, S> {
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
    pub async fn get(&self) -> Option<Guard<K, P, L, S>>
    where
        K: Clone,
    {
        let mut work =
            try_in_turn::<TokioClock, _>(|| self.with(|session| session.try_get())).await;
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
    pub fn try_get(&self) -> Option<Guard<K, P, L, S>>
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
    pub async fn get_timeout(&self, timeout: Duration) -> Result<Guard<K, P, L, S>, GetError>
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
    ) -> Result<Guard<K, P, L, S>, GetError>
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
    pub async fn get_many(&self, max: usize) -> Option<Batch<K, P, L, S>>
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
        guard: Guard<K, P, L, S>,
        action: Action,
    ) -> impl Future<Output = Option<Guard<K, P, L, S>>>
    where
        K: Clone,
    {
        let mut call = Wait::after(guard, action, &*self.shared);
        async move {
            let mut work = try_in_turn::<TokioClock, _>(|| call.try_get()).await;
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
    pub fn guards(&self) -> Guards<K, P, L, S> {
        Guards::new(self)
    }

    async fn get_until(&self, deadline: Instant) -> Result<Guard<K, P, L, S>, GetError>
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
                if session.is_shutting_down() {
                    Next::Work(())
                } else {
                    Next::Wait { until: None }
                }
            })
            .await;
    }
}

/// The keys of a queue as a [`Stream`] of [`Guard`]s; returned by [`WorkQueue::guards`].
///
/// It ends once the queue is shut down and no key is ready. In a drain it also waits for keys that
/// were added during their runs, which other tasks may end. Several streams share the keys.
///
/// # Cancel safety
///
/// A stream that was polled and has no key yet waits as a [`get`](WorkQueue::get) does, until it is
/// polled again or dropped. One that is kept without being polled holds back the wake that it
/// received. Dropping the stream, or a future that waits for its next key, loses no key.
///
/// # Examples
///
/// ```
/// use std::future::poll_fn;
/// use std::pin::Pin;
///
/// use futures_core::Stream;
/// use requeue_tokio::WorkQueue;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let queue = WorkQueue::new();
/// queue.add_many(["a", "b"], |_| {});
/// queue.shut_down();
///
/// let mut guards = queue.guards();
/// let mut seen = Vec::new();
/// // `futures::StreamExt` has many shorter ways to write this.
/// while let Some(guard) = poll_fn(|cx| Pin::new(&mut guards).poll_next(cx)).await {
///     seen.push(*guard);
///     guard.success().unwrap();
/// }
/// assert_eq!(seen, ["a", "b"]);
/// # }
/// ```
#[must_use = "a stream does nothing unless it is polled"]
pub struct Guards<K, P = Plain, L = DefaultController, S = Growable>
where
    K: Eq + Hash,
    P: Priorities,
    L: RateLimiter,
    S: Storage,
{
    call: Call<K, P, L, S>,
    alarm: Pin<Box<Option<Sleep>>>,
}

/// A call that outlives the borrow of its queue.
type Call<K, P, L, S> = Wait<TaskHost<K, P, L, S>, Arc<Shared<K, P, L, S>>>;

impl<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage> Guards<K, P, L, S> {
    pub(crate) fn new(queue: &WorkQueue<K, P, L, S>) -> Self {
        Self {
            call: Wait::for_key(Arc::clone(&queue.shared)),
            alarm: Box::pin(None),
        }
    }
}

impl<K: Eq + Hash + Clone, P: Priorities, L: RateLimiter, S: Storage> Stream
    for Guards<K, P, L, S>
{
    type Item = Guard<K, P, L, S>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        let alarm = this.alarm.as_mut();
        let work = ready!(this.call.poll(context, alarm, None, |session, getter| {
            session.poll_get(getter)
        }));
        let queue = Arc::clone(this.call.queue());
        Poll::Ready(work.ok().map(|work| Guard::new(work, queue)))
    }
}

impl<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage> fmt::Debug for Guards<K, P, L, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Guards").field(self.call.queue()).finish()
    }
}
