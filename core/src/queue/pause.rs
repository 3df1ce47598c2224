//! Handing out nothing for a while.

use core::hash::Hash;

use crate::limiter::RateLimiter;
use crate::metrics::Metrics;
use crate::outcome::Effect;
use crate::storage::Storage;

use super::Queue;

impl<K: Eq + Hash, S: Storage, L: RateLimiter, M: Metrics> Queue<K, S, L, M> {
    /// Hands out no more keys until [`resume`](Self::resume): getters wait, even if keys are ready.
    /// O(1).
    ///
    /// Everything else goes on: keys can be added, cancelled and looked at, delays end, and present
    /// runs end as usual. A deadline needs no timer meanwhile. Shutdown ends a pause, because a
    /// drain has to end, and after it this does nothing.
    ///
    /// # Examples
    ///
    /// The database is away, so there is no use in starting runs:
    ///
    /// ```
    /// use requeue_core::{Fixed, Instant, NoLimit, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<&str, Fixed<4>, NoLimit> = Queue::new(NoLimit);
    /// queue.pause();
    /// let _ = queue.add("node-7", now);
    /// assert!(queue.try_get(now).value.is_none());
    /// assert_eq!(queue.len(now).value, 1, "nothing is lost");
    ///
    /// let _ = queue.resume();
    /// assert_eq!(queue.try_get(now).value.unwrap().key, "node-7");
    /// ```
    pub fn pause(&mut self) {
        self.paused = !self.closed;
    }

    /// Hands keys out again after [`pause`](Self::pause). O(1).
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_core::binding::{Getter, Wake};
    /// use requeue_core::{Fixed, Instant, NoLimit, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<&str, Fixed<4>, NoLimit> = Queue::new(NoLimit);
    /// let mut getter = Getter::new();
    /// let _ = queue.poll_get(now, &mut getter);
    /// queue.pause();
    /// assert_eq!(queue.add("node-7", now).wake, Wake::NONE);
    /// assert_eq!(queue.resume().wake, Wake::ONE);
    /// # let _ = queue.leave(&mut getter);
    /// ```
    #[must_use = "a getter that is not woken sleeps on"]
    pub fn resume(&mut self) -> Effect<()> {
        self.paused = false;
        self.effect(())
    }

    /// Returns whether the queue is [paused](Self::pause). O(1).
    pub const fn is_paused(&self) -> bool {
        self.paused
    }
}
