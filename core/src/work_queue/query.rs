//! Looking at the queue.

use core::hash::Hash;

use crate::limiter::RateLimiter;
use crate::lock::Lock;
use crate::metrics::Metrics;
use crate::outcome::KeyState;
use crate::queue::Queue;
use crate::slots::Storage;
use crate::time::Clock;
use crate::waker::Waker;

use super::WorkQueue;

impl<K, S, L, M, Q, C, W> WorkQueue<Q, C, W>
where
    K: Eq + Hash,
    S: Storage,
    L: RateLimiter,
    M: Metrics,
    Q: Lock<State = Queue<K, S, L, M>>,
    C: Clock,
    W: Waker,
{
    /// How many keys are ready: client-go's `Len`. Keys in work and delayed keys do not count.
    /// O(1), and O(log n) for each deadline that has come.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// queue.add_many(["node-7", "node-8"], |_| {});
    /// let guard = queue.try_get().unwrap();
    /// assert_eq!(queue.len(), 1, "a key in work is not ready");
    /// drop(guard);
    /// ```
    pub fn len(&self) -> usize {
        self.act(|queue, now| queue.len(now))
    }

    /// Whether no key is ready. Costs as [`len`](Self::len).
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What the queue knows of a key; nothing if it does not hold the key. Costs as
    /// [`len`](Self::len).
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// queue.add("node-7").unwrap();
    /// let guard = queue.try_get().unwrap();
    /// queue.add("node-7").unwrap();
    /// let state = queue.state(&guard).unwrap();
    /// assert!(state.active && state.dirty);
    /// assert!(queue.state(&"node-8").is_none());
    /// ```
    pub fn state(&self, key: &K) -> Option<KeyState> {
        self.act(|queue, now| queue.state(key, now))
    }

    /// Whether a key is ready, in work or delayed. O(1).
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// queue.add("node-7").unwrap();
    /// assert!(queue.contains(&"node-7"));
    /// queue.try_get().unwrap().forget().unwrap();
    /// assert!(!queue.contains(&"node-7"));
    /// ```
    pub fn contains(&self, key: &K) -> bool {
        self.lock.with(|queue| queue.contains(key))
    }

    /// Whether the queue has been shut down; [`shut_down`](Self::shut_down) has an example. O(1).
    pub fn shutting_down(&self) -> bool {
        self.lock.with(|queue| queue.shutting_down())
    }

    /// Sets the two gauges of work that is under way, which client-go sets every 500 ms:
    /// [`Queue::report_running`] has an example. O(slots).
    pub fn report_running(&self) {
        self.act_now(Queue::report_running);
    }
}
