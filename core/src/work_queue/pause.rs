//! Handing out nothing for a while.

use core::hash::Hash;

use crate::limiter::RateLimiter;
use crate::lock::Lock;
use crate::metrics::Metrics;
use crate::storage::Storage;
use crate::time::Clock;
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
    C: Clock,
{
    /// Hands out no more keys until [`resume`](Self::resume): calls that wait for a key wait,
    /// even if keys are ready, and time out as usual. O(1).
    ///
    /// Everything else goes on: keys can be added, cancelled and looked at, delays end, and present
    /// runs end as usual. Shutdown ends a pause, because a drain has to end, and after it this does
    /// nothing.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// queue.pause();
    /// let _ = queue.add("node-7");
    /// assert!(queue.is_paused());
    /// assert!(queue.try_get().is_none());
    /// queue.resume();
    /// assert_eq!(*queue.try_get().unwrap(), "node-7");
    /// ```
    pub fn pause(&self) {
        self.lock.with(|state| state.queue.pause());
    }

    /// Hands keys out again after [`pause`](Self::pause), and wakes a call that waits if there is
    /// something for it. O(1).
    pub fn resume(&self) {
        self.with(|queue, _| queue.resume());
    }

    /// Returns whether the queue is [paused](Self::pause). O(1).
    pub fn is_paused(&self) -> bool {
        self.lock.with(|state| state.queue.is_paused())
    }
}
