//! Choosing the parts of a queue that grows.

use core::hash::Hash;
use core::marker::PhantomData;

use crate::limiter::{DefaultController, RateLimiter, default_controller};
use crate::metrics::{Metrics, NoMetrics};
use crate::priority::{Levels, NoPriorities, Priorities};
use crate::queue::Queue;
use crate::slots::growable::{Growable, RandomState};

/// Puts a [`Queue`] together whose storage grows; made by [`Queue::builder`].
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use requeue_core::{Instant, ItemExponentialFailure, Queue};
///
/// let limiter = ItemExponentialFailure::new(Duration::from_millis(100), Duration::from_secs(60));
/// let mut queue = Queue::builder().limiter(limiter).capacity(10_000).build();
/// queue.add("node-7", Instant::EPOCH).value.unwrap();
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct Builder<L = DefaultController, M = NoMetrics, P = NoPriorities> {
    limiter: L,
    metrics: M,
    levels: PhantomData<P>,
    capacity: usize,
    memories_max: usize,
}

impl Queue<(), Growable, DefaultController> {
    /// A queue of parts that are chosen one by one. The type of its keys is chosen by use.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_core::{Instant, Queue};
    ///
    /// // All parts as client-go has them.
    /// let mut queue = Queue::builder().build();
    /// queue.add("node-7", Instant::EPOCH).value.unwrap();
    /// ```
    pub fn builder() -> Builder {
        Builder {
            limiter: default_controller(),
            metrics: NoMetrics,
            levels: PhantomData,
            capacity: 0,
            memories_max: usize::MAX,
        }
    }
}

impl<L: RateLimiter, M: Metrics, P: Priorities> Builder<L, M, P> {
    /// How long failed keys wait. At first client-go's default: 5 ms doubled per failure up to
    /// 1000 s, and all keys together ten a second after a burst of a hundred.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue_core::{Instant, ItemFastSlow, Queue};
    ///
    /// let limiter = ItemFastSlow::new(Duration::from_millis(5), Duration::from_secs(10), 3);
    /// let mut queue = Queue::builder().limiter(limiter).build();
    /// let limited = queue.add_rate_limited("node-7", Instant::EPOCH).value.unwrap();
    /// assert_eq!(limited.delay, Duration::from_millis(5));
    /// ```
    pub fn limiter<L2: RateLimiter>(self, limiter: L2) -> Builder<L2, M, P> {
        Builder {
            limiter,
            metrics: self.metrics,
            levels: self.levels,
            capacity: self.capacity,
            memories_max: self.memories_max,
        }
    }

    /// Who receives the figures. At first nobody: nothing is kept and no clock is read for them.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_core::{Instant, Metrics, Queue};
    ///
    /// #[derive(Default)]
    /// struct Depth(usize);
    ///
    /// impl Metrics for Depth {
    ///     type Stamps = ();
    ///
    ///     fn depth(&mut self, keys: usize) {
    ///         self.0 = keys;
    ///     }
    /// }
    ///
    /// let mut queue = Queue::builder().metrics(Depth::default()).build();
    /// let _ = queue.add_many(["node-7", "node-8"], Instant::EPOCH, |_| {});
    /// assert_eq!(queue.metrics().0, 2);
    /// ```
    pub fn metrics<M2: Metrics>(self, metrics: M2) -> Builder<L, M2, P> {
        Builder {
            limiter: self.limiter,
            metrics,
            levels: self.levels,
            capacity: self.capacity,
            memories_max: self.memories_max,
        }
    }

    /// How many priority levels there are, from 1 to 32. At first one, which costs nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_core::{AddOptions, Instant, Queue};
    ///
    /// let mut queue = Queue::builder().levels::<2>().build();
    /// let urgent = AddOptions { priority: Some(1), ..AddOptions::new() };
    /// queue.add("node-7", Instant::EPOCH).value.unwrap();
    /// queue.add_with("node-8", urgent, Instant::EPOCH).value.unwrap();
    /// let work = queue.try_get(Instant::EPOCH).value.unwrap();
    /// assert_eq!((work.key, work.priority()), ("node-8", 1));
    /// # queue.done(work.ticket, Instant::EPOCH).value.unwrap();
    /// ```
    pub fn levels<const LEVELS: usize>(self) -> Builder<L, M, Levels<LEVELS>> {
        Builder {
            limiter: self.limiter,
            metrics: self.metrics,
            levels: PhantomData,
            capacity: self.capacity,
            memories_max: self.memories_max,
        }
    }

    /// How many keys the queue takes before it grows: at first none. See
    /// [`Queue::with_capacity`].
    pub fn capacity(mut self, keys: usize) -> Self {
        self.capacity = keys;
        self
    }

    /// How many keys may stay in memory for their failures alone; the oldest beyond that are
    /// forgotten. At first there is no limit, as in client-go. [`Queue::limit_memories`] has an
    /// example.
    pub fn memories(mut self, keys: usize) -> Self {
        self.memories_max = keys;
        self
    }

    /// Makes the queue. O(1), and O(n) for the [`capacity`](Self::capacity).
    ///
    /// # Panics
    ///
    /// If memory for so many keys cannot be addressed, as with any collection.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_core::{DefaultController, Growable, Queue};
    ///
    /// let queue: Queue<String, Growable, DefaultController> =
    ///     Queue::builder().capacity(10_000).memories(50_000).build();
    /// assert_eq!(queue.held_len(), 0);
    /// ```
    pub fn build<K: Eq + Hash>(self) -> Queue<K, Growable<RandomState, P>, L, M> {
        let hasher = RandomState::default();
        let mut queue = Queue::from_parts(self.limiter, self.metrics, hasher, self.capacity);
        queue.limit_memories(self.memories_max);
        queue
    }
}
