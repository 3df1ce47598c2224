//! Giving a queue what another one has left.

use core::hash::Hash;

use crate::limiter::RateLimiter;
use crate::metrics::Metrics;
use crate::outcome::{Added, Leftover, Rejected};
use crate::priority::Priorities;
use crate::storage::Storage;

use super::Session;

impl<K: Eq + Hash, S: Storage, L: RateLimiter, M: Metrics> Session<'_, K, S, L, M> {
    /// Adds a key as another queue has handed it back: ready, or delayed by what was left of its
    /// delay, at its priority level, with its failures on record. O(log n), plus the limiter's
    /// cost.
    ///
    /// Restoring what [`take_ready`](Self::take_ready) and [`take_delayed`](Self::take_delayed)
    /// returned, in that order, makes a queue in which the keys have their order, and in which the
    /// next failure of each is delayed as it would have been. Nothing is charged to the limiter.
    /// With levels the order can change: a ready key that also had a delay is left over once, at
    /// the higher of the two levels.
    ///
    /// A key that the queue already holds is added once more, by the same rules as ever: of two
    /// deadlines the earlier counts, and of two priority levels the higher. Of two counts of
    /// failures the larger counts.
    ///
    /// Reads `now` even if [`needs_time`](crate::Queue::needs_time) is false, unless
    /// [`left`](Leftover::left) is zero.
    ///
    /// # Errors
    ///
    /// As [`add_with`](Self::add_with), with the whole leftover: nothing has changed. A leftover
    /// from a queue with more levels can be restored after its `priority` is lowered.
    ///
    /// # Examples
    ///
    /// A service is replaced by its next version, and a key that has failed three times is not
    /// retried at once:
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue_core::{Added, Fixed, Instant, Queue, default_item_based};
    ///
    /// let now = Instant::EPOCH;
    /// let mut old: Queue<&str, Fixed<4>, _> = Queue::new(default_item_based());
    /// for _ in 0..3 {
    ///     let _ = old.at(now).add_rate_limited("node-7");
    /// }
    /// old.at(now).shut_down();
    /// let leftover = old.at(now).take_delayed().unwrap();
    ///
    /// let mut new: Queue<&str, Fixed<4>, _> = Queue::new(default_item_based());
    /// assert_eq!(new.at(now).restore(leftover), Ok(Added::Delayed));
    /// assert_eq!(new.next_deadline(), Some(now + Duration::from_millis(1)));
    /// let scheduled = new.at(now).add_rate_limited("node-7").unwrap();
    /// assert_eq!(scheduled.delay, Duration::from_millis(8), "the delay of the fourth failure");
    /// ```
    pub fn restore(&mut self, leftover: Leftover<K>) -> Result<Added, Rejected<Leftover<K>>> {
        let Self { queue, now, spare } = self;
        if queue.closed {
            return Err(Rejected::Closed(leftover));
        }
        if leftover.priority >= S::Priorities::LEVELS {
            return Err(Rejected::UnknownPriority(leftover));
        }
        let Leftover {
            key,
            left,
            requeues,
            priority,
        } = leftover;
        match queue.slot_with_failures(key, requeues, *now, spare) {
            Ok(id) if left.is_zero() => Ok(queue.mark(id, *now, priority)),
            Ok(id) => Ok(queue.schedule(id, *now + left, *now, priority)),
            Err(key) => Err(Rejected::Full(Leftover {
                key,
                left,
                requeues,
                priority,
            })),
        }
    }
}
