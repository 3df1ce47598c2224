//! The constructors, and the limits that are set before a queue is used. Owns the defaults of a
//! queue; never touches a key.

use crate::array::ConstDefault;
use crate::group::{GroupFn, Groups};
#[cfg(feature = "alloc")]
use crate::lists::Lists;
use crate::lists::grouped::rates::GroupRates;
#[cfg(feature = "alloc")]
use crate::metrics::reporter::Reporter;
#[cfg(feature = "alloc")]
use crate::store::Slots;
use crate::store::fixed::{Fixed, FixedNodes, FixedSlots};

#[cfg(feature = "alloc")]
use super::Session;
use super::*;

impl<K, L, const N: usize, I, P> Queue<K, P, L, Fixed<N, I>, ()>
where
    K: Eq + Hash,
    L: RateLimiter,
    I: Index,
    P: Priorities<Naming<K> = ()>,
{
    /// Creates an empty queue with room for `N` keys. Can be used in a `static`.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::limiter::NoLimit;
    /// use requeue::priority::Plain;
    /// use requeue::storage::Fixed;
    /// use requeue::Queue;
    ///
    /// const QUEUE: Queue<u16, Plain, NoLimit, Fixed<8>> = Queue::new(NoLimit);
    /// assert_eq!(QUEUE.stats().max_keys, Some(8));
    /// ```
    pub const fn new(limiter: L) -> Self {
        Self::with_metrics(limiter, ())
    }
}

impl<K, L, M, const N: usize, I, P> Queue<K, P, L, Fixed<N, I>, M>
where
    K: Eq + Hash,
    L: RateLimiter,
    M: Metrics,
    I: Index,
    P: Priorities<Naming<K> = ()>,
{
    /// Creates an empty queue with room for `N` keys, and with metrics.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::limiter::NoLimit;
    /// use requeue::metrics::Metrics;
    /// use requeue::priority::Plain;
    /// use requeue::storage::Fixed;
    /// use requeue::{Instant, Queue};
    ///
    /// #[derive(Default)]
    /// struct Adds(u32);
    ///
    /// impl Metrics for Adds {
    ///     type Timestamps = ();
    ///
    ///     fn added(&mut self) {
    ///         self.0 += 1;
    ///     }
    /// }
    ///
    /// let mut queue: Queue<&str, Plain, NoLimit, Fixed<4>, Adds> =
    ///     Queue::with_metrics(NoLimit, Adds::default());
    /// let _ = queue.at(Instant::EPOCH).add("node-7");
    /// assert_eq!(queue.metrics().0, 1);
    /// ```
    pub const fn with_metrics(limiter: L, metrics: M) -> Self {
        let slots = FixedSlots::new();
        let lists = ConstDefault::DEFAULT;
        Self::of_parts(slots, lists, FixedNodes::new(), limiter, metrics, ())
    }
}

impl<K, L, M, const N: usize, I, G, P, const MAX: usize, R>
    Queue<K, Groups<G, P, MAX, R>, L, Fixed<N, I>, M>
where
    K: Eq + Hash,
    L: RateLimiter,
    M: Metrics,
    I: Index,
    G: Eq + Hash,
    P: Priorities,
    R: GroupRates,
{
    /// Creates an empty queue with room for `N` keys, whose keys belong to groups. `group_of`
    /// computes the group of a key. [`Groups`] has an example.
    pub const fn with_groups(limiter: L, metrics: M, group_of: fn(&K) -> G) -> Self {
        let slots = FixedSlots::new();
        let lists = ConstDefault::DEFAULT;
        let naming = GroupFn(group_of);
        Self::of_parts(slots, lists, FixedNodes::new(), limiter, metrics, naming)
    }
}

impl<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage, M: Metrics> Queue<K, P, L, S, M> {
    const fn of_parts(
        slots: S::Slots<K, Meta<P, L, S, M>>,
        lists: S::Lists<P>,
        nodes: S::Nodes<P>,
        limiter: L,
        metrics: M,
        naming: P::Naming<K>,
    ) -> Self {
        Self {
            slots,
            lists,
            delays: Delays::new(nodes),
            sleepers: Sleepers::new(),
            limiter,
            policy: S::Policy::NONE,
            metrics,
            age_limit: P::Age::OFF,
            naming,
            running: KeepRunning::EMPTY,
            active: 0,
            dirty: 0,
            runs: 0,
            failure_records_max: usize::MAX,
            closed: false,
            gate: Gate::OPEN,
            due_keys_max: at_least_one(S::DUE_KEYS_MAX),
            watched: Watched::NONE,
            epoch: 0,
        }
    }

    /// Sets how many due keys one operation makes ready, at most. Zero counts as one. The default
    /// is [`Storage::DUE_KEYS_MAX`]. O(1).
    ///
    /// This bounds the cost of an operation, however many deadlines have passed. If more keys are
    /// due, each operation makes this many ready, in the order of their deadlines. The others are
    /// the backlog. They become ready with the operations that follow. So keys can be handed out in
    /// another order than that of their deadlines:
    ///
    /// - A key that you add meanwhile runs before the backlog.
    /// - An operation that names a due key makes that key ready, before earlier keys of the
    ///   backlog. A get names the first ready key, whose own deadline may have passed.
    /// - A due key of a higher [level](crate::priority::Levels) is not ready while it is in the
    ///   backlog. Ready keys of lower levels run before it.
    ///
    /// An active key that is due becomes dirty, and counts too. So with more of them than this, a
    /// get may find no key although one is due behind them. A call that waits looks again at once.
    /// `try_get`, and a call whose timeout has come, return: the next call continues.
    ///
    /// Groups whose [rate](crate::GroupLimits::rate) allows a run again are not part of the
    /// backlog. Each operation looks at this many of them, too.
    ///
    /// An operation that works on several keys, such as `take_ready` or `retain`, may make this
    /// many ready for each of them. While no key is ready or active, an operation also skips each
    /// key whose [suspension](crate::Session::suspend) has ended but which a hold delays. After
    /// shutdown it always does.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue::limiter::NoLimit;
    /// use requeue::priority::Plain;
    /// use requeue::storage::Fixed;
    /// use requeue::{Instant, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let due = now + Duration::from_secs(60);
    /// let mut queue: Queue<&str, Plain, NoLimit, Fixed<4>> = Queue::new(NoLimit);
    /// queue.limit_due_keys(1);
    /// for lease in ["lease-3", "lease-4"] {
    ///     let _ = queue.at(now).add_at(lease, due);
    /// }
    /// let _ = queue.at(due).add("node-7");
    /// let mut next = || queue.at(due).try_get().map(|work| work.key);
    /// assert_eq!(next(), Some("lease-3"));
    /// assert_eq!(next(), Some("node-7"));
    /// assert_eq!(next(), Some("lease-4"));
    /// ```
    pub const fn limit_due_keys(&mut self, keys: u8) {
        self.due_keys_max = at_least_one(keys);
    }
}

const fn at_least_one(keys: u8) -> NonZeroU8 {
    match NonZeroU8::new(keys) {
        Some(keys) => keys,
        None => NonZeroU8::MIN,
    }
}

#[cfg(feature = "alloc")]
impl<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage, M: Metrics>
    Session<'_, K, P, L, S, M>
{
    /// Makes room for `additional` more keys, so that adding them does not grow the queue. O(n).
    ///
    /// Makes no room for delays, whose memory grows when there are any. Does nothing with
    /// [`Fixed`](crate::storage::Fixed) storage.
    ///
    /// # Panics
    ///
    /// If memory for so many keys cannot be addressed, as with any collection.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::limiter::NoLimit;
    /// use requeue::priority::Plain;
    /// use requeue::storage::Growable;
    /// use requeue::{Instant, Queue};
    ///
    /// let listed = ["node-7", "node-8", "node-9"];
    /// let mut queue: Queue<&str, Plain, NoLimit, Growable> = Queue::growable(NoLimit);
    /// queue.at(Instant::EPOCH).reserve(listed.len());
    /// let _ = queue.at(Instant::EPOCH).add_many(listed, |_| {});
    /// assert_eq!(queue.stats().total, 3);
    /// ```
    pub fn reserve(&mut self, additional: usize) {
        self.queue.slots.reserve(additional);
        self.queue.lists.reserve(additional);
    }
}

/// The same queue, whose metrics may be chosen at run time: there are none. The runtimes' queues
/// are of this type.
///
/// # Examples
///
/// ```
/// use requeue::limiter::NoLimit;
/// use requeue::binding::Reporter;
/// use requeue::priority::Plain;
/// use requeue::storage::Fixed;
/// use requeue::{Instant, Queue};
///
/// let mut queue: Queue<u16, Plain, NoLimit, Fixed<8>> = Queue::new(NoLimit);
/// queue.at(Instant::EPOCH).add(17).unwrap();
/// let mut queue: Queue<u16, Plain, NoLimit, Fixed<8>, Reporter> = queue.into();
/// assert_eq!(queue.at(Instant::EPOCH).try_get().unwrap().key, 17);
/// ```
#[cfg(feature = "alloc")]
impl<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage> From<Queue<K, P, L, S>>
    for Queue<K, P, L, S, Reporter>
{
    fn from(queue: Queue<K, P, L, S>) -> Self {
        // Both types keep no times in the slots.
        Self {
            slots: queue.slots,
            lists: queue.lists,
            delays: queue.delays,
            sleepers: queue.sleepers,
            limiter: queue.limiter,
            policy: queue.policy,
            metrics: Reporter::NONE,
            age_limit: queue.age_limit,
            naming: queue.naming,
            running: queue.running,
            active: queue.active,
            dirty: queue.dirty,
            runs: queue.runs,
            failure_records_max: queue.failure_records_max,
            due_keys_max: queue.due_keys_max,
            closed: queue.closed,
            gate: queue.gate,
            watched: queue.watched,
            epoch: queue.epoch,
        }
    }
}

#[cfg(feature = "alloc")]
mod growable {
    use core::hash::{BuildHasher, Hash};

    use crate::group::{GroupFn, Groups};
    use crate::limiter::RateLimiter;
    use crate::lists::Lists;
    use crate::lists::grouped::rates::GroupRates;
    use crate::metrics::Metrics;
    use crate::priority::{Plain, Priorities};
    use crate::store::Slots;
    use crate::store::growable::{Growable, GrowableNodes, GrowableSlots, RandomState};

    use super::{Queue, Session};

    impl<K: Eq + Hash, L: RateLimiter> Queue<K, Plain, L, Growable, ()> {
        /// Creates an empty queue that grows as needed.
        ///
        /// # Examples
        ///
        /// ```
        /// use requeue::limiter::default_controller;
        /// use requeue::priority::Plain;
        /// use requeue::storage::Growable;
        /// use requeue::{Instant, Queue};
        ///
        /// let mut queue: Queue<String, Plain, _, Growable> =
        ///     Queue::growable(default_controller());
        /// for node in 0..1000 {
        ///     queue.at(Instant::EPOCH).add(format!("node-{node}")).unwrap();
        /// }
        /// assert_eq!(queue.stats().total, 1000);
        /// ```
        pub fn growable(limiter: L) -> Self {
            Self::with_capacity(limiter, 0)
        }

        /// Creates an empty queue that takes `keys` keys before it grows. O(`keys`).
        ///
        /// Delays and failure records have memory of their own, which grows when there are any.
        ///
        /// # Panics
        ///
        /// If memory for so many keys cannot be addressed, as with any collection.
        ///
        /// # Examples
        ///
        /// ```
        /// use requeue::limiter::default_item_based;
        /// use requeue::priority::Plain;
        /// use requeue::storage::Growable;
        /// use requeue::Queue;
        ///
        /// // A cluster of 5,000 nodes is listed without growing the queue.
        /// let queue: Queue<u32, Plain, _, Growable> =
        ///     Queue::with_capacity(default_item_based(), 5_000);
        /// assert_eq!(queue.stats().total, 0);
        /// ```
        pub fn with_capacity(limiter: L, keys: usize) -> Self {
            let hasher = RandomState::default();
            Self::from_parts(limiter, (), hasher, keys)
        }
    }

    impl<K, L, M, H, P> Queue<K, P, L, Growable<H>, M>
    where
        K: Eq + Hash,
        L: RateLimiter,
        M: Metrics,
        H: BuildHasher,
        P: Priorities<Naming<K> = ()>,
    {
        /// Creates an empty queue from its parts, which takes `keys` keys before it grows.
        /// O(`keys`).
        ///
        /// # Panics
        ///
        /// As [`with_capacity`](Self::with_capacity).
        ///
        /// # Examples
        ///
        /// A hasher without a random seed, for keys that no attacker can choose:
        ///
        /// ```
        /// use std::hash::{BuildHasherDefault, DefaultHasher};
        /// use requeue::limiter::NoLimit;
        /// use requeue::priority::Plain;
        /// use requeue::storage::Growable;
        /// use requeue::{Instant, Queue};
        ///
        /// type Repeatable = BuildHasherDefault<DefaultHasher>;
        /// let mut queue: Queue<u32, Plain, NoLimit, Growable<Repeatable>> =
        ///     Queue::from_parts(NoLimit, (), Repeatable::default(), 100);
        /// queue.at(Instant::EPOCH).add(7).unwrap();
        /// ```
        pub fn from_parts(limiter: L, metrics: M, hasher: H, keys: usize) -> Self {
            Self::assemble(limiter, metrics, hasher, keys, ())
        }
    }

    impl<K, L, M, H, G, P, const MAX: usize, R> Queue<K, Groups<G, P, MAX, R>, L, Growable<H>, M>
    where
        K: Eq + Hash,
        L: RateLimiter,
        M: Metrics,
        H: BuildHasher,
        G: Eq + Hash,
        P: Priorities,
        R: GroupRates,
    {
        /// As [`from_parts`](Queue::from_parts), but the keys belong to groups. `group_of` computes
        /// the group of a key. [`Groups`] has an example.
        pub fn growable_with_groups(
            limiter: L,
            metrics: M,
            hasher: H,
            keys: usize,
            group_of: fn(&K) -> G,
        ) -> Self {
            Self::assemble(limiter, metrics, hasher, keys, GroupFn(group_of))
        }
    }

    impl<K, L, M, H, P> Queue<K, P, L, Growable<H>, M>
    where
        K: Eq + Hash,
        L: RateLimiter,
        M: Metrics,
        H: BuildHasher,
        P: Priorities,
    {
        fn assemble(limiter: L, metrics: M, hasher: H, keys: usize, naming: P::Naming<K>) -> Self {
            let mut lists = P::GrowableLists::default();
            lists.reserve(keys);
            let slots = GrowableSlots::with_capacity(hasher, keys);
            Self::of_parts(slots, lists, GrowableNodes::new(), limiter, metrics, naming)
        }

        /// Sets how many keys may be kept only for their failures, and discards the oldest records
        /// beyond that. There is no limit by default, as in client-go. O(1) per discarded record.
        ///
        /// Keys that are ready, active, delayed or suspended do not count.
        ///
        /// # Examples
        ///
        /// ```
        /// use requeue::limiter::default_item_based;
        /// use requeue::priority::Plain;
        /// use requeue::storage::Growable;
        /// use requeue::{Action, Instant, Queue};
        ///
        /// let now = Instant::EPOCH;
        /// let mut queue: Queue<u32, Plain, _, Growable> = Queue::growable(default_item_based());
        /// queue.limit_failure_records(2);
        /// for key in 0..3 {
        ///     let _ = queue.at(now).add(key);
        ///     let work = queue.at(now).try_get().unwrap();
        ///     // The worker fails and gives up: only the failure record is left.
        ///     let _ = queue.at(now).add_rate_limited(key);
        ///     queue.at(now).release(work.ticket);
        ///     let again = queue.at(Instant::from_nanos(2_000_000)).try_get().unwrap();
        ///     queue.at(now).release(again.ticket);
        /// }
        /// assert_eq!(queue.failures(&0), 0, "the oldest record is discarded");
        /// assert_eq!(queue.failures(&2), 1);
        /// ```
        pub fn limit_failure_records(&mut self, keys: usize) {
            self.failure_records_max = keys;
            while self.lists.records_len() > keys && self.drop_oldest_record().is_some() {}
        }
    }

    impl<K, L, M, H, P> Session<'_, K, P, L, Growable<H>, M>
    where
        K: Eq + Hash,
        L: RateLimiter,
        M: Metrics,
        H: BuildHasher,
        P: Priorities,
    {
        /// Sets how many keys the queue has at most; [`usize::MAX`] for any number. There is no
        /// limit by default. O(1), and O(1) per failure record that is evicted.
        ///
        /// With this many keys the queue is full, as one of [`Fixed`] storage is. A new key evicts
        /// a key that is kept only for its failures, or is [refused](crate::Rejected::Full). Takes no
        /// memory in advance.
        ///
        /// A queue that has more keys than that keeps all that have work, and
        /// discards failure records, the oldest first. It refuses new keys, and displaces none for
        /// them, until fewer keys are left than fit. With a limit of zero it takes no new key. If
        /// the limit is raised, a call that [waits for room](crate::binding::Shared) is woken.
        ///
        /// [`Fixed`]: crate::storage::Fixed
        ///
        /// # Examples
        ///
        /// ```
        /// use requeue::limiter::NoLimit;
        /// use requeue::priority::Plain;
        /// use requeue::storage::Growable;
        /// use requeue::{Added, Instant, Queue, Rejected};
        ///
        /// let now = Instant::EPOCH;
        /// let mut queue: Queue<&str, Plain, _, Growable> = Queue::growable(NoLimit);
        /// let _ = queue.at(now).add_many(["node-7", "node-8", "node-9"], |_| {});
        /// queue.at(now).limit_keys(2);
        /// assert_eq!((queue.stats().max_keys, queue.stats().total), (Some(2), 3));
        /// assert_eq!(queue.at(now).add("node-1"), Err(Rejected::Full("node-1")));
        ///
        /// queue.at(now).limit_keys(4);
        /// assert_eq!(queue.at(now).add("node-1"), Ok(Added::Ready));
        /// ```
        pub fn limit_keys(&mut self, keys: usize) {
            let queue = &mut *self.queue;
            // Keys are dropped first, because a `Drop` may panic. Then the old limit stays.
            while queue.slots.len() > keys && queue.drop_oldest_record().is_some() {}
            queue.slots.limit(keys);
            queue.note_change();
        }
    }
}
