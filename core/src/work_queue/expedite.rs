//! Ending delays early.

use core::borrow::Borrow;
use core::hash::Hash;

use crate::limiter::RateLimiter;
use crate::lock::Lock;
use crate::metrics::Metrics;
use crate::queue::Sweep;
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
    /// Ends the delay of a key now, as if its deadline had passed. Returns whether it had one.
    /// O(log n).
    ///
    /// The key becomes ready, or dirty if it is active; if it is ready, it stays where it is. A key
    /// that is [held](crate::WithHolds) waits until its hold is over. Does nothing after shutdown,
    /// which stops the time.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// let _ = queue.add_after("node-7", core::time::Duration::from_secs(60));
    /// assert!(queue.try_get().is_none());
    /// assert!(queue.expedite("node-7"));
    /// assert_eq!(*queue.try_get().unwrap(), "node-7");
    /// ```
    pub fn expedite<B>(&self, key: &B) -> bool
    where
        K: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        self.with(|queue, now| queue.expedite(key, now))
    }

    /// Ends the delays of all keys now, in the order of their deadlines. O(log n) for each, a few
    /// of them under each lock. Does nothing after shutdown.
    ///
    /// If the limiter [holds](crate::WithHolds) keys, the order is not specified.
    ///
    /// Ends as many delays as there are when it begins. Keys that others delay meanwhile count, if
    /// their deadlines are among the first.
    ///
    /// # Examples
    ///
    /// A cluster is reachable again, and every retry may come now:
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// use core::time::Duration;
    ///
    /// let _ = queue.add_after("node-8", Duration::from_secs(60));
    /// let _ = queue.add_after("node-7", Duration::from_secs(30));
    /// queue.expedite_all();
    /// assert_eq!(*queue.try_get().unwrap(), "node-7");
    /// ```
    pub fn expedite_all(&self) {
        // Each step ends a delay, lets a group run whose time has come, or is the last one.
        let mut left = self.delayed_len();
        let mut sweep = Sweep::new();
        while left > 0 {
            let more = self.with(|queue, now| {
                let before = queue.delayed_len();
                let more = queue.expedite_some(&mut sweep, now);
                left = left.saturating_sub(before - queue.delayed_len());
                more
            });
            if !more {
                break;
            }
        }
    }
}
