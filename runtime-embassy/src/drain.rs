//! Waiting until a queue that is shut down has drained.

use core::hash::Hash;
use core::time::Duration;

use embassy_sync::blocking_mutex::raw::RawMutex;
use requeue_core::binding::{Clock, Drain, Timer, Wait};
use requeue_core::{Drained, GetError, Instant, Queue, RateLimiter, TooManyWaiters};

use crate::parts::Parts;
use crate::queue::WorkQueue;

impl<R, K, const N: usize, L, const WAITERS: usize, P> WorkQueue<R, K, N, L, WAITERS, P>
where
    R: RawMutex,
    K: Eq + Hash,
    L: RateLimiter,
    P: Parts<Clock: Timer>,
{
    /// Shuts the queue down and waits until no key is ready, dirty or active. Returns how the drain
    /// ended: a [`shut_down`](requeue_core::binding::WorkQueue::shut_down) meanwhile interrupts it.
    ///
    /// Without workers it waits for ever. So it does for a guard that was leaked, and if a worker
    /// calls it while it holds a guard: use [`drain_timeout`](Self::drain_timeout) there. Delayed
    /// keys are not waited for: [`leftovers`](requeue_core::binding::WorkQueue::leftovers) returns
    /// them.
    ///
    /// # Errors
    ///
    /// [`TooManyWaiters`] if there is no place to wait: the queue is shut down all the same.
    ///
    /// # Cancel safety
    ///
    /// The queue is shut down by the first poll. Dropping the future ends the wait and changes
    /// nothing else.
    ///
    /// # Examples
    ///
    /// ```
    /// use embassy_futures::block_on;
    /// use embassy_futures::join::join;
    /// use requeue_embassy::core::default_item_based;
    /// use requeue_embassy::raw::NoopRawMutex;
    /// use requeue_embassy::{Drained, WorkQueue};
    ///
    /// let queue: WorkQueue<NoopRawMutex, u16, 16> = WorkQueue::new(default_item_based());
    /// queue.add_many([17, 18], |_| {});
    /// let work = async {
    ///     while let Ok(guard) = queue.get().await {
    ///         guard.success().unwrap();
    ///     }
    /// };
    /// let (drained, ()) = block_on(join(queue.drain(), work));
    /// assert_eq!(drained, Ok(Drained::Complete));
    /// assert!(!queue.contains(&18));
    /// ```
    #[doc(alias = "ShutDownWithDrain")]
    pub async fn drain(&self) -> Result<Drained, TooManyWaiters> {
        let drain = self.begin_drain();
        self.wait_for_drain(Some(&drain), None).await
    }

    /// As [`drain`](Self::drain), but waits no longer than `timeout`, and then returns
    /// [`Drained::Pending`]. The queue is shut down all the same.
    ///
    /// # Errors
    ///
    /// As [`drain`](Self::drain).
    ///
    /// # Cancel safety
    ///
    /// As [`drain`](Self::drain).
    pub async fn drain_timeout(&self, timeout: Duration) -> Result<Drained, TooManyWaiters> {
        let deadline = self.clock().now() + timeout;
        let drain = self.begin_drain();
        self.wait_for_drain(Some(&drain), Some(deadline)).await
    }

    /// Waits until the queue has been shut down by another call, and nothing is ready, dirty or
    /// active.
    ///
    /// # Errors
    ///
    /// [`TooManyWaiters`] if there is no place to wait.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the wait.
    pub async fn drained(&self) -> Result<(), TooManyWaiters> {
        self.wait_for_drain(None, None).await.map(drop)
    }

    /// Waits until a drain has ended, or any drain if none is given.
    async fn wait_for_drain(
        &self,
        drain: Option<&Drain>,
        deadline: Option<Instant>,
    ) -> Result<Drained, TooManyWaiters> {
        let mut call = Wait::for_state(&self.shared);
        let look = |queue: &mut Queue<_, _, _, _>, _, _: &mut _| queue.poll_drain(drain);
        match Self::logged(call.wait(deadline, look).await) {
            Ok(ended) => Ok(ended),
            Err(GetError::TooManyWaiters) => Err(TooManyWaiters),
            Err(_) => Ok(Drained::Pending),
        }
    }
}
