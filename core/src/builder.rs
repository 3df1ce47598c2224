//! The builder of a growable queue.

use core::hash::Hash;
use core::marker::PhantomData;
use core::time::Duration;

use crate::Instant;
use crate::aging::Aging;
use crate::group::Groups;
use crate::limiter::{
    DefaultController, Exponential, RateLimiter, TokenBucket, default_controller,
};
use crate::metrics::reporter::Reporter;
use crate::metrics::{Metrics, NoMetrics, Times};
use crate::policy::Policy;
use crate::priority::{Levels, Plain, Priorities};
use crate::queue::Queue;
use crate::storage::Storage;
use crate::storage::growable::{Growable, RandomState};

/// Builds a queue whose storage grows. Made by the `builder` of a runtime's `WorkQueue`, or by
/// [`Queue::builder`].
///
/// `R` is the runtime. Only [`limiter`](Self::limiter), [`levels`](Self::levels),
/// [`aging`](Self::aging) and [`build_with_groups`](Self::build_with_groups) change the type of a
/// runtime's queue: a struct that holds one need not change for other figures, a limit on its keys,
/// a [policy](crate::Policy), other metrics or another clock.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use requeue_core::{Instant, Queue};
///
/// let mut queue = Queue::builder()
///     .backoff(Duration::from_millis(100), Duration::from_secs(60))
///     .no_retry_rate()
///     .capacity(10_000)
///     .build();
/// let scheduled = queue.at(Instant::EPOCH).add_rate_limited("node-7").unwrap();
/// assert_eq!(scheduled.delay, Duration::from_millis(100));
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct Builder<R = Bare, L = DefaultController, M = NoMetrics, P = Plain>
where
    R: Runtime<M>,
    M: Metrics,
{
    clock: R::Clock,
    limiter: L,
    figures: M,
    levels: PhantomData<P>,
    policy: Policy,
    room: Room,
}

/// How many keys a queue takes.
#[derive(Clone, Copy, Debug)]
struct Room {
    /// Before it grows.
    capacity: usize,
    keys_max: usize,
    failure_records_max: usize,
}

impl Room {
    const UNLIMITED: Self = Self {
        capacity: 0,
        keys_max: usize::MAX,
        failure_records_max: usize::MAX,
    };
}

/// No runtime: the [`Builder`] of a bare [`Queue`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Bare;

/// How a runtime makes its queues. With this a runtime uses [`Builder`] and needs no builder of its
/// own.
///
/// # Examples
///
/// ```
/// use core::hash::Hash;
/// use requeue_core::binding::{Queue, Runtime};
/// use requeue_core::{Builder, RateLimiter, Reporter, Storage};
///
/// struct Mine;
///
/// impl Runtime for Mine {
///     type Clock = ();
///     // A real one puts the queue behind its lock.
///     type WorkQueue<K: Eq + Hash, L: RateLimiter, S: Storage> = Queue<K, S, L, Reporter>;
///
///     fn assemble<K: Eq + Hash, L: RateLimiter, S: Storage>(
///         queue: Queue<K, S, L, Reporter>,
///         (): (),
///     ) -> Queue<K, S, L, Reporter> {
///         queue
///     }
/// }
///
/// let queue = Builder::<Mine, _, _>::default().build::<u32>();
/// assert_eq!(queue.stats().total, 0);
/// ```
pub trait Runtime<M: Metrics = Reporter> {
    /// The clocks of the runtime. The default is the runtime's own.
    type Clock: Default;
    /// The runtime's own queue.
    type WorkQueue<K: Eq + Hash, L: RateLimiter, S: Storage>;

    /// Makes the runtime's own queue.
    fn assemble<K: Eq + Hash, L: RateLimiter, S: Storage>(
        queue: Queue<K, S, L, M>,
        clock: Self::Clock,
    ) -> Self::WorkQueue<K, L, S>;
}

impl<M: Metrics> Runtime<M> for Bare {
    type Clock = ();
    type WorkQueue<K: Eq + Hash, L: RateLimiter, S: Storage> = Queue<K, S, L, M>;

    fn assemble<K: Eq + Hash, L: RateLimiter, S: Storage>(
        queue: Queue<K, S, L, M>,
        (): (),
    ) -> Queue<K, S, L, M> {
        queue
    }
}

impl Queue<(), Growable, DefaultController> {
    /// Returns a builder with client-go's defaults. The type of the keys is inferred from use.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_core::{Instant, Queue};
    ///
    /// // The same defaults as in client-go.
    /// let mut queue = Queue::builder().build();
    /// queue.at(Instant::EPOCH).add("node-7").unwrap();
    /// ```
    pub fn builder() -> Builder {
        Builder::with_metrics(NoMetrics)
    }
}

/// The builder of a runtime's queue. For runtimes: [`Runtime`] has an example.
impl<R: Runtime> Default for Builder<R, DefaultController, Reporter, Plain> {
    fn default() -> Self {
        Self::with_metrics(Reporter::NONE)
    }
}

impl<R: Runtime<M>, M: Metrics> Builder<R, DefaultController, M, Plain> {
    fn with_metrics(metrics: M) -> Self {
        Self {
            clock: R::Clock::default(),
            limiter: default_controller(),
            figures: metrics,
            levels: PhantomData,
            policy: Policy::new(),
            room: Room::UNLIMITED,
        }
    }
}

impl<R: Runtime<M>, M: Metrics, P> Builder<R, DefaultController, M, P> {
    /// Sets the delay after the first failure of a key, which doubles with each further failure,
    /// and the longest delay. The defaults are 5 ms and 1000 s, as in client-go. The [type](Self)
    /// has an example.
    pub fn backoff(mut self, base: Duration, max: Duration) -> Self {
        self.limiter.0 = Exponential::new(base, max);
        self
    }

    /// Sets how many retries per second all keys together may have, after a burst. The defaults are
    /// 10 and 100, as in client-go: if thousands of keys fail at once, the last one waits for
    /// minutes.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue_core::{Instant, Queue};
    ///
    /// let mut queue = Queue::builder().retry_rate(2.0, 1).build();
    /// let mut delay = |key| queue.at(Instant::EPOCH).add_rate_limited(key).unwrap().delay;
    /// assert_eq!(delay("node-7"), Duration::from_millis(5));
    /// assert_eq!(delay("node-8"), Duration::from_millis(500));
    /// ```
    pub fn retry_rate(mut self, per_second: f64, burst: u32) -> Self {
        self.limiter.1 = TokenBucket::new(per_second, burst);
        self
    }

    /// Removes the limit on retries per second: only the backoff of each key counts.
    pub fn no_retry_rate(self) -> Self {
        self.retry_rate(TokenBucket::UNLIMITED_RATE, 0)
    }
}

impl<R: Runtime<M>, L, M: Metrics, P> Builder<R, L, M, P> {
    /// Replaces exponential backoff and the retry rate by another limiter. The limiter is part of
    /// the type of the queue.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue_core::{Instant, FastSlow, Queue};
    ///
    /// let limiter = FastSlow::new(Duration::from_millis(5), Duration::from_secs(10), 3);
    /// let mut queue = Queue::builder().limiter(limiter).build();
    /// let scheduled = queue.at(Instant::EPOCH).add_rate_limited("node-7").unwrap();
    /// assert_eq!(scheduled.delay, Duration::from_millis(5));
    /// ```
    pub fn limiter<L2: RateLimiter>(self, limiter: L2) -> Builder<R, L2, M, P> {
        Builder {
            clock: self.clock,
            limiter,
            figures: self.figures,
            levels: self.levels,
            policy: self.policy,
            room: self.room,
        }
    }

    /// Sets the number of priority levels, from 1 to 32. The default is one, which costs nothing.
    /// The levels are part of the type of the queue.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_core::{AddOptions, Instant, Queue};
    ///
    /// let mut queue = Queue::builder().levels::<2>().build();
    /// let urgent = AddOptions { priority: Some(1), ..AddOptions::new() };
    /// queue.at(Instant::EPOCH).add("node-7").unwrap();
    /// queue.at(Instant::EPOCH).add_with("node-8", urgent).unwrap();
    /// let work = queue.at(Instant::EPOCH).try_get().unwrap();
    /// assert_eq!((work.key, work.priority), ("node-8", 1));
    /// # queue.at(Instant::EPOCH).release(work.ticket);
    /// ```
    pub fn levels<const LEVELS: usize>(self) -> Builder<R, L, M, Levels<LEVELS>> {
        self.with_priorities()
    }

    /// Lets keys age: see [`Aging`]. They do once [`Session::age_after`](crate::Session::age_after)
    /// has said after which time.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use requeue_core::{AddOptions, Instant, Queue};
    ///
    /// let mut queue = Queue::builder().levels::<2>().aging().build();
    /// queue.at(Instant::EPOCH).age_after(Duration::from_secs(60));
    /// queue.at(Instant::EPOCH).add("node-7").unwrap();
    /// ```
    pub fn aging(self) -> Builder<R, L, M, Aging<P>> {
        self.with_priorities()
    }

    fn with_priorities<P2>(self) -> Builder<R, L, M, P2> {
        Builder {
            clock: self.clock,
            limiter: self.limiter,
            figures: self.figures,
            levels: PhantomData,
            policy: self.policy,
            room: self.room,
        }
    }

    /// Holds each key for `pause` after each of its runs, however it is added meanwhile. [`Policy`]
    /// says what a hold means, and when it ends early.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue_core::{Action, Added, Instant, Queue};
    ///
    /// let pause = Duration::from_secs(10);
    /// let mut queue = Queue::builder().cool_down(pause).build();
    /// let now = Instant::EPOCH;
    /// queue.at(now).add("node-7").unwrap();
    /// let work = queue.at(now).try_get().unwrap();
    /// queue.at(now).finish(work.ticket, Action::Success);
    /// assert_eq!(queue.at(now).add("node-7"), Ok(Added::Delayed));
    /// assert_eq!(queue.next_deadline(), Some(now + pause));
    /// ```
    pub fn cool_down(mut self, pause: Duration) -> Self {
        self.policy = self.policy.cool_down(pause);
        self
    }

    /// Holds each key that fails until its backoff is over, however it is added meanwhile. In
    /// client-go, and without this, an add ends a backoff. [`Policy`] says what a hold means.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue_core::{Action, Instant, Queue};
    ///
    /// let mut queue = Queue::builder().hold_failures().build();
    /// let now = Instant::EPOCH;
    /// queue.at(now).add("node-7").unwrap();
    /// let work = queue.at(now).try_get().unwrap();
    /// queue.at(now).finish(work.ticket, Action::Retry);
    /// queue.at(now).add("node-7").unwrap();
    /// assert!(queue.at(now).try_get().is_none());
    /// assert_eq!(queue.next_deadline(), Some(now + Duration::from_millis(5)));
    /// ```
    pub fn hold_failures(mut self) -> Self {
        self.policy = self.policy.hold_failures();
        self
    }

    /// Limits how many runs begin per second, after a burst of at most `burst`. Ready keys wait for
    /// a token in their order. [`Policy::run_rate`] has an example.
    pub fn run_rate(mut self, per_second: f64, burst: u32) -> Self {
        self.policy = self.policy.run_rate(per_second, burst);
        self
    }

    /// Sets how many keys the queue takes before it grows. The default is none. This is no limit:
    /// see [`max_keys`](Self::max_keys) and [`Queue::with_capacity`].
    pub fn capacity(mut self, keys: usize) -> Self {
        self.room.capacity = keys;
        self
    }

    /// Sets how many keys the queue holds at most: ready, active, delayed, or kept only for their
    /// failures or a cool-down. There is no limit by default.
    ///
    /// The type of the queue stays the same, and it behaves as one of [`Fixed`](crate::Fixed)
    /// storage with so much room: a new key for which there is none is
    /// [refused](crate::Rejected::Full), or waits for room. With zero, the queue takes no key.
    /// [`Session::limit_keys`](crate::Session::limit_keys) changes the limit later.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_core::{Added, Instant, Queue, Rejected};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue = Queue::builder().max_keys(2).build();
    /// let _ = queue.at(now).add_many(["node-7", "node-8"], |_| {});
    /// assert_eq!(queue.at(now).add("node-9"), Err(Rejected::Full("node-9")));
    /// assert_eq!(queue.at(now).add("node-7"), Ok(Added::Coalesced));
    /// assert_eq!(queue.stats().max_keys, Some(2));
    /// ```
    pub fn max_keys(mut self, keys: usize) -> Self {
        self.room.keys_max = keys;
        self
    }

    /// Sets how many idle keys are kept for their failures or a cool-down. Beyond that the oldest
    /// is discarded, and its cool-down ends early. There is no limit by default, as in client-go.
    /// [`Queue::limit_failure_records`] has an example.
    pub fn failure_records(mut self, keys: usize) -> Self {
        self.room.failure_records_max = keys;
        self
    }
}

impl<L, P> Builder<Bare, L, NoMetrics, P> {
    /// Sets the metrics, whose type is part of the type of a bare queue. Without them no times are
    /// kept, and no clock is read for them.
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
    ///     type Timestamps = ();
    ///
    ///     fn depth(&mut self, keys: usize) {
    ///         self.0 = keys;
    ///     }
    /// }
    ///
    /// let mut queue = Queue::builder().report_to(Depth::default()).build();
    /// let _ = queue.at(Instant::EPOCH).add_many(["node-7", "node-8"], |_| {});
    /// assert_eq!(queue.metrics().0, 2);
    /// ```
    pub fn report_to<M2: Metrics>(self, metrics: M2) -> Builder<Bare, L, M2, P> {
        Builder {
            clock: self.clock,
            limiter: self.limiter,
            figures: metrics,
            levels: self.levels,
            policy: self.policy,
            room: self.room,
        }
    }
}

impl<R: Runtime, L, P> Builder<R, L, Reporter, P> {
    /// Sets the metrics, whose type is no part of the type of a runtime's queue. Without them no
    /// times are kept, and no clock is read for them.
    ///
    /// With the feature `metrics` of the crate, a method `metrics(name)` takes a name instead, and
    /// reports through the facade `metrics`.
    ///
    /// # Examples
    ///
    /// ```
    /// # use core::hash::Hash;
    /// # use requeue_core::binding::{Queue, Runtime};
    /// # use requeue_core::{Builder, RateLimiter, Reporter, Storage};
    /// # struct Mine;
    /// # impl Runtime for Mine {
    /// #     type Clock = ();
    /// #     type WorkQueue<K: Eq + Hash, L: RateLimiter, S: Storage> = Queue<K, S, L, Reporter>;
    /// #     fn assemble<K: Eq + Hash, L: RateLimiter, S: Storage>(
    /// #         queue: Queue<K, S, L, Reporter>,
    /// #         (): (),
    /// #     ) -> Queue<K, S, L, Reporter> {
    /// #         queue
    /// #     }
    /// # }
    /// # struct WorkQueue;
    /// # impl WorkQueue {
    /// #     fn builder() -> Builder<Mine, requeue_core::DefaultController, Reporter> {
    /// #         Builder::default()
    /// #     }
    /// # }
    /// use core::time::Duration;
    /// use requeue_core::{Metrics, Times};
    ///
    /// #[derive(Default)]
    /// struct Slowest(Duration);
    ///
    /// impl Metrics for Slowest {
    ///     type Timestamps = Times;
    ///
    ///     fn work_duration(&mut self, duration: Duration) {
    ///         self.0 = self.0.max(duration);
    ///     }
    /// }
    ///
    /// let queue = WorkQueue::builder().report_to(Slowest::default()).build();
    /// # let mut queue = queue;
    /// # queue.at(requeue_core::Instant::EPOCH).add("node-7").unwrap();
    /// # assert!(queue.needs_time());
    /// ```
    pub fn report_to(mut self, metrics: impl Metrics<Timestamps = Times> + Send + 'static) -> Self {
        self.figures = Reporter::new(metrics);
        self
    }

    /// Sets the clock. The default is the runtime's own. On threads a test uses a `ManualClock`,
    /// which it moves itself. On Tokio there is one kind of clock, which a test pauses with
    /// `tokio::time::pause`, and this sets only its epoch.
    pub fn clock(mut self, clock: impl Into<R::Clock>) -> Self {
        self.clock = clock.into();
        self
    }
}

impl<R: Runtime<M>, L: RateLimiter, M: Metrics, P: Priorities> Builder<R, L, M, P> {
    /// Builds the queue: a runtime's own, or a bare [`Queue`]. O(1), and O(n) for the
    /// [`capacity`](Self::capacity).
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
    ///     Queue::builder().capacity(10_000).failure_records(50_000).build();
    /// assert_eq!(queue.stats().total, 0);
    /// ```
    pub fn build<K: Eq + Hash>(self) -> R::WorkQueue<K, L, Growable<RandomState, P>>
    where
        P: Priorities<Naming<K> = ()>,
    {
        let hasher = RandomState::default();
        let queue = Queue::from_parts(self.limiter, self.figures, hasher, self.room.capacity);
        R::assemble(complete(queue, self.room, self.policy), self.clock)
    }

    /// As [`build`](Self::build), but the keys belong to [`Groups`]: `group_of` computes the group
    /// of a key.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_core::{GroupLimits, Instant, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue = Queue::builder().build_with_groups(|(tenant, _): &(&str, u32)| *tenant);
    /// queue.at(now).limit_groups(GroupLimits::new().max_active(4));
    /// for job in [("a", 1), ("a", 2), ("a", 3), ("b", 1)] {
    ///     queue.at(now).add(job).unwrap();
    /// }
    /// let mut next = || queue.at(now).try_get().unwrap().key;
    /// assert_eq!([next(), next(), next()], [("a", 1), ("b", 1), ("a", 2)]);
    /// ```
    pub fn build_with_groups<K, G>(
        self,
        group_of: fn(&K) -> G,
    ) -> R::WorkQueue<K, L, Growable<RandomState, Groups<G, P>>>
    where
        K: Eq + Hash,
        G: Eq + Hash,
    {
        let hasher = RandomState::default();
        let (limiter, metrics, room) = (self.limiter, self.figures, self.room);
        let queue = Queue::growable_with_groups(limiter, metrics, hasher, room.capacity, group_of);
        R::assemble(complete(queue, room, self.policy), self.clock)
    }
}

/// Does what comes once all parts of the queue are known.
fn complete<K, L, M, P>(
    mut queue: Queue<K, Growable<RandomState, P>, L, M>,
    room: Room,
    policy: Policy,
) -> Queue<K, Growable<RandomState, P>, L, M>
where
    K: Eq + Hash,
    L: RateLimiter,
    M: Metrics,
    P: Priorities,
{
    // Nothing waits yet.
    queue.at(Instant::EPOCH).limit_keys(room.keys_max);
    queue.limit_failure_records(room.failure_records_max);
    queue.metrics_mut().attach(P::LEVELS);
    if policy.holds() || policy.paces() {
        queue.at(Instant::EPOCH).set_policy(policy);
    }
    queue
}
