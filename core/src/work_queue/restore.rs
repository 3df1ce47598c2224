//! Giving a queue what another one has left.

use core::hash::Hash;

use crate::limiter::RateLimiter;
use crate::lock::Lock;
use crate::metrics::Metrics;
use crate::outcome::{Added, Leftover, Rejected};
use crate::queue::Queue;
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
    /// Adds a key as another queue has handed it back: ready, or delayed by what was left of its
    /// delay, at its priority level, with its failures on record. O(log n).
    ///
    /// A key that the queue already holds is added once more, by the same rules as ever: of two
    /// deadlines the earlier counts, and of two priority levels the higher. Of two counts of
    /// failures the larger counts.
    ///
    /// # Errors
    ///
    /// As [`add_with`](Self::add_with), with the whole leftover: nothing has changed.
    ///
    /// # Examples
    ///
    /// A program saves what a shutdown hands back, and restores it in that order when it starts:
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// use core::time::Duration;
    ///
    /// let saved = [("node-8", 0, 0), ("node-7", 250, 3)];
    /// for (node, millis, failures) in saved {
    ///     let mut leftover = Leftover::new(node);
    ///     leftover.left = Duration::from_millis(millis);
    ///     leftover.requeues = failures;
    ///     queue.restore(leftover).unwrap();
    /// }
    /// let guard = queue.try_get().unwrap();
    /// assert_eq!(*guard, "node-8");
    /// # guard.success().unwrap();
    /// assert_eq!((queue.delayed_len(), queue.num_requeues("node-7")), (1, 3));
    /// ```
    pub fn restore(&self, leftover: Leftover<K>) -> Result<Added, Rejected<Leftover<K>>> {
        let is_ready = leftover.left.is_zero();
        let mut spare = None;
        let restore = |queue: &mut Queue<K, S, L, M>, now| {
            queue.restore_or_spare(leftover, now, |key| spare = Some(key))
        };
        if is_ready {
            self.with(restore)
        } else {
            self.with_now(restore)
        }
    }
}
