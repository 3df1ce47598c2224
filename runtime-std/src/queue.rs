//! The queue for threads.

use std::fmt;
use std::hash::Hash;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;

use requeue_core::binding::{ClientGo, GrowableWaitList, Host, Runtime, State};
use requeue_core::{
    Builder, DefaultController, Growable, Plain, Priorities, Producer, Queue, RateLimiter,
    Reporter, Storage,
};

use crate::clock::QueueClock;
use crate::sync::Locked;

/// The types that a queue on threads is made of.
#[derive(Debug)]
pub struct ThreadHost<K, P, L, S>(PhantomData<(K, P, L, S)>);

impl<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage> Host for ThreadHost<K, P, L, S> {
    type Key = K;
    type Priorities = P;
    type Limiter = L;
    type Storage = S;
    type Metrics = Reporter;
    type Waiters = GrowableWaitList;
    type Clock = QueueClock;
    type Lock = Locked<State<Self>>;
}

/// What a [`WorkQueue`] dereferences to: core's
/// [`Shared`](requeue_core::binding::Shared), with the whole producer side.
pub type Shared<K, P, L, S> = requeue_core::binding::Shared<ThreadHost<K, P, L, S>>;

/// A key that was handed out by [`WorkQueue::get`]. See [`requeue_core::Guard`].
///
/// **A guard that is dropped unreported counts as failed**: its key is retried when its limiter
/// says so. A `?` that returns early, or a panic, loses nothing.
///
/// # Examples
///
/// ```
/// use requeue_std::{Finished, Guard, WorkQueue};
///
/// fn ping(node: Guard<'_, &str>) -> Finished {
///     let is_up = *node != "node-7";
///     if is_up { node.success() } else { node.retry() }.expect("its run was not ended by name")
/// }
///
/// let queue = WorkQueue::new();
/// queue.add_many(["node-7", "node-8"], |_| {});
/// assert!(matches!(ping(queue.get().unwrap()), Finished::Delayed(_)));
/// assert_eq!(ping(queue.get().unwrap()), Finished::Idle);
/// ```
pub type Guard<'q, K, P = Plain, L = DefaultController, S = Growable> =
    requeue_core::Guard<ThreadHost<K, P, L, S>, &'q Shared<K, P, L, S>>;

/// Keys that were handed out by [`WorkQueue::get_many`]. See [`requeue_core::Batch`].
///
/// # Examples
///
/// ```
/// use requeue_std::{Batch, WorkQueue};
///
/// fn write_down(batch: Batch<'_, u32>) -> u32 {
///     let sum = batch.keys().sum();
///     batch.success().expect("no run was ended by name");
///     sum
/// }
///
/// let queue = WorkQueue::new();
/// queue.add_many([17, 18], |_| {});
/// assert_eq!(write_down(queue.get_many(32).unwrap()), 35);
/// ```
pub type Batch<'q, K, P = Plain, L = DefaultController, S = Growable> =
    requeue_core::Batch<ThreadHost<K, P, L, S>, &'q Shared<K, P, L, S>>;

/// A keyed work queue for threads.
///
/// Clones are handles to the same queue. The producer side is core's, reached through `Deref`:
/// [`add`](requeue_core::binding::Shared::add),
/// [`add_after`](requeue_core::binding::Shared::add_after),
/// [`add_rate_limited`](requeue_core::binding::Shared::add_rate_limited),
/// [`forget`](requeue_core::binding::Shared::forget) and the rest. The methods below are those
/// that wait.
///
/// There is no background thread: of the threads that sleep in [`get`](Self::get), one sleeps until
/// the earliest deadline. An operation wakes a thread only if one sleeps, after it has released the
/// lock. Threads are woken in the order in which they went to sleep.
///
/// # Keys
///
/// `Hash`, `Eq`, `Clone` and `Drop` of a key run while the queue is locked. If they call the queue,
/// they deadlock. A panic in them reaches the caller, and the queue stays usable.
///
/// # Examples
///
/// ```
/// use requeue_std::{Drained, WorkQueue};
///
/// let queue: WorkQueue<&str> = WorkQueue::new();
/// let worker = std::thread::spawn({
///     let queue = queue.clone();
///     move || {
///         let mut seen = Vec::new();
///         while let Some(key) = queue.get() {
///             seen.push(*key);
///             key.success().unwrap();
///         }
///         seen
///     }
/// });
///
/// let _ = queue.add("pod-a");
/// let _ = queue.add("pod-b");
/// assert_eq!(queue.drain(), Drained::Complete);
/// assert_eq!(worker.join().unwrap(), ["pod-a", "pod-b"]);
/// ```
///
/// A struct that holds a queue does not name its parts: other numbers, a limit on the keys, metrics
/// and a test's clock do not change the type. A limiter of another kind, priority levels, aging and
/// groups do.
///
/// ```
/// use std::time::Duration;
/// use requeue_std::core::{Aging, Groups, Levels, NoLimit, Plain};
/// use requeue_std::{ManualClock, WorkQueue};
///
/// struct App {
///     pods: WorkQueue<String>,
///     nodes: WorkQueue<String, Plain, NoLimit>,
///     alarms: WorkQueue<String, Levels<4>>,
///     orders: WorkQueue<String, Aging<Levels<2>>>,
///     tenants: WorkQueue<(u32, String), Groups<u32>>,
/// }
///
/// let app = App {
///     pods: WorkQueue::builder()
///         .backoff(Duration::from_millis(50), Duration::from_secs(60))
///         .no_retry_rate()
///         .max_keys(10_000)
///         .clock(ManualClock::new())
///         .build(),
///     nodes: WorkQueue::builder().limiter(NoLimit).build(),
///     alarms: WorkQueue::builder().levels::<4>().build(),
///     orders: WorkQueue::builder().levels::<2>().aging().build(),
///     tenants: WorkQueue::builder().build_with_groups(|(tenant, _)| *tenant),
/// };
/// # let _ = (app.pods.add(String::from("pod-a")), app.nodes.add(String::new()));
/// # let _ = (app.alarms.add(String::new()), app.orders.add(String::new()));
/// # let _ = app.tenants.add((7, String::new()));
/// ```
///
/// With priorities, urgent keys are handed out first.
///
/// ```
/// use requeue_std::{AddOptions, WorkQueue};
///
/// let queue = WorkQueue::builder().levels::<2>().build();
/// queue.add_many(["pod-a", "pod-b", "pod-c"], |_| {});
/// queue.add_with("pod-c", AddOptions { priority: Some(1), ..AddOptions::new() }).unwrap();
///
/// let first = queue.get().unwrap();
/// assert_eq!((*first, first.priority()), ("pod-c", 1));
/// # first.success().unwrap();
/// ```
pub struct WorkQueue<K, P = Plain, L = DefaultController, S = Growable>
where
    K: Eq + Hash,
    P: Priorities,
    L: RateLimiter,
    S: Storage,
{
    pub(crate) shared: Arc<Shared<K, P, L, S>>,
}

impl<K: Eq + Hash> WorkQueue<K> {
    /// Creates an empty queue with client-go's default rate limiter, on the system's clock.
    ///
    /// With that limiter a failed key waits 5 ms, doubled per failure up to 1000 s, and all keys
    /// together are retried at most ten times a second after a burst of a hundred: of thousands
    /// that fail at once the last one waits for minutes. [`builder`](WorkQueue::builder) chooses
    /// other numbers.
    ///
    /// # Examples
    ///
    /// ```
    /// let queue = requeue_std::WorkQueue::new();
    /// let _ = queue.add("node-7");
    /// assert_eq!(queue.len(), 1);
    /// ```
    #[doc(alias = "NewRateLimitingQueue")]
    #[doc(alias = "NewTypedRateLimitingQueue")]
    pub fn new() -> Self {
        WorkQueue::builder().build()
    }
}

impl<K: Eq + Hash> WorkQueue<K> {
    /// Builds a queue from chosen parts. The type of its keys is inferred from use.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use requeue_std::WorkQueue;
    ///
    /// let queue = WorkQueue::builder()
    ///     .backoff(Duration::from_secs(1), Duration::from_secs(60))
    ///     .retry_rate(100.0, 1000)
    ///     .build();
    /// let scheduled = queue.add_rate_limited("node-7").unwrap();
    /// assert_eq!(scheduled.delay, Duration::from_secs(1));
    /// ```
    #[doc(alias = "NewRateLimitingQueueWithConfig")]
    #[doc(alias = "NewTypedRateLimitingQueueWithConfig")]
    pub fn builder() -> Builder<K, Plain, ClientGo, Threads, Reporter> {
        Builder::default()
    }
}

/// The runtime of a [`Builder`]: threads.
#[derive(Clone, Copy, Debug)]
pub struct Threads;

impl Runtime for Threads {
    type Clock = QueueClock;
    type WorkQueue<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage> = WorkQueue<K, P, L, S>;

    fn assemble<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage>(
        queue: Queue<K, P, L, S, Reporter>,
        clock: QueueClock,
    ) -> WorkQueue<K, P, L, S> {
        let state = State::new(queue, GrowableWaitList::new());
        WorkQueue {
            shared: Arc::new(Shared::new(Locked::new(state), clock)),
        }
    }
}

/// A queue of any storage, such as [`Fixed`](requeue_core::Fixed), with metrics, on the system's
/// clock.
///
/// # Examples
///
/// ```
/// use requeue_std::core::{Fixed, Metrics, NoLimit, Plain, Reporter, Times};
/// use requeue_std::{Queue, WorkQueue};
///
/// struct Adds;
///
/// impl Metrics for Adds {
///     type Timestamps = Times;
///
///     fn added(&mut self) {
///         println!("a key was added");
///     }
/// }
///
/// let reporter = Reporter::new(Adds);
/// let bounded: WorkQueue<u16, Plain, NoLimit, Fixed<2>> =
///     Queue::with_metrics(NoLimit, reporter).into();
/// assert_eq!(bounded.add_many(0..3, |_| {}).rejected, 1);
/// ```
impl<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage> From<Queue<K, P, L, S, Reporter>>
    for WorkQueue<K, P, L, S>
{
    fn from(queue: Queue<K, P, L, S, Reporter>) -> Self {
        Threads::assemble(queue, QueueClock::default())
    }
}

/// A queue of any storage, such as [`Fixed`](requeue_core::Fixed), without metrics, on the system's
/// clock. It is moved, and so should be empty or small.
///
/// # Examples
///
/// ```
/// use requeue_std::core::{Fixed, NoLimit, Plain};
/// use requeue_std::{Queue, WorkQueue};
///
/// let bounded: WorkQueue<u16, Plain, NoLimit, Fixed<2>> = Queue::new(NoLimit).into();
/// assert_eq!(bounded.add_many(0..3, |_| {}).rejected, 1);
/// ```
impl<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage> From<Queue<K, P, L, S>>
    for WorkQueue<K, P, L, S>
{
    fn from(queue: Queue<K, P, L, S>) -> Self {
        Queue::<K, P, L, S, Reporter>::from(queue).into()
    }
}

impl<K: Eq + Hash> Default for WorkQueue<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage> WorkQueue<K, P, L, S> {
    /// Makes a queue of any storage, such as [`Fixed`](requeue_core::Fixed), with a clock: a
    /// [`QueueClock`], or the [`ManualClock`](crate::ManualClock) of a test. A queue that is
    /// made with `into` has a clock of its own.
    ///
    /// # Examples
    ///
    /// Queues whose instants can be compared, because they share a clock:
    ///
    /// ```
    /// use std::time::Duration;
    /// use requeue_std::core::{Fixed, NoLimit, Plain, Reporter};
    /// use requeue_std::{Queue, QueueClock, WorkQueue};
    ///
    /// type Sensors = WorkQueue<u16, Plain, NoLimit, Fixed<4>>;
    ///
    /// let clock = QueueClock::new();
    /// let empty = || Queue::with_metrics(NoLimit, Reporter::NONE);
    /// let ours: Sensors = WorkQueue::from_queue(empty(), clock.clone());
    /// let theirs: Sensors = WorkQueue::from_queue(empty(), clock.clone());
    ///
    /// let due = clock.now() + Duration::from_secs(60);
    /// let _ = ours.add_at(3, due);
    /// let _ = theirs.add_at(4, due);
    /// ```
    pub fn from_queue(queue: Queue<K, P, L, S, Reporter>, clock: impl Into<QueueClock>) -> Self {
        Threads::assemble(queue, clock.into())
    }

    /// Returns what an event source needs of the queue, without its type parameters. O(1).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    /// use requeue_std::{Producer, WorkQueue};
    ///
    /// struct Watcher {
    ///     changed: Arc<dyn Producer<String> + Send + Sync>,
    /// }
    ///
    /// let queue = WorkQueue::new();
    /// let watcher = Watcher { changed: queue.producer() };
    /// // A queue that is shutting down hands the key back: nothing is left to do with it.
    /// let _ = watcher.changed.add(String::from("node-7"));
    /// assert!(queue.contains("node-7"));
    /// ```
    pub fn producer(&self) -> Arc<dyn Producer<K> + Send + Sync>
    where
        K: 'static,
        P: 'static,
        L: 'static,
        S: 'static,
        Shared<K, P, L, S>: Send + Sync,
    {
        Arc::<Shared<K, P, L, S>>::clone(&self.shared)
    }
}

impl<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage> Deref for WorkQueue<K, P, L, S> {
    type Target = Shared<K, P, L, S>;

    fn deref(&self) -> &Self::Target {
        &self.shared
    }
}

impl<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage> Clone for WorkQueue<K, P, L, S> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage> fmt::Debug for WorkQueue<K, P, L, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shared.fmt(f)
    }
}
