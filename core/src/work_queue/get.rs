//! For tasks: waiting for keys.

use core::hash::Hash;
use core::ops::Deref;
use core::time::Duration;

use crate::Instant;
use crate::action::Action;
use crate::guard::Guard;
use crate::limiter::RateLimiter;
use crate::lock::Lock;
use crate::metrics::Metrics;
use crate::outcome::GetError;
use crate::storage::Storage;
use crate::timer::Timer;
use crate::wait::{Wait, WaitList};

use super::{State, WorkQueue};

impl<K, S, L, M, W, Q, C> WorkQueue<Q, C>
where
    K: Eq + Hash + Clone,
    S: Storage,
    L: RateLimiter,
    M: Metrics,
    W: WaitList,
    Q: Lock<State = State<K, S, L, M, W>>,
    C: Timer,
{
    /// Returns the first ready key; waits for one if there is none. Costs as
    /// [`try_get`](Self::try_get) for each look, of which there is one for each wake.
    ///
    /// On a runtime whose tasks have no [turns](Timer::in_turn), a task that finds a key every time
    /// does not let others run. Await something else now and then.
    ///
    /// # Errors
    ///
    /// [`GetError::Closed`] once the queue is shut down and no key is ready;
    /// [`GetError::TooManyWaiters`] if there is neither a key nor a place to wait for one. A call
    /// that has been woken keeps its place until it ends, and does not meet this.
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
    #[doc = include_str!("example_tasks.txt")]
    /// let mut get = pin!(queue.get());
    /// assert!(poll(get.as_mut()).is_pending());
    /// let _ = queue.add("node-7");
    /// let Poll::Ready(Ok(guard)) = poll(get) else {
    ///     panic!("a key is ready");
    /// };
    /// assert_eq!((*guard, guard.attempt()), ("node-7", 1));
    /// guard.success().unwrap();
    ///
    /// queue.shut_down();
    /// let Poll::Ready(Err(GetError::Closed)) = poll(pin!(queue.get())) else {
    ///     panic!("there are no more keys");
    /// };
    /// ```
    #[doc(alias = "Get")]
    pub fn get(&self) -> impl Future<Output = Result<Guard<K, &Self>, GetError>> {
        Wait::for_key(self).get(None, move |work| Ok(Guard::new(work?, self)))
    }

    /// As [`get`](Self::get), but waits no longer than `timeout`, counted from the first poll.
    /// [`Duration::MAX`] waits as [`get`](Self::get) does.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get), and [`GetError::TimedOut`] if no key was ready in time.
    ///
    /// # Cancel safety
    ///
    /// As [`get`](Self::get).
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example_tasks.txt")]
    /// let get = pin!(queue.get_timeout(Duration::ZERO));
    /// assert!(matches!(poll(get), Poll::Ready(Err(GetError::TimedOut))));
    /// ```
    pub async fn get_timeout(&self, timeout: Duration) -> Result<Guard<K, &Self>, GetError> {
        self.get_deadline(self.clock.now() + timeout).await
    }

    /// As [`get`](Self::get), but waits no longer than until `deadline` of the queue's clock. A key
    /// that is ready is returned even if the deadline has passed.
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
    #[doc = include_str!("example_tasks.txt")]
    /// let _ = queue.add("node-7");
    /// // One second for a whole round, however long each key takes.
    /// let deadline = queue.clock().now() + Duration::from_secs(1);
    /// let get = pin!(queue.get_deadline(deadline));
    /// assert!(matches!(poll(get), Poll::Ready(Ok(_))));
    /// ```
    pub fn get_deadline(
        &self,
        deadline: Instant,
    ) -> impl Future<Output = Result<Guard<K, &Self>, GetError>> {
        Wait::for_key(self).get(Some(deadline), move |work| Ok(Guard::new(work?, self)))
    }

    /// Ends a run and returns the next key, under one lock: what a worker's loop does. Waits as
    /// [`get`](Self::get). Costs as [`finish`](Self::finish) and [`get`](Self::get) together.
    ///
    /// A guard of another queue ends its run in that queue. Finish the guard yourself to learn what
    /// became of the key.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    ///
    /// # Cancel safety
    ///
    /// The run ends in any case, even if the future is dropped before its first poll. After that as
    /// [`get`](Self::get).
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example_tasks.txt")]
    /// queue.add_many(["node-7", "node-8"], |_| {});
    /// queue.shut_down();
    ///
    /// let work = pin!(async {
    ///     let mut seen = Vec::new();
    ///     let mut next = queue.get().await;
    ///     while let Ok(guard) = next {
    ///         seen.push(*guard);
    ///         next = queue.next(guard, Action::Success).await;
    ///     }
    ///     seen
    /// });
    /// assert_eq!(poll(work), Poll::Ready(vec!["node-7", "node-8"]));
    /// ```
    pub fn next<G>(
        &self,
        guard: Guard<K, G>,
        action: Action,
    ) -> impl Future<Output = Result<Guard<K, &Self>, GetError>>
    where
        G: Deref<Target = Self>,
    {
        Wait::after(guard, action, self).get(None, move |work| Ok(Guard::new(work?, self)))
    }
}
