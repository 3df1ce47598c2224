//! The builder of a growable queue. Owns the settings until the queue is built; never touches a
//! queue in use.

#[cfg(feature = "metrics")]
use alloc::borrow::Cow;
use core::hash::Hash;
use core::marker::PhantomData;
use core::time::Duration;

use crate::Instant;
use crate::group::Groups;
use crate::limiter::{
    DefaultController, Exponential, RateLimiter, TokenBucket, default_controller,
};
#[cfg(feature = "metrics")]
use crate::metrics::NamedMetrics;
use crate::metrics::reporter::Reporter;
use crate::metrics::{Metrics, Times};
use crate::policy::Policy;
use crate::priority::{Plain, Priorities};
use crate::queue::Queue;
use crate::storage::Storage;
use crate::store::growable::{Growable, RandomState};

/// Builds a queue whose storage grows. Made by the `builder` of a runtime's `WorkQueue`, or by
/// [`Queue::builder`].
///
/// `K`, `P` and `L` are the keys, the priorities and the limiter of the queue, in its own order.
/// `R` is the runtime, and `M` its metrics. Only [`limiter`](Self::limiter),
/// [`levels`](Self::levels),
/// [`aging`](Self::aging) and [`build_with_groups`](Self::build_with_groups) change the type of a
/// runtime's queue: a struct with one need not change for other figures, a limit on its keys,
/// a [policy](crate::Policy), other metrics or another clock.
///
/// The order of the calls does not matter, and of two calls of the same method the last one counts.
/// [`limiter`](Self::limiter) replaces everything that [`backoff`](Self::backoff) and
/// [`retry_rate`](Self::retry_rate) set, so a builder that has both does not compile:
///
/// ```compile_fail,E0277
/// use core::time::Duration;
/// use requeue::limiter::NoLimit;
/// use requeue::Queue;
///
/// let builder = Queue::<u32, _, _, _, _>::builder();
/// let _ = builder.backoff(Duration::from_millis(1), Duration::from_secs(1)).limiter(NoLimit);
/// ```
///
/// ```compile_fail,E0277
/// # use requeue::limiter::NoLimit;
/// # use requeue::Queue;
/// let builder = Queue::<u32, _, _, _, _>::builder();
/// let _ = builder.limiter(NoLimit).retry_rate(2.0, 1);
/// ```
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use requeue::{Instant, Queue};
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
pub struct Builder<K, P = Plain, L = ClientGo, R = Bare, M = ()>
where
    R: Runtime<M>,
    M: Metrics,
{
    clock: R::Clock,
    limiter: L,
    metrics: M,
    named: PhantomData<fn() -> (K, P)>,
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
/// use requeue::binding::{Queue, Runtime};
/// use requeue::limiter::RateLimiter;
/// use requeue::binding::Reporter;
/// use requeue::priority::Priorities;
/// use requeue::storage::Storage;
/// use requeue::Builder;
///
/// struct Mine;
///
/// impl Runtime for Mine {
///     type Clock = ();
///     // A real one puts the queue behind its lock.
///     type WorkQueue<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage> =
///         Queue<K, P, L, S, Reporter>;
///
///     fn assemble<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage>(
///         queue: Queue<K, P, L, S, Reporter>,
///         (): (),
///     ) -> Queue<K, P, L, S, Reporter> {
///         queue
///     }
/// }
///
/// let queue = Builder::<u32, _, _, Mine, _>::default().build();
/// assert_eq!(queue.stats().total, 0);
/// ```
pub trait Runtime<M: Metrics = Reporter> {
    /// The clocks of the runtime. The default is the runtime's own.
    type Clock: Default;
    /// The runtime's own queue.
    type WorkQueue<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage>;

    /// Makes the runtime's own queue.
    fn assemble<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage>(
        queue: Queue<K, P, L, S, M>,
        clock: Self::Clock,
    ) -> Self::WorkQueue<K, P, L, S>;
}

impl<M: Metrics> Runtime<M> for Bare {
    type Clock = ();
    type WorkQueue<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage> = Queue<K, P, L, S, M>;

    fn assemble<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage>(
        queue: Queue<K, P, L, S, M>,
        (): (),
    ) -> Queue<K, P, L, S, M> {
        queue
    }
}

/// Where the limiter of a builder comes from: client-go's, whose figures may be set, or another
/// one.
#[doc(hidden)]
pub trait Chosen {
    type Limiter: RateLimiter;

    fn limiter(self) -> Self::Limiter;
}

impl<L: RateLimiter> Chosen for L {
    type Limiter = Self;

    fn limiter(self) -> Self {
        self
    }
}

/// client-go's limiter, in a [`Builder`] to which no other was given. `SET` says whether its
/// figures were set.
#[derive(Clone, Debug)]
pub struct ClientGo<const SET: bool = false>(DefaultController);

impl<const SET: bool> Chosen for ClientGo<SET> {
    type Limiter = DefaultController;

    fn limiter(self) -> DefaultController {
        self.0
    }
}

/// The limiter, which [`Builder::limiter`] replaces.
#[diagnostic::on_unimplemented(
    message = "`limiter` would replace the limiter that this builder has already",
    label = "`limiter`, `backoff` or `retry_rate` was called before",
    note = "call either `limiter`, or `backoff` and `retry_rate`"
)]
#[doc(hidden)]
pub trait Replaceable: Chosen {}

impl Replaceable for ClientGo {}

/// The default limiter's settings, which [`Builder::backoff`] and [`Builder::retry_rate`] change.
#[diagnostic::on_unimplemented(
    message = "`backoff` and `retry_rate` are figures of client-go's limiter, and this builder has \
               another one",
    label = "`limiter` was called before",
    note = "call either `limiter`, or `backoff` and `retry_rate`"
)]
#[doc(hidden)]
pub trait Tunable: Chosen<Limiter = DefaultController> {}

impl<const SET: bool> Tunable for ClientGo<SET> {}

impl<K: Eq + Hash> Queue<K, Plain, DefaultController, Growable> {
    /// Returns a builder with client-go's defaults. The type of the keys is inferred from use, or
    /// named: `Queue::<String, _, _, _, _>::builder()`.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::{Instant, Queue};
    ///
    /// // The same defaults as in client-go.
    /// let mut queue = Queue::builder().build();
    /// queue.at(Instant::EPOCH).add("node-7").unwrap();
    /// ```
    pub fn builder() -> Builder<K> {
        Builder::with_metrics(())
    }
}

/// The builder of a runtime's queue. For runtimes: [`Runtime`] has an example.
impl<K, R: Runtime> Default for Builder<K, Plain, ClientGo, R, Reporter> {
    fn default() -> Self {
        Self::with_metrics(Reporter::NONE)
    }
}

impl<K, R: Runtime<M>, M: Metrics> Builder<K, Plain, ClientGo, R, M> {
    fn with_metrics(metrics: M) -> Self {
        Self {
            clock: R::Clock::default(),
            limiter: ClientGo(default_controller()),
            metrics,
            named: PhantomData,
            policy: Policy::new(),
            room: Room::UNLIMITED,
        }
    }
}

impl<K, P: Priorities, L: Chosen, R: Runtime<M>, M: Metrics> Builder<K, P, L, R, M> {
    /// Sets the delay after the first failure of a key, which doubles with each further failure,
    /// and the longest delay. The defaults are 5 ms and 1000 s, as in client-go. The [type](Self)
    /// has an example.
    pub fn backoff(self, base: Duration, max: Duration) -> Builder<K, P, ClientGo<true>, R, M>
    where
        L: Tunable,
    {
        self.tune(|limiter| limiter.0 = Exponential::new(base, max))
    }

    /// Sets how many retries per second all keys together may have, after a burst. The defaults are
    /// 10 and 100, as in client-go: if thousands of keys fail together, the last one waits for
    /// minutes.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue::{Instant, Queue};
    ///
    /// let mut queue = Queue::builder().retry_rate(2.0, 1).build();
    /// let mut delay = |key| queue.at(Instant::EPOCH).add_rate_limited(key).unwrap().delay;
    /// assert_eq!(delay("node-7"), Duration::from_millis(5));
    /// assert_eq!(delay("node-8"), Duration::from_millis(500));
    /// ```
    pub fn retry_rate(self, per_second: f64, burst: u32) -> Builder<K, P, ClientGo<true>, R, M>
    where
        L: Tunable,
    {
        self.tune(|limiter| limiter.1 = TokenBucket::new(per_second, burst))
    }

    /// Removes the limit on retries per second: only the backoff of each key counts.
    pub fn no_retry_rate(self) -> Builder<K, P, ClientGo<true>, R, M>
    where
        L: Tunable,
    {
        self.retry_rate(TokenBucket::UNLIMITED_RATE, 0)
    }

    fn tune(self, set: impl FnOnce(&mut DefaultController)) -> Builder<K, P, ClientGo<true>, R, M>
    where
        L: Tunable,
    {
        self.with(|limiter| {
            let mut limiter = limiter.limiter();
            set(&mut limiter);
            ClientGo(limiter)
        })
    }

    /// This builder with another limiter and other priorities.
    fn with<P2, L2>(self, limiter: impl FnOnce(L) -> L2) -> Builder<K, P2, L2, R, M> {
        Builder {
            clock: self.clock,
            limiter: limiter(self.limiter),
            metrics: self.metrics,
            named: PhantomData,
            policy: self.policy,
            room: self.room,
        }
    }

    /// Replaces exponential backoff and the retry rate by another limiter. The limiter is part of
    /// the type of the queue.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue::limiter::FastSlow;
    /// use requeue::{Instant, Queue};
    ///
    /// let limiter = FastSlow::new(Duration::from_millis(5), Duration::from_secs(10), 3);
    /// let mut queue = Queue::builder().limiter(limiter).build();
    /// let scheduled = queue.at(Instant::EPOCH).add_rate_limited("node-7").unwrap();
    /// assert_eq!(scheduled.delay, Duration::from_millis(5));
    /// ```
    pub fn limiter<L2: RateLimiter>(self, limiter: L2) -> Builder<K, P, L2, R, M>
    where
        L: Replaceable,
    {
        self.with(|_| limiter)
    }

    /// Sets the number of priority levels, from 1 to 32. The default is one, which costs nothing.
    /// The levels are part of the type of the queue. The order of this and [`aging`](Self::aging)
    /// does not matter: both give `Aging<Levels<2>>`. If you call this twice, the last call counts.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::{AddOptions, Instant, Queue};
    ///
    /// let mut queue = Queue::builder().levels::<2>().build();
    /// let urgent = AddOptions { priority: Some(1), ..AddOptions::new() };
    /// queue.at(Instant::EPOCH).add("node-7").unwrap();
    /// queue.at(Instant::EPOCH).add_with("node-8", urgent).unwrap();
    /// let work = queue.at(Instant::EPOCH).try_get().unwrap();
    /// assert_eq!((work.key, work.priority), ("node-8", 1));
    /// # queue.at(Instant::EPOCH).release(work.ticket);
    /// # use requeue::limiter::DefaultController;
    /// # use requeue::priority::{Aging, Levels};
    /// # use requeue::storage::Growable;
    /// # type Orders = Queue<u32, Aging<Levels<2>>, DefaultController, Growable>;
    /// # let _: Orders = Queue::builder().aging().levels::<2>().build();
    /// # let _: Orders = Queue::builder().levels::<4>().aging().aging().levels::<2>().build();
    /// ```
    pub fn levels<const LEVELS: usize>(self) -> Builder<K, P::Leveled<LEVELS>, L, R, M> {
        self.with(|limiter| limiter)
    }

    /// Lets keys age: see [`Aging`](crate::priority::Aging). They do once
    /// [`Session::age_after`](crate::Session::age_after) has said after which time.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use requeue::{AddOptions, Instant, Queue};
    ///
    /// let mut queue = Queue::builder().levels::<2>().aging().build();
    /// queue.at(Instant::EPOCH).age_after(Duration::from_secs(60));
    /// queue.at(Instant::EPOCH).add("node-7").unwrap();
    /// ```
    pub fn aging(self) -> Builder<K, P::Aged, L, R, M> {
        self.with(|limiter| limiter)
    }

    /// Holds each key for `pause` after each of its runs, however it is added meanwhile. [`Policy`]
    /// says what a hold means, and when it ends early.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue::{Action, Added, Instant, Queue};
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
    /// client-go, and without this, an add makes the key ready now, and the key runs once more
    /// when its backoff ends. [`Policy`] says what a hold means.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue::{Action, Instant, Queue};
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

    /// Sets how many keys the queue has at most: ready, active, delayed, or kept only for their
    /// failures or a cool-down. There is no limit by default.
    ///
    /// The type of the queue stays the same, and it behaves as one of
    /// [`Fixed`](crate::storage::Fixed) storage with so much room: a new key for which there is
    /// none is [refused](crate::Rejected::Full), or waits for room. With zero, the queue takes no
    /// key. [`Session::limit_keys`](crate::Session::limit_keys) changes the limit later.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::{Added, Instant, Queue, Rejected};
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

impl<K, P, L> Builder<K, P, L> {
    /// Sets the metrics, whose type is part of the type of a bare queue. Without them no times are
    /// kept, and no clock is read for them.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::metrics::Metrics;
    /// use requeue::{Instant, Queue};
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
    pub fn report_to<M2: Metrics>(self, metrics: M2) -> Builder<K, P, L, Bare, M2> {
        Builder {
            clock: self.clock,
            limiter: self.limiter,
            metrics,
            named: PhantomData,
            policy: self.policy,
            room: self.room,
        }
    }
}

impl<K, P, L, R: Runtime> Builder<K, P, L, R, Reporter> {
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
    /// # use requeue::binding::{ClientGo, Queue, Runtime};
    /// # use requeue::limiter::RateLimiter;
    /// # use requeue::binding::Reporter;
    /// # use requeue::priority::{Plain, Priorities};
    /// # use requeue::storage::Storage;
    /// # use requeue::Builder;
    /// # struct Mine;
    /// # impl Runtime for Mine {
    /// #     type Clock = ();
    /// #     type WorkQueue<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage> =
    /// #         Queue<K, P, L, S, Reporter>;
    /// #     fn assemble<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage>(
    /// #         queue: Queue<K, P, L, S, Reporter>,
    /// #         (): (),
    /// #     ) -> Queue<K, P, L, S, Reporter> {
    /// #         queue
    /// #     }
    /// # }
    /// # struct WorkQueue;
    /// # impl WorkQueue {
    /// #     fn builder<K>() -> Builder<K, Plain, ClientGo, Mine, Reporter> {
    /// #         Builder::default()
    /// #     }
    /// # }
    /// use core::time::Duration;
    /// use requeue::metrics::{Metrics, Times};
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
    /// # queue.at(requeue::Instant::EPOCH).add("node-7").unwrap();
    /// # assert!(queue.needs_time());
    /// ```
    pub fn report_to(mut self, metrics: impl Metrics<Timestamps = Times> + Send + 'static) -> Self {
        self.metrics = Reporter::new(metrics);
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

#[cfg(feature = "metrics")]
impl<K, P, L, R: Runtime> Builder<K, P, L, R, Reporter> {
    /// Reports the metrics of the queue under this name, through [`NamedMetrics`], to the recorder
    /// that is installed when the queue is [built](Self::build). If the queue has
    /// [`levels`](Self::levels), each of them is reported.
    pub fn metrics(self, name: impl Into<Cow<'static, str>>) -> Self {
        self.report_to(NamedMetrics::detached(name))
    }
}

impl<K, P, L, R, M> Builder<K, P, L, R, M>
where
    K: Eq + Hash,
    P: Priorities,
    L: Chosen,
    R: Runtime<M>,
    M: Metrics,
{
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
    /// use requeue::limiter::DefaultController;
    /// use requeue::priority::Plain;
    /// use requeue::storage::Growable;
    /// use requeue::Queue;
    ///
    /// let queue: Queue<String, Plain, DefaultController, Growable> =
    ///     Queue::builder().capacity(10_000).failure_records(50_000).build();
    /// assert_eq!(queue.stats().total, 0);
    /// ```
    pub fn build(self) -> R::WorkQueue<K, P, L::Limiter, Growable>
    where
        P: Priorities<Naming<K> = ()>,
    {
        let (limiter, hasher) = (self.limiter.limiter(), RandomState::default());
        let queue = Queue::from_parts(limiter, self.metrics, hasher, self.room.capacity);
        R::assemble(complete(queue, self.room, self.policy), self.clock)
    }

    /// As [`build`](Self::build), but the keys belong to [`Groups`]: `group_of` computes the group
    /// of a key. It is a function, or a closure that captures nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::{GroupLimits, Instant, Queue};
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
    pub fn build_with_groups<G: Eq + Hash>(
        self,
        group_of: fn(&K) -> G,
    ) -> R::WorkQueue<K, Groups<G, P>, L::Limiter, Growable> {
        let (limiter, hasher) = (self.limiter.limiter(), RandomState::default());
        let (metrics, room) = (self.metrics, self.room);
        let queue = Queue::growable_with_groups(limiter, metrics, hasher, room.capacity, group_of);
        R::assemble(complete(queue, room, self.policy), self.clock)
    }
}

/// Applies the settings, once all parts of the queue are known.
fn complete<K, P, L, M>(
    mut queue: Queue<K, P, L, Growable, M>,
    room: Room,
    policy: Policy,
) -> Queue<K, P, L, Growable, M>
where
    K: Eq + Hash,
    P: Priorities,
    L: RateLimiter,
    M: Metrics,
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
