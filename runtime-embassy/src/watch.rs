//! Waiting until the queue, or a key, has no more work.

use core::borrow::Borrow;
use core::hash::Hash;

use embassy_sync::blocking_mutex::raw::RawMutex;
use requeue_core::binding::{Effect, Next, Timer, Wait};
use requeue_core::{Instant, KeyState, Queue, RateLimiter, TooManyWaiters};

use crate::parts::Parts;
use crate::queue::{Stored, WorkQueue};

impl<R, K, const N: usize, L, const WAITERS: usize, P> WorkQueue<R, K, N, L, WAITERS, P>
where
    R: RawMutex,
    K: Eq + Hash,
    L: RateLimiter,
    P: Parts<Clock: Timer>,
{
    /// Waits until no key is ready or active. Delayed keys are not waited for until they are due.
    /// Works also after shutdown.
    ///
    /// Without workers it waits for ever if a key is ready, and so it does while the queue is
    /// [paused](requeue_core::binding::WorkQueue::pause), or if a worker calls it while it holds a
    /// guard. A task that waits costs the queue one look each time it may be idle.
    ///
    /// # Errors
    ///
    /// [`TooManyWaiters`] if there is no place to wait.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the wait.
    ///
    /// # Examples
    ///
    /// ```
    /// use embassy_futures::block_on;
    /// use embassy_futures::join::join;
    /// use requeue_embassy::core::default_item_based;
    /// use requeue_embassy::raw::NoopRawMutex;
    /// use requeue_embassy::WorkQueue;
    ///
    /// let queue: WorkQueue<NoopRawMutex, u16, 16> = WorkQueue::new(default_item_based());
    /// queue.add(17).unwrap();
    /// let work = async {
    ///     queue.get().await.unwrap().success().unwrap();
    /// };
    /// let (idle, ()) = block_on(join(queue.wait_idle(), work));
    /// assert_eq!(idle, Ok(()));
    /// assert!(queue.is_idle());
    /// ```
    pub async fn wait_idle(&self) -> Result<(), TooManyWaiters> {
        self.watch(|queue, now| queue.poll_idle(now)).await
    }

    /// Waits until no key is ready, active or delayed, so that nothing runs again unless it is
    /// added. Otherwise as [`wait_idle`](Self::wait_idle).
    ///
    /// After shutdown delayed keys stay until they are
    /// [taken](requeue_core::binding::WorkQueue::take_delayed).
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
    /// use core::time::Duration;
    /// use embassy_futures::block_on;
    /// use embassy_futures::join::join;
    /// use requeue_embassy::core::default_item_based;
    /// use requeue_embassy::raw::NoopRawMutex;
    /// use requeue_embassy::WorkQueue;
    ///
    /// let queue: WorkQueue<NoopRawMutex, u16, 16> = WorkQueue::new(default_item_based());
    /// queue.add_after(17, Duration::from_secs(60)).unwrap();
    /// let cancels = async { queue.cancel(&17) };
    /// let (settled, _) = block_on(join(queue.wait_settled(), cancels));
    /// assert_eq!(settled, Ok(()));
    /// ```
    pub async fn wait_settled(&self) -> Result<(), TooManyWaiters> {
        self.watch(|queue, _| queue.poll_settled()).await
    }

    /// Waits until the work of a key that is known at the first poll is done or cancelled: its
    /// present run, and one more if the key is ready or dirty. Returns at once if there is none.
    /// O(log n) to begin, and O(1) each time a run of any key has ended meanwhile.
    ///
    /// A delay is not waited for: [`expedite`](requeue_core::binding::WorkQueue::expedite) ends it
    /// first. If the key begins another run just as this looks, that is waited for too. A worker
    /// that holds the key's guard waits for itself.
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
    /// use embassy_futures::block_on;
    /// use embassy_futures::join::join;
    /// use requeue_embassy::core::default_item_based;
    /// use requeue_embassy::raw::NoopRawMutex;
    /// use requeue_embassy::WorkQueue;
    ///
    /// let queue: WorkQueue<NoopRawMutex, u16, 16> = WorkQueue::new(default_item_based());
    /// queue.add_many([17, 18], |_| {});
    /// let work = async {
    ///     queue.get().await.unwrap().success().unwrap();
    /// };
    /// let (flushed, ()) = block_on(join(queue.flush(&17), work));
    /// assert_eq!(flushed, Ok(()));
    /// assert!(queue.contains(&18), "the others are not waited for");
    /// ```
    pub async fn flush<B>(&self, key: &B) -> Result<(), TooManyWaiters>
    where
        K: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        let mut flush = self.with(|queue, now| queue.begin_flush(key, now));
        self.watch(|queue, _| queue.poll_flush(key, &mut flush))
            .await
    }

    /// [Cancels](requeue_core::binding::WorkQueue::cancel) a key, and waits until its present run
    /// has ended. Returns what the key was, as `cancel` does. Costs as [`flush`](Self::flush).
    ///
    /// The run learns of it by [`Guard::is_cancelled`](requeue_core::Guard::is_cancelled). What is
    /// added meanwhile is not waited for. A worker that holds the key's guard waits for itself.
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
    /// use embassy_futures::block_on;
    /// use embassy_futures::join::join;
    /// use requeue_embassy::core::default_item_based;
    /// use requeue_embassy::raw::NoopRawMutex;
    /// use requeue_embassy::WorkQueue;
    ///
    /// let queue: WorkQueue<NoopRawMutex, u16, 16> = WorkQueue::new(default_item_based());
    /// queue.add(17).unwrap();
    /// let guard = queue.try_get().unwrap();
    /// let run = async {
    ///     assert!(guard.is_cancelled());
    ///     guard.success().unwrap();
    /// };
    /// let (was, ()) = block_on(join(queue.cancel_and_wait(&17), run));
    /// assert!(was.unwrap().unwrap().active);
    /// ```
    pub async fn cancel_and_wait<B>(&self, key: &B) -> Result<Option<KeyState>, TooManyWaiters>
    where
        K: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        let (was, mut flush) = self.with(|queue, now| queue.begin_cancel(key, now));
        self.watch(|queue, _| queue.poll_flush(key, &mut flush))
            .await?;
        Ok(was)
    }

    /// Looks until a state of the queue has come.
    async fn watch<F>(&self, mut look: F) -> Result<(), TooManyWaiters>
    where
        F: FnMut(&mut Queue<K, Stored<N, P>, L, P::Metrics>, Instant) -> Effect<Next<()>>,
    {
        let mut call = Wait::for_state(&self.shared);
        let seen = call.wait(None, |queue, now, _| look(queue, now)).await;
        // Without a deadline nothing else ends it before the state has come.
        Self::logged(seen).map_err(|_| TooManyWaiters)
    }
}
