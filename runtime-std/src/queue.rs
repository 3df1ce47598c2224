//! The queue for threads: its type, how it is made, and how keys are added and taken. Owns the
//! choice of lock and clock; what an operation does is core's.

use std::hash::Hash;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use requeue_core::binding::{AsShared, ClientGo, Reporter, Runtime, Wait};
use requeue_core::limiter::{DefaultController, DefaultItemBased, RateLimiter, default_item_based};
use requeue_core::priority::{Plain, Priorities};
use requeue_core::storage::{Growable, Storage};
use requeue_core::{AddOptions, Added, Builder, Instant, Queue, Rejected, Scheduled, WaitError};

use crate::clock::{ManualClock, QueueClock};
use crate::sync::Mutex;
use crate::waiting::block_on;

/// Writes a part of core's methods.
macro_rules! face {
    ($part:ident) => {
        requeue_core::queue_face! {
            $part: "requeue::std", "# let queue = requeue::std::example();",
            "# let queue = requeue::std::example_groups();", K, P, S
        }
    };
}
pub(crate) use face;

/// The types that a queue on threads is made of.
#[derive(Debug)]
pub struct ThreadHost<K, P, L, S>(PhantomData<(K, P, L, S)>);

/// The queue of core in a [`WorkQueue`].
pub(crate) type Shared<K, P, L, S> = requeue_core::binding::Shared<ThreadHost<K, P, L, S>>;

/// A key that [`WorkQueue::get`] returned. Its methods are those of core's
/// [`Guard`](requeue_core::Guard).
///
/// **A guard that is dropped counts as failed.** Its key is retried when its limiter says so. So an
/// early `?` or a panic loses nothing.
///
/// # Examples
///
/// ```
/// use requeue::std::{Finished, Guard, WorkQueue};
///
/// fn ping(node: Guard<'_, &str>) -> Finished {
///     let is_up = *node != "node-7";
///     if is_up { node.success() } else { node.retry() }
/// }
///
/// let queue = WorkQueue::new();
/// let _ = queue.add_many(["node-7", "node-8"]);
/// assert!(matches!(ping(queue.get().unwrap()), Finished::Delayed(_)));
/// assert_eq!(ping(queue.get().unwrap()), Finished::Idle);
/// ```
pub type Guard<'q, K, P = Plain, L = DefaultController, S = Growable> =
    requeue_core::Guard<ThreadHost<K, P, L, S>, &'q Shared<K, P, L, S>>;

/// Keys that [`WorkQueue::get_many`] returned. Its methods are those of core's
/// [`Batch`](requeue_core::Batch).
///
/// # Examples
///
/// ```
/// use requeue::std::{Batch, WorkQueue};
///
/// fn write_down(batch: Batch<'_, u32>) -> u32 {
///     let sum = batch.keys().sum();
///     batch.success();
///     sum
/// }
///
/// let queue = WorkQueue::new();
/// let _ = queue.add_many([17, 18]);
/// assert_eq!(write_down(queue.get_many(32).unwrap()), 35);
/// ```
pub type Batch<'q, K, P = Plain, L = DefaultController, S = Growable> =
    requeue_core::Batch<ThreadHost<K, P, L, S>, &'q Shared<K, P, L, S>>;

/// A keyed work queue for threads.
///
/// Clones are handles to the same queue. Producers call [`add`](Self::add) and its relatives.
/// Workers call [`get`](Self::get), or [`run`](Self::run), which is a worker's whole loop.
///
/// There is no background thread: of the threads that sleep in [`get`](Self::get), one sleeps until
/// the earliest deadline. An operation wakes a thread only if one sleeps, once it has
/// unlocked the queue. Threads are woken in the order in which they went to sleep.
///
/// # Keys
///
/// `Hash`, `Eq`, `Clone` and `Drop` of a key run while the queue is locked. If they call the queue,
/// they deadlock. A panic in them reaches the caller, and the queue stays usable.
///
/// # Examples
///
/// ```
/// use requeue::std::WorkQueue;
///
/// let queue: WorkQueue<&str> = WorkQueue::new();
/// let worker = std::thread::spawn({
///     let queue = queue.clone();
///     move || {
///         let mut seen = Vec::new();
///         while let Ok(key) = queue.get() {
///             seen.push(*key);
///             key.success();
///         }
///         seen
///     }
/// });
///
/// let _ = queue.add("pod-a");
/// let _ = queue.add("pod-b");
/// assert_eq!(queue.drain(), Ok(()));
/// assert_eq!(worker.join().unwrap(), ["pod-a", "pod-b"]);
/// ```
///
/// Other numbers, a limit on the keys, metrics and a test's clock do not change the type of a
/// queue, so a struct that has one need not name them. A limiter of another kind, priority levels,
/// aging and groups are part of the type, and nest.
///
/// ```
/// use std::time::Duration;
/// use requeue::std::limiter::NoLimit;
/// use requeue::std::priority::{Aging, Groups, Levels, Plain};
/// use requeue::std::{ManualClock, WorkQueue};
///
/// struct App {
///     pods: WorkQueue<String>,
///     nodes: WorkQueue<String, Plain, NoLimit>,
///     alarms: WorkQueue<String, Levels<4>>,
///     orders: WorkQueue<String, Aging<Levels<2>>>,
///     tenants: WorkQueue<(u32, String), Groups<u32, Levels<2>>>,
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
///     tenants: WorkQueue::builder().levels::<2>().build_with_groups(|(tenant, _)| *tenant),
/// };
/// # let _ = (app.pods.add(String::from("pod-a")), app.nodes.add(String::new()));
/// # let _ = (app.alarms.add(String::new()), app.orders.add(String::new()));
/// # let _ = app.tenants.add((7, String::new()));
/// ```
///
/// With priorities, urgent keys are handed out first.
///
/// ```
/// use requeue::std::{AddOptions, WorkQueue};
///
/// let queue = WorkQueue::builder().levels::<2>().build();
/// let _ = queue.add_many(["pod-a", "pod-b", "pod-c"]);
/// queue.add_with("pod-c", AddOptions { priority: Some(1), ..AddOptions::new() }).unwrap();
///
/// let first = queue.get().unwrap();
/// assert_eq!((*first, first.priority()), ("pod-c", 1));
/// # first.success();
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

/// Making a queue.
impl<K: Eq + Hash> WorkQueue<K> {
    /// Creates an empty queue with client-go's default rate limiter, on the system's clock.
    ///
    /// With that limiter a failed key waits 5 ms, doubled per failure up to 1000 s, and all keys
    /// together are retried at most ten times a second after a burst of a hundred: of thousands
    /// that fail together the last one waits for minutes. [`builder`](WorkQueue::builder) chooses
    /// other numbers.
    ///
    /// # Examples
    ///
    /// ```
    /// let queue = requeue::std::WorkQueue::new();
    /// let _ = queue.add("node-7");
    /// assert_eq!(queue.len(), 1);
    /// ```
    #[doc(alias = "NewRateLimitingQueue")]
    #[doc(alias = "NewTypedRateLimitingQueue")]
    pub fn new() -> Self {
        WorkQueue::builder().build()
    }

    /// Builds a queue from chosen parts. The type of its keys is inferred from use.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use requeue::std::WorkQueue;
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

/// Making a queue from parts.
impl<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage> WorkQueue<K, P, L, S> {
    /// Makes a queue of any storage, such as [`Fixed`](requeue_core::storage::Fixed), with a clock:
    /// a [`QueueClock`], or the [`ManualClock`](crate::ManualClock) of a test. A queue that is made
    /// with `into` has a clock of its own.
    ///
    /// # Examples
    ///
    /// Queues whose instants can be compared, because they share a clock:
    ///
    /// ```
    /// use std::time::Duration;
    /// use requeue::std::limiter::NoLimit;
    /// use requeue::std::binding::Reporter;
    /// use requeue::std::priority::Plain;
    /// use requeue::std::storage::Fixed;
    /// use requeue::std::{Queue, QueueClock, WorkQueue};
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
}

/// The runtime of a [`Builder`]: threads.
#[derive(Clone, Copy, Debug)]
pub struct Threads;

/// Adding keys. Only `add_wait` and `add_wait_with` wait.
impl<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage> WorkQueue<K, P, L, S> {
    face!(adding);
    face!(adding_many);
    requeue_core::queue_face! { producing: "requeue::std", Shared<K, P, L, S> }

    /// Adds a key. Waits for room if the key is new and there is none. O(1) for each look. A queue
    /// that grows without a limit always has room.
    ///
    /// Each place that becomes free wakes one call, in the order in which they began to wait. A key
    /// that another call adds meanwhile may take the place first. Then this call waits on, and
    /// stays the first. A key that the queue has needs no room. Do not call this in a run: if no
    /// other key leaves the queue, the worker waits for its own key for ever.
    ///
    /// # Errors
    ///
    /// [`Rejected::Closed`] returns the key once the queue is shut down.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::std::limiter::NoLimit;
    /// use requeue::std::binding::Reporter;
    /// use requeue::std::priority::Plain;
    /// use requeue::std::storage::Fixed;
    /// use requeue::std::{Added, Queue, WorkQueue};
    ///
    /// let bounded: WorkQueue<u16, Plain, NoLimit, Fixed<2>> =
    ///     Queue::with_metrics(NoLimit, Reporter::NONE).into();
    /// std::thread::scope(|scope| {
    ///     scope.spawn(|| {
    ///         for _ in 0..100 {
    ///             bounded.get().unwrap().success();
    ///         }
    ///     });
    ///     // The producer is as fast as the worker.
    ///     for sensor in 0..100 {
    ///         assert_eq!(bounded.add_wait(sensor), Ok(Added::Ready));
    ///     }
    /// });
    /// ```
    pub fn add_wait(&self, key: K) -> Result<Added, Rejected<K>> {
        let scheduled = self.add_until(key, AddOptions::new(), None);
        scheduled.map(|scheduled| scheduled.added)
    }

    /// As [`add_with`](Self::add_with), but waits for room as [`add_wait`](Self::add_wait) does,
    /// and no longer than `timeout`. A delay begins once there is room. [`Duration::MAX`] sets no
    /// limit.
    ///
    /// # Errors
    ///
    /// As [`add_wait`](Self::add_wait). [`Rejected::TimedOut`] returns the key if there was no room
    /// in time, [`Rejected::UnknownPriority`] if the queue has no such level.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use requeue::std::{AddOptions, Rejected, WorkQueue};
    ///
    /// let bounded = WorkQueue::builder().max_keys(1).build();
    /// let _ = bounded.add(17);
    /// let later = AddOptions { after: Some(Duration::from_secs(60)), ..AddOptions::new() };
    /// let added = bounded.add_wait_with(18, later, Duration::from_millis(1));
    /// assert_eq!(added, Err(Rejected::TimedOut(18)));
    /// ```
    pub fn add_wait_with(
        &self,
        key: K,
        options: AddOptions,
        timeout: Duration,
    ) -> Result<Scheduled, Rejected<K>> {
        let deadline = self.now() + timeout;
        self.add_until(key, options, Some(deadline))
    }
}

/// Taking keys, and waiting for them.
impl<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage> WorkQueue<K, P, L, S> {
    requeue_core::queue_face! {
        taking_blocking: "requeue::std", "# let queue = requeue::std::example();", K, get_until,
        Guard<'_, K, P, L, S>
    }

    /// Returns up to `max` ready keys, at least one. Waits for the first if there is none. O(1) per
    /// key.
    ///
    /// Takes the lock once for up to [`KEYS_PER_LOCK`](requeue_core::storage::Storage::KEYS_PER_LOCK) keys.
    /// Of more, another worker may get some in between.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::std::WorkQueue;
    ///
    /// let queue = WorkQueue::new();
    /// assert!(queue.add_many(0..5).rejected.is_empty());
    /// let batch = queue.get_many(3).unwrap();
    /// assert_eq!(batch.keys().copied().collect::<Vec<_>>(), [0, 1, 2]);
    /// batch.success();
    /// assert_eq!(queue.len(), 2);
    /// ```
    #[must_use = "a batch that is dropped unreported counts as failed, and its keys are retried"]
    pub fn get_many(&self, max: usize) -> Result<Batch<'_, K, P, L, S>, WaitError>
    where
        K: Clone,
    {
        let mut batch = Batch::take(self.as_shared(), max);
        if batch.is_empty() {
            let call = Wait::for_key(self.as_shared());
            let taken = block_on(call, None, |session, getter| {
                batch.poll_get(max, session, getter)
            });
            if taken? == S::KEYS_PER_LOCK {
                batch.fill(max);
            }
        }
        Ok(batch)
    }

    requeue_core::queue_face! {
        taking: "requeue::std", "# let queue = requeue::std::example();", K, Self::as_shared,
        Guard<'_, K, P, L, S>
    }

    #[inline]
    fn get_until(&self, deadline: Option<Instant>) -> Result<Guard<'_, K, P, L, S>, WaitError>
    where
        K: Clone,
    {
        let found = self.shared.with(|session| session.try_get());
        self.found_or_wait(found, deadline)
    }
}

requeue_core::queue_face! {
    shell: "requeue::std", [K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage] WorkQueue,
    ThreadHost, Threads, QueueClock, Mutex
}

/// The queue of the examples in the documentation.
#[doc(hidden)]
pub fn example() -> WorkQueue<&'static str, Plain, DefaultItemBased> {
    let builder = WorkQueue::builder().limiter(default_item_based());
    builder.max_keys(4).clock(ManualClock::new()).build()
}
