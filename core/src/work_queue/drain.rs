//! For tasks: waiting until a queue that is shut down has drained.

use core::hash::Hash;
use core::time::Duration;

use crate::limiter::RateLimiter;
use crate::lock::Lock;
use crate::metrics::Metrics;
use crate::outcome::Drained;
use crate::storage::Storage;
use crate::timer::Timer;
use crate::wait::WaitList;

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
    /// Shuts the queue down and waits until no key is ready, dirty or active. Any number of tasks
    /// may wait. Returns how the drain ended: a [`shut_down`](Self::shut_down) meanwhile interrupts
    /// it. O(1) for each look.
    ///
    /// Without workers it waits for ever. So it does for a guard that was leaked, and if a worker
    /// calls it while it holds a guard, as in a hook for keys that are given up: use
    /// [`drain_timeout`](Self::drain_timeout) there. Delayed keys are not waited for:
    /// [`leftovers`](Self::leftovers) returns them.
    ///
    /// # Errors
    ///
    /// If the list of waiting calls has a fixed number of places, the result is a
    /// [`Result`](WaitList::Waited): [`TooManyWaiters`](crate::TooManyWaiters) if none is free. The
    /// queue is shut down all the same.
    ///
    /// # Cancel safety
    ///
    /// The queue is shut down by the first poll. Dropping the future ends the wait and changes
    /// nothing else.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example_tasks.txt")]
    /// let _ = queue.add("node-7");
    /// let mut drain = pin!(queue.drain());
    /// assert!(poll(drain.as_mut()).is_pending());
    /// queue.try_get().unwrap().success().unwrap();
    /// // This queue has room for two calls that wait. Without a bound it returns a `Drained`.
    /// assert_eq!(poll(drain), Poll::Ready(Ok(Drained::Complete)));
    /// ```
    #[doc(alias = "ShutDownWithDrain")]
    pub async fn drain(&self) -> W::Waited<Drained> {
        let drain = self.begin_drain();
        let ended = self.watch(None, |queue, _| queue.poll_drain(Some(&drain)));
        W::waited(ended.await, Drained::Pending)
    }

    /// As [`drain`](Self::drain), but waits no longer than `timeout`, counted from the first poll,
    /// and then returns [`Drained::Pending`]. The queue is shut down all the same.
    ///
    /// # Errors
    ///
    /// As [`drain`](Self::drain).
    ///
    /// # Cancel safety
    ///
    /// As [`drain`](Self::drain).
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example_tasks.txt")]
    /// let _ = queue.add("node-7");
    /// let drain = pin!(queue.drain_timeout(Duration::ZERO));
    /// assert_eq!(poll(drain), Poll::Ready(Ok(Drained::Pending)));
    /// assert!(queue.shutting_down());
    /// ```
    pub async fn drain_timeout(&self, timeout: Duration) -> W::Waited<Drained> {
        let deadline = self.clock.now() + timeout;
        let drain = self.begin_drain();
        let ended = self.watch(Some(deadline), |queue, _| queue.poll_drain(Some(&drain)));
        W::waited(ended.await, Drained::Pending)
    }

    /// Waits until the queue has been shut down by another call, and nothing is ready, dirty or
    /// active. Any number of tasks may wait. O(1) for each look.
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
    /// let mut drained = pin!(queue.drained());
    /// assert!(poll(drained.as_mut()).is_pending());
    /// queue.shut_down();
    /// assert_eq!(poll(drained), Poll::Ready(Ok(())));
    /// ```
    pub async fn drained(&self) -> W::Waited<()> {
        let ended = self.watch(None, |queue, _| queue.poll_drain(None)).await;
        W::waited(ended.map(drop), ())
    }
}
