//! Handing out nothing for a while.

use core::hash::Hash;

use crate::limiter::RateLimiter;
use crate::metrics::Metrics;
use crate::storage::Storage;

use super::{Queue, Session};

impl<K: Eq + Hash, S: Storage, L: RateLimiter, M: Metrics> Session<'_, K, S, L, M> {
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
    /// queue.at(now).pause();
    /// let _ = queue.at(now).add("node-7");
    /// assert!(queue.at(now).try_get().is_none());
    /// assert_eq!(queue.at(now).len(), 1, "nothing is lost");
    ///
    /// queue.at(now).resume();
    /// assert_eq!(queue.at(now).try_get().unwrap().key, "node-7");
    /// ```
    pub fn pause(&mut self) {
        self.queue.paused = !self.queue.closed;
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
    /// let _ = queue.at(now).poll_get(&mut getter);
    /// queue.at(now).pause();
    /// let _ = queue.at(now).add("node-7");
    /// assert_eq!(queue.at(now).close(), Wake::NONE);
    /// queue.at(now).resume();
    /// assert_eq!(queue.at(now).close(), Wake::ONE);
    /// # queue.at(now).leave(&mut getter);
    /// ```
    pub fn resume(&mut self) {
        self.queue.paused = false;
    }
}

impl<K: Eq + Hash, S: Storage, L: RateLimiter, M: Metrics> Queue<K, S, L, M> {
    /// Returns whether the queue is [paused](crate::Session::pause). O(1).
    pub const fn is_paused(&self) -> bool {
        self.paused
    }
}
