//! Ending delays early.

use core::borrow::Borrow;
use core::hash::Hash;

use crate::Instant;
use crate::limiter::RateLimiter;
use crate::metrics::Metrics;
use crate::outcome::Effect;
use crate::storage::{Located, Storage};

use super::{Queue, quiet};

impl<K: Eq + Hash, S: Storage, L: RateLimiter, M: Metrics> Queue<K, S, L, M> {
    /// Ends the delay of a key now, as if its deadline had passed. Returns whether it had one.
    /// O(log n).
    ///
    /// The key becomes ready, or dirty if it is active; if it is ready, it stays where it is. Does
    /// nothing after shutdown, which stops the time.
    ///
    /// # Examples
    ///
    /// The network is back, so a retry need not wait any longer:
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue_core::{Fixed, Instant, NoLimit, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<&str, Fixed<4>, NoLimit> = Queue::new(NoLimit);
    /// let _ = queue.add_after("node-7", Duration::from_secs(60), now);
    /// assert!(queue.expedite(&"node-7", now).value);
    /// assert!(!queue.expedite(&"node-7", now).value, "it is not delayed any more");
    /// assert_eq!(queue.try_get(now).value.unwrap().key, "node-7");
    /// ```
    pub fn expedite<B>(&mut self, key: &B, now: Instant) -> Effect<bool>
    where
        K: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        if self.closed {
            return quiet(false);
        }
        let mut was_delayed = false;
        if let Located::Found(id) = self.locate(key, now)
            && self.delays.remove(id).is_some()
        {
            self.come_due(id, now);
            was_delayed = true;
        }
        self.effect(was_delayed)
    }

    /// Ends the delays of some keys now, in the order of their deadlines, as
    /// [`expedite`](Self::expedite) does for one: at most [`RELEASE_MAX`](Storage::RELEASE_MAX) of
    /// them. Returns whether more keys are delayed. O(log n). Does nothing after shutdown.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue_core::{Fixed, Instant, NoLimit, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<u64, Fixed<16>, NoLimit> = Queue::new(NoLimit);
    /// for seconds in (1..=16).rev() {
    ///     let _ = queue.add_after(seconds, Duration::from_secs(seconds), now);
    /// }
    /// // Interrupts are served between any two steps.
    /// while queue.expedite_some(now).value {}
    /// assert_eq!(queue.len(now).value, 16);
    /// assert_eq!(queue.try_get(now).value.unwrap().key, 1);
    /// ```
    pub fn expedite_some(&mut self, now: Instant) -> Effect<bool> {
        if self.closed {
            return quiet(false);
        }
        for _ in 0..self.release_max.get() {
            let Some((id, due)) = self.delays.pop() else {
                break;
            };
            // A deadline that has passed counts from its own time, as everywhere.
            self.come_due(id, due.min(now));
        }
        let more = !self.delays.is_empty();
        self.effect(more)
    }
}
