//! Choosing the parts of a queue.

use std::hash::Hash;

use requeue_core::{DefaultController, Metrics, NoMetrics, Queue, RateLimiter, default_controller};

use crate::clock::{SystemClock, Timer};
use crate::queue::WorkQueue;

/// Puts a [`WorkQueue`] together; made by [`WorkQueue::builder`].
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use requeue_std::WorkQueue;
/// use requeue_std::core::ItemExponentialFailure;
///
/// let limiter = ItemExponentialFailure::new(Duration::from_millis(100), Duration::from_secs(60));
/// let queue = WorkQueue::builder().limiter(limiter).capacity(10_000).build();
/// queue.add(String::from("node-7")).unwrap();
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct Builder<L = DefaultController, M = NoMetrics, C = SystemClock> {
    limiter: L,
    metrics: M,
    clock: C,
    capacity: usize,
    memories_max: usize,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            limiter: default_controller(),
            metrics: NoMetrics,
            clock: SystemClock::new(),
            capacity: 0,
            memories_max: usize::MAX,
        }
    }
}

impl<L, M, C> Builder<L, M, C> {
    /// How long failed keys wait. At first client-go's default: 5 ms doubled per failure up to
    /// 1000 s, and all keys together ten a second after a burst of a hundred.
    pub fn limiter<L2: RateLimiter>(self, limiter: L2) -> Builder<L2, M, C> {
        Builder {
            limiter,
            metrics: self.metrics,
            clock: self.clock,
            capacity: self.capacity,
            memories_max: self.memories_max,
        }
    }

    /// Who receives the figures. At first nobody: nothing is kept and no clock is read for them.
    pub fn metrics<M2: Metrics>(self, metrics: M2) -> Builder<L, M2, C> {
        Builder {
            limiter: self.limiter,
            metrics,
            clock: self.clock,
            capacity: self.capacity,
            memories_max: self.memories_max,
        }
    }

    /// The clock. At first the system's.
    pub fn clock<C2: Timer>(self, clock: C2) -> Builder<L, M, C2> {
        Builder {
            limiter: self.limiter,
            metrics: self.metrics,
            clock,
            capacity: self.capacity,
            memories_max: self.memories_max,
        }
    }

    /// How many keys the queue takes before it grows.
    pub fn capacity(mut self, keys: usize) -> Self {
        self.capacity = keys;
        self
    }

    /// How many keys may stay in memory for their failures alone; the oldest beyond that are
    /// forgotten. At first there is no limit, as in client-go.
    pub fn memories(mut self, keys: usize) -> Self {
        self.memories_max = keys;
        self
    }

    /// Makes the queue.
    pub fn build<K: Eq + Hash>(self) -> WorkQueue<K, L, M, C>
    where
        L: RateLimiter,
        M: Metrics,
        C: Timer,
    {
        let hasher = requeue_core::RandomState::default();
        let mut queue = Queue::from_parts(self.limiter, self.metrics, hasher, self.capacity);
        queue.limit_memories(self.memories_max);
        WorkQueue::from_queue(queue, self.clock)
    }
}
