//! Limiting how many keys a queue that grows holds.

use core::hash::{BuildHasher, Hash};

use crate::limiter::RateLimiter;
use crate::lock::Lock;
use crate::metrics::Metrics;
use crate::priority::Priorities;
use crate::storage::growable::Growable;
use crate::time::Clock;
use crate::wait::WaitList;

use super::{State, WorkQueue};

/// For queues that grow.
impl<K, H, P, L, M, W, Q, C> WorkQueue<Q, C>
where
    K: Eq + Hash,
    H: BuildHasher,
    P: Priorities,
    L: RateLimiter,
    M: Metrics,
    W: WaitList,
    Q: Lock<State = State<K, Growable<H, P>, L, M, W>>,
    C: Clock,
{
    /// Sets how many keys the queue holds at most, [`usize::MAX`] for any number, and wakes a call
    /// that waits for room if there is some now. O(1), and O(1) per failure record that makes way.
    ///
    /// A queue that holds more keys keeps them, and refuses new ones until there is room again:
    /// [`Queue::limit_keys`](crate::Queue::limit_keys) says it in full.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example_growable.txt")]
    /// queue.limit_keys(1);
    /// let _ = queue.add("node-7");
    /// assert_eq!(queue.add("node-8"), Err(Rejected::Full("node-8")));
    /// queue.limit_keys(usize::MAX);
    /// let _ = queue.add("node-8");
    /// ```
    pub fn limit_keys(&self, keys: usize) {
        self.with(|queue, _| queue.limit_keys(keys));
    }
}
