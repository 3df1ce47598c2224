//! Taking keys: the getters, and how they wait.

use core::hash::Hash;
use core::time::Duration;

use embassy_sync::blocking_mutex::raw::RawMutex;
use requeue_core::binding::{Clock, Timer, Wait};
use requeue_core::{Action, GetError, Instant, Queue, RateLimiter};

use crate::logging;
use crate::parts::Parts;
use crate::queue::{Guard, WorkQueue};

impl<R, K, const N: usize, L, const WAITERS: usize, P> WorkQueue<R, K, N, L, WAITERS, P>
where
    R: RawMutex,
    K: Eq + Hash,
    L: RateLimiter,
    P: Parts<Clock: Timer>,
{
    /// Returns the first ready key; waits for one if there is none.
    ///
    /// A task that finds a key every time does not let others run. Await something else now and
    /// then, as [`run`](Self::run) does.
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
    /// use embassy_futures::block_on;
    /// use requeue_embassy::core::default_item_based;
    /// use requeue_embassy::raw::NoopRawMutex;
    /// use requeue_embassy::{GetError, WorkQueue};
    ///
    /// let queue: WorkQueue<NoopRawMutex, u16, 16> = WorkQueue::new(default_item_based());
    /// queue.add(7).unwrap();
    /// let guard = block_on(queue.get()).unwrap();
    /// assert_eq!((*guard, guard.attempt()), (7, 1));
    /// guard.success().unwrap();
    ///
    /// queue.shut_down();
    /// assert_eq!(block_on(queue.get()).unwrap_err(), GetError::Closed);
    /// ```
    #[must_use = "a guard that is dropped unreported counts as failed, and its key is retried"]
    pub async fn get(&self) -> Result<Guard<'_, R, K, N, L, WAITERS, P>, GetError>
    where
        K: Clone,
    {
        let mut call = Wait::for_key(&self.shared);
        let got = call.wait(None, Queue::poll_get).await;
        Ok(requeue_core::Guard::new(Self::logged(got)?, &self.shared))
    }

    /// As [`get`](Self::get), but waits no longer than `timeout`, counted from the first poll.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get), and [`GetError::TimedOut`] if no key was ready in time.
    ///
    /// # Cancel safety
    ///
    /// As [`get`](Self::get).
    #[must_use = "a guard that is dropped unreported counts as failed, and its key is retried"]
    pub async fn get_timeout(
        &self,
        timeout: Duration,
    ) -> Result<Guard<'_, R, K, N, L, WAITERS, P>, GetError>
    where
        K: Clone,
    {
        self.get_deadline(self.clock().now() + timeout).await
    }

    /// As [`get`](Self::get), but waits no longer than until `deadline` of the queue's clock:
    /// [`EmbassyClock::at`](crate::EmbassyClock::at) makes one of embassy-time's. A key that is
    /// ready is returned even if the deadline has passed.
    ///
    /// # Errors
    ///
    /// As [`get_timeout`](Self::get_timeout).
    ///
    /// # Cancel safety
    ///
    /// As [`get`](Self::get).
    #[must_use = "a guard that is dropped unreported counts as failed, and its key is retried"]
    pub async fn get_deadline(
        &self,
        deadline: Instant,
    ) -> Result<Guard<'_, R, K, N, L, WAITERS, P>, GetError>
    where
        K: Clone,
    {
        let mut call = Wait::for_key(&self.shared);
        let got = call.wait(Some(deadline), Queue::poll_get).await;
        Ok(requeue_core::Guard::new(Self::logged(got)?, &self.shared))
    }

    /// Ends a run and returns the next key, under one lock: what a worker's loop does. Waits as
    /// [`get`](Self::get).
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
    /// use embassy_futures::block_on;
    /// use requeue_embassy::core::default_item_based;
    /// use requeue_embassy::raw::NoopRawMutex;
    /// use requeue_embassy::{Action, WorkQueue};
    ///
    /// let queue: WorkQueue<NoopRawMutex, u16, 16> = WorkQueue::new(default_item_based());
    /// queue.add_many([17, 18], |_| {});
    /// queue.shut_down();
    ///
    /// let mut seen = Vec::new();
    /// block_on(async {
    ///     let mut next = queue.get().await;
    ///     while let Ok(guard) = next {
    ///         seen.push(*guard);
    ///         next = queue.next(guard, Action::Success).await;
    ///     }
    /// });
    /// assert_eq!(seen, [17, 18]);
    /// ```
    pub fn next<'q>(
        &'q self,
        guard: Guard<'_, R, K, N, L, WAITERS, P>,
        action: Action,
    ) -> impl Future<Output = Result<Guard<'q, R, K, N, L, WAITERS, P>, GetError>>
    where
        K: Clone,
    {
        let mut call = Wait::after(guard, action, &self.shared);
        async move {
            let got = call.wait(None, Queue::poll_get).await;
            Ok(requeue_core::Guard::new(Self::logged(got)?, &self.shared))
        }
    }

    /// Reports a call that finds no place to wait.
    pub(crate) fn logged<T>(result: Result<T, GetError>) -> Result<T, GetError> {
        if matches!(result, Err(GetError::TooManyWaiters)) {
            logging::no_place(WAITERS);
        }
        result
    }
}
