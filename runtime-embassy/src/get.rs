//! Taking keys: the getters, and how they wait.

use core::future::poll_fn;
use core::hash::Hash;
use core::time::Duration;

use embassy_sync::blocking_mutex::raw::RawMutex;
use requeue_core::{
    Completion, Effect, Getter, Index, Instant, Metrics, Next, Priorities, Queue, RateLimiter,
    Storage, Turn,
};

use crate::clock::Timer;
use crate::get_error::GetError;
use crate::queue::{Guard, Held, WorkQueue};
use crate::waiting::{Stored, Waiting};

impl<R, K, const N: usize, L, const WAITERS: usize, M, I, C, P>
    WorkQueue<R, K, N, L, WAITERS, M, I, C, P>
where
    R: RawMutex,
    K: Eq + Hash + Clone,
    L: RateLimiter,
    M: Metrics,
    I: Index,
    P: Priorities,
    C: Timer,
{
    /// Hands out the first ready key; waits for one if there is none.
    ///
    /// A task that finds a key every time does not let others run: it awaits something else now and
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
    /// No key is lost: dropping the future before it is ready takes nothing out of the queue. If it
    /// had been woken, or watched the clock, another task takes that over. It loses its place in
    /// line.
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
    /// guard.forget().unwrap();
    ///
    /// queue.shut_down();
    /// assert_eq!(block_on(queue.get()).unwrap_err(), GetError::Closed);
    /// ```
    pub async fn get(&self) -> Result<Guard<'_, R, K, N, L, WAITERS, M, I, C, P>, GetError> {
        let work = self.wait(None, Queue::get).await?;
        Ok(Guard::new(work, &self.shared))
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
    pub async fn get_timeout(
        &self,
        timeout: Duration,
    ) -> Result<Guard<'_, R, K, N, L, WAITERS, M, I, C, P>, GetError> {
        self.get_deadline(self.clock().now() + timeout).await
    }

    /// As [`get`](Self::get), but waits no longer than until `deadline` of the queue's clock:
    /// [`EmbassyClock::at`](crate::EmbassyClock::at) makes one of embassy-time's. A key that is
    /// ready is handed out even if the deadline has passed.
    ///
    /// # Errors
    ///
    /// As [`get_timeout`](Self::get_timeout).
    ///
    /// # Cancel safety
    ///
    /// As [`get`](Self::get).
    pub async fn get_deadline(
        &self,
        deadline: Instant,
    ) -> Result<Guard<'_, R, K, N, L, WAITERS, M, I, C, P>, GetError> {
        let work = self.wait(Some(deadline), Queue::get).await?;
        Ok(Guard::new(work, &self.shared))
    }

    /// Completes a key as told and hands out the next, under one lock: what a worker's loop does.
    /// Waits as [`get`](Self::get).
    ///
    /// A guard of another queue is completed there. To learn what became of the key, complete it by
    /// its guard.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    ///
    /// # Cancel safety
    ///
    /// The key is completed as told in any case, even if the future is dropped before its first
    /// poll. From then on as [`get`](Self::get).
    ///
    /// # Examples
    ///
    /// ```
    /// use embassy_futures::block_on;
    /// use requeue_embassy::core::default_item_based;
    /// use requeue_embassy::raw::NoopRawMutex;
    /// use requeue_embassy::{Completion, WorkQueue};
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
    ///         next = queue.next(guard, Completion::Succeeded).await;
    ///     }
    /// });
    /// assert_eq!(seen, [17, 18]);
    /// ```
    #[expect(
        clippy::type_complexity,
        reason = "a guard names every part of its queue"
    )]
    pub fn next<'q>(
        &'q self,
        guard: Guard<'_, R, K, N, L, WAITERS, M, I, C, P>,
        completion: Completion,
    ) -> impl Future<Output = Result<Guard<'q, R, K, N, L, WAITERS, M, I, C, P>, GetError>> {
        // Made before the first poll: the caller has said how it went, and may drop the future.
        let mut turn = Turn::new(&self.shared, guard, completion);
        async move {
            let look = |state: &mut _, now, getter: &mut _| turn.look(state, now, getter);
            let work = self.wait(None, look).await?;
            Ok(Guard::new(work, &self.shared))
        }
    }

    /// Looks until there is an answer, and sleeps in between.
    async fn wait<T>(
        &self,
        deadline: Option<Instant>,
        mut look: impl FnMut(&mut Held<K, N, L, M, I, P>, Instant, &mut Getter) -> Effect<Next<T>>,
    ) -> Result<T, GetError> {
        let mut sleeper = Sleeper {
            queue: &self.shared,
            waiting: Waiting::new(),
        };
        poll_fn(|context| {
            let Sleeper { queue, waiting } = &mut sleeper;
            waiting.poll(queue, context, deadline, &mut look)
        })
        .await
    }
}

/// A call that waits for a key. However it ends, the queue is told if it has to know.
struct Sleeper<'q, R, K, S, L, const WAITERS: usize, M, C>
where
    R: RawMutex,
    K: Eq + Hash,
    S: Storage,
    L: RateLimiter,
    M: Metrics,
    C: Timer,
{
    queue: &'q Stored<R, K, S, L, WAITERS, M, C>,
    waiting: Waiting<C::Sleep>,
}

impl<R, K, S, L, const WAITERS: usize, M, C> Drop for Sleeper<'_, R, K, S, L, WAITERS, M, C>
where
    R: RawMutex,
    K: Eq + Hash,
    S: Storage,
    L: RateLimiter,
    M: Metrics,
    C: Timer,
{
    fn drop(&mut self) {
        self.waiting.end(self.queue);
    }
}
