//! For tasks: waiting until the queue, or a key, has no more work.

use core::borrow::Borrow;
use core::hash::Hash;
use core::time::Duration;

use crate::Instant;
use crate::limiter::RateLimiter;
use crate::lock::Lock;
use crate::metrics::Metrics;
use crate::outcome::{Effect, GetError, KeyState, Next};
use crate::queue::Queue;
use crate::storage::Storage;
use crate::timer::Timer;
use crate::wait::{Wait, WaitList};

use super::{State, WorkQueue};

impl<K, S, L, M, W, Q, C> WorkQueue<Q, C>
where
    K: Eq + Hash,
    S: Storage,
    L: RateLimiter,
    M: Metrics,
    W: WaitList,
    Q: Lock<State = State<K, S, L, M, W>>,
    C: Timer,
{
    /// Waits until no key is ready or active. Delayed keys are not waited for until they are due.
    /// Works also after shutdown.
    ///
    /// Without workers it waits for ever if a key is ready, and so it does while the queue is
    /// [paused](Self::pause), or if a worker calls it while it holds a guard. A task that waits
    /// costs the queue one look, O(log n), each time it may be idle.
    ///
    /// # Errors
    ///
    /// If the list of waiting calls has a fixed number of places, the result is a
    /// [`Result`](WaitList::Waited): [`TooManyWaiters`](crate::TooManyWaiters) if none is free.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the wait.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example_tasks.txt")]
    /// let _ = queue.add("node-7");
    /// let mut idle = pin!(queue.wait_idle());
    /// assert!(poll(idle.as_mut()).is_pending());
    /// queue.try_get().unwrap().success().unwrap();
    /// // This queue has room for two calls that wait. Without a bound it returns `()`.
    /// assert_eq!(poll(idle), Poll::Ready(Ok(())));
    /// ```
    pub async fn wait_idle(&self) -> W::Waited<()> {
        let idle = self.watch(None, |queue, now| queue.poll_idle(now)).await;
        W::waited(idle, ())
    }

    /// As [`wait_idle`](Self::wait_idle), but waits no longer than `timeout`, counted from the
    /// first poll. Returns whether the queue was idle by then.
    ///
    /// # Errors
    ///
    /// As [`wait_idle`](Self::wait_idle).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the wait.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example_tasks.txt")]
    /// let _ = queue.add("node-7");
    /// let idle = pin!(queue.wait_idle_timeout(Duration::ZERO));
    /// assert_eq!(poll(idle), Poll::Ready(Ok(false)));
    /// ```
    pub async fn wait_idle_timeout(&self, timeout: Duration) -> W::Waited<bool> {
        let deadline = self.clock.now() + timeout;
        let idle = self.watch(Some(deadline), |queue, now| queue.poll_idle(now));
        W::waited(idle.await.map(|()| true), false)
    }

    /// Waits until no key is ready, active or delayed, so that nothing runs again unless it is
    /// added. O(1) for each look. Otherwise as [`wait_idle`](Self::wait_idle).
    ///
    /// After shutdown delayed keys stay until they are [taken](Self::leftovers).
    ///
    /// # Errors
    ///
    /// As [`wait_idle`](Self::wait_idle).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the wait.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example_tasks.txt")]
    /// let _ = queue.add_after("lease-3", Duration::from_secs(60));
    /// let mut settled = pin!(queue.wait_settled());
    /// assert!(poll(settled.as_mut()).is_pending());
    /// queue.cancel("lease-3");
    /// assert_eq!(poll(settled), Poll::Ready(Ok(())));
    /// ```
    pub async fn wait_settled(&self) -> W::Waited<()> {
        let settled = self.watch(None, |queue, _| queue.poll_settled()).await;
        W::waited(settled, ())
    }

    /// As [`wait_settled`](Self::wait_settled), but waits no longer than `timeout`, counted from
    /// the first poll. Returns whether the queue was settled by then.
    ///
    /// # Errors
    ///
    /// As [`wait_idle`](Self::wait_idle).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the wait.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example_tasks.txt")]
    /// let _ = queue.add_after("lease-3", Duration::from_secs(60));
    /// let settled = pin!(queue.wait_settled_timeout(Duration::ZERO));
    /// assert_eq!(poll(settled), Poll::Ready(Ok(false)));
    /// ```
    pub async fn wait_settled_timeout(&self, timeout: Duration) -> W::Waited<bool> {
        let deadline = self.clock.now() + timeout;
        let settled = self.watch(Some(deadline), |queue, _| queue.poll_settled());
        W::waited(settled.await.map(|()| true), false)
    }

    /// Waits until the work of a key that is known at the first poll is done or cancelled: its
    /// present run, and one more if the key is ready or dirty. Returns at once if there is none.
    /// O(log n) to begin, and O(1) each time a run of any key has ended meanwhile.
    ///
    /// A delay is not waited for: [`expedite`](Self::expedite) ends it first. If the key begins
    /// another run just as this looks, that is waited for too. A worker that holds the key's guard
    /// waits for itself.
    ///
    /// # Errors
    ///
    /// As [`wait_idle`](Self::wait_idle).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the wait.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example_tasks.txt")]
    /// queue.add_many(["node-7", "node-8"], |_| {});
    /// let mut flush = pin!(queue.flush("node-7"));
    /// assert!(poll(flush.as_mut()).is_pending());
    /// queue.try_get().unwrap().success().unwrap();
    /// assert_eq!(poll(flush), Poll::Ready(Ok(())));
    /// assert!(queue.contains("node-8"), "the others are not waited for");
    /// ```
    pub async fn flush<B>(&self, key: &B) -> W::Waited<()>
    where
        K: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        let mut flush = self.with(|queue, now| queue.begin_flush(key, now));
        let done = self.watch(None, |queue, _| queue.poll_flush(key, &mut flush));
        W::waited(done.await, ())
    }

    /// As [`flush`](Self::flush), but waits no longer than `timeout`, counted from the first poll.
    /// Returns whether the work was done by then.
    ///
    /// # Errors
    ///
    /// As [`wait_idle`](Self::wait_idle).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the wait.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example_tasks.txt")]
    /// let _ = queue.add("node-7");
    /// let done = pin!(queue.flush_timeout("node-7", Duration::ZERO));
    /// assert_eq!(poll(done), Poll::Ready(Ok(false)));
    /// ```
    pub async fn flush_timeout<B>(&self, key: &B, timeout: Duration) -> W::Waited<bool>
    where
        K: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        let deadline = self.clock.now() + timeout;
        let mut flush = self.with(|queue, now| queue.begin_flush(key, now));
        let done = self.watch(Some(deadline), |queue, _| queue.poll_flush(key, &mut flush));
        W::waited(done.await.map(|()| true), false)
    }

    /// [Cancels](Self::cancel) a key, and waits until its present run has ended. Returns what the
    /// key was, as `cancel` does. Costs as [`flush`](Self::flush).
    ///
    /// The run learns of it by [`Guard::is_cancelled`](crate::Guard::is_cancelled). What is added
    /// meanwhile is not waited for. A worker that holds the key's guard waits for itself.
    ///
    /// # Errors
    ///
    /// As [`wait_idle`](Self::wait_idle): the key is cancelled all the same.
    ///
    /// # Cancel safety
    ///
    /// The key is cancelled by the first poll. Dropping the future ends the wait and changes
    /// nothing else.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example_tasks.txt")]
    /// let _ = queue.add("node-7");
    /// let guard = queue.try_get().unwrap();
    /// let mut cancels = pin!(queue.cancel_and_wait("node-7"));
    /// assert!(poll(cancels.as_mut()).is_pending());
    /// assert!(guard.is_cancelled());
    /// guard.success().unwrap();
    /// let Poll::Ready(Ok(Some(was))) = poll(cancels) else {
    ///     panic!("its run is over");
    /// };
    /// assert!(was.active);
    /// ```
    pub async fn cancel_and_wait<B>(&self, key: &B) -> W::Waited<Option<KeyState>>
    where
        K: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        let (was, mut flush) = self.with(|queue, now| queue.begin_cancel(key, now));
        let ended = self.watch(None, |queue, _| queue.poll_flush(key, &mut flush));
        W::waited(ended.await.map(|()| was), was)
    }

    /// As [`cancel_and_wait`](Self::cancel_and_wait), but waits no longer than `timeout`, counted
    /// from the first poll. Returns what the key was, and whether its run had ended by then.
    ///
    /// # Errors
    ///
    /// As [`cancel_and_wait`](Self::cancel_and_wait).
    ///
    /// # Cancel safety
    ///
    /// As [`cancel_and_wait`](Self::cancel_and_wait).
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example_tasks.txt")]
    /// let _ = queue.add("node-7");
    /// let guard = queue.try_get().unwrap();
    /// let cancels = pin!(queue.cancel_and_wait_timeout("node-7", Duration::ZERO));
    /// let Poll::Ready(Ok((was, has_ended))) = poll(cancels) else {
    ///     panic!("it does not wait");
    /// };
    /// assert!(was.unwrap().active && !has_ended);
    /// # guard.success().unwrap();
    /// ```
    pub async fn cancel_and_wait_timeout<B>(
        &self,
        key: &B,
        timeout: Duration,
    ) -> W::Waited<(Option<KeyState>, bool)>
    where
        K: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        let deadline = self.clock.now() + timeout;
        let (was, mut flush) = self.with(|queue, now| queue.begin_cancel(key, now));
        let ended = self.watch(Some(deadline), |queue, _| queue.poll_flush(key, &mut flush));
        W::waited(ended.await.map(|()| (was, true)), (was, false))
    }

    /// Looks until a state of the queue has come, and no longer than until `deadline`.
    #[allow(
        clippy::manual_async_fn,
        reason = "the future of an `async fn` would hold each argument twice"
    )]
    pub(super) fn watch<T>(
        &self,
        deadline: Option<Instant>,
        mut look: impl FnMut(&mut Queue<K, S, L, M>, Instant) -> Effect<Next<T>>,
    ) -> impl Future<Output = Result<T, GetError>> {
        async move {
            let mut call = Wait::for_state(self);
            call.wait(deadline, |queue, now, _| look(queue, now)).await
        }
    }
}
