//! The queue for tasks: its type, how it is made, and how keys are added and taken. Owns the choice
//! of lock and clock; what an operation does is core's.

use std::hash::Hash;
use std::marker::PhantomData;
use std::sync::Arc;

use requeue_core::binding::{AsShared, ClientGo, Reporter, Runtime};
use requeue_core::limiter::{DefaultController, DefaultItemBased, RateLimiter, default_item_based};
use requeue_core::priority::{Plain, Priorities};
use requeue_core::storage::{Growable, Storage};
use requeue_core::{Builder, Queue, WaitError};

use crate::clock::QueueClock;
use crate::sync::Mutex;
use crate::waiting::Guards;

/// Writes a part of core's methods that do not wait.
macro_rules! face {
    ($part:ident) => {
        requeue_core::queue_face! {
            $part: "requeue::tokio", "# let queue = requeue::tokio::example();",
            "# let queue = requeue::tokio::example_groups();", K, P, S
        }
    };
}
pub(crate) use face;

/// Writes a part of core's methods that wait.
macro_rules! face_async {
    ($part:ident, $($rest:tt)+) => {
        requeue_core::queue_face! {
            $part: "requeue::tokio",
            "# use futures_lite::future::zip as join;\n\
             # #[tokio::main(flavor = \"current_thread\", start_paused = true)]\n\
             # async fn main() {\n\
             # let queue = requeue::tokio::example();",
            "# }", $($rest)+
        }
    };
}
pub(crate) use face_async;

/// The types that a queue on Tokio is made of.
#[derive(Debug)]
pub struct TaskHost<K, P, L, S>(PhantomData<(K, P, L, S)>);

/// The queue of core in a [`WorkQueue`].
pub(crate) type Shared<K, P, L, S> = requeue_core::binding::Shared<TaskHost<K, P, L, S>>;

/// A key that [`WorkQueue::get`] returned. Its methods are those of core's
/// [`Guard`](requeue_core::Guard).
///
/// It has a handle to the queue, so that it can move to another task.
///
/// **A guard that is dropped counts as failed.** Its key is retried when its limiter says so. So a
/// panic, an abort, a `select!` or a timeout loses nothing.
///
/// # Examples
///
/// ```
/// use requeue::tokio::{Finished, Guard, WorkQueue};
///
/// async fn ping(node: Guard<&str>) -> Finished {
///     let is_up = *node != "node-7";
///     if is_up { node.success() } else { node.retry() }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let queue = WorkQueue::new();
/// let _ = queue.add_many(["node-7", "node-8"]);
/// let first = tokio::spawn(ping(queue.get().await.unwrap()));
/// let second = tokio::spawn(ping(queue.get().await.unwrap()));
/// assert!(matches!(first.await.unwrap(), Finished::Delayed(_)));
/// assert_eq!(second.await.unwrap(), Finished::Idle);
/// # }
/// ```
pub type Guard<K, P = Plain, L = DefaultController, S = Growable> =
    requeue_core::Guard<TaskHost<K, P, L, S>, Arc<Shared<K, P, L, S>>>;

/// Keys that [`WorkQueue::get_many`] returned. Its methods are those of core's
/// [`Batch`](requeue_core::Batch).
///
/// As with a [`Guard`], keys that are dropped unreported count as failed.
pub type Batch<K, P = Plain, L = DefaultController, S = Growable> =
    requeue_core::Batch<TaskHost<K, P, L, S>, Arc<Shared<K, P, L, S>>>;

/// A keyed work queue for tasks.
///
/// Clones are handles to the same queue. Producers call [`add`](Self::add) and its relatives.
/// Workers await [`get`](Self::get), or [`run`](Self::run), which is a worker's whole loop. Their
/// guards own a handle to the queue.
///
/// There is no background task: of the tasks that wait in [`get`](Self::get), one sleeps until the
/// earliest deadline. An operation wakes a task only if one waits, once it has unlocked
/// the queue.
/// Tasks are woken in the order in which they began to wait. A task that always finds a key yields
/// to others by Tokio's cooperative budget.
///
/// # Keys
///
/// `Hash`, `Eq`, `Clone` and `Drop` of a key run while the queue is locked. If they call the queue,
/// they deadlock. A panic in them reaches the caller, and the queue stays usable.
///
/// # Panics
///
/// A method that waits panics, as Tokio's timers do, if there is a deadline to wait for and no
/// runtime whose time is enabled.
///
/// # Examples
///
/// ```
/// use requeue::tokio::WorkQueue;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let queue: WorkQueue<&str> = WorkQueue::new();
/// let worker = tokio::spawn({
///     let queue = queue.clone();
///     async move {
///         let mut seen = Vec::new();
///         while let Ok(key) = queue.get().await {
///             seen.push(*key);
///             key.success();
///         }
///         seen
///     }
/// });
///
/// let _ = queue.add("pod-a");
/// let _ = queue.add("pod-b");
/// assert_eq!(queue.drain().await, Ok(()));
/// assert_eq!(worker.await.unwrap(), ["pod-a", "pod-b"]);
/// # }
/// ```
///
/// Other numbers, a limit on the keys and metrics do not change the type of a queue, so a struct
/// that has one need not name them. A test's clock is Tokio's own, paused. A limiter of another
/// kind, priority levels, aging and groups are part of the type, and nest.
///
/// ```
/// use std::time::Duration;
/// use requeue::tokio::limiter::NoLimit;
/// use requeue::tokio::priority::{Aging, Groups, Levels, Plain};
/// use requeue::tokio::WorkQueue;
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
/// use requeue::tokio::{AddOptions, WorkQueue};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let queue = WorkQueue::builder().levels::<2>().build();
/// let _ = queue.add_many(["pod-a", "pod-b", "pod-c"]);
/// queue.add_with("pod-c", AddOptions { priority: Some(1), ..AddOptions::new() }).unwrap();
///
/// let first = queue.get().await.unwrap();
/// assert_eq!((*first, first.priority()), ("pod-c", 1));
/// # first.success();
/// # }
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
    /// Creates an empty queue with client-go's default rate limiter. Needs no runtime.
    ///
    /// With that limiter a failed key waits 5 ms, doubled per failure up to 1000 s, and all keys
    /// together are retried at most ten times a second after a burst of a hundred: of thousands
    /// that fail together the last one waits for minutes. [`builder`](WorkQueue::builder) chooses
    /// other numbers.
    ///
    /// # Examples
    ///
    /// ```
    /// let queue = requeue::tokio::WorkQueue::new();
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
    /// use requeue::tokio::WorkQueue;
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
    pub fn builder() -> Builder<K, Plain, ClientGo, Tasks, Reporter> {
        Builder::default()
    }
}

/// Making a queue from parts.
impl<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage> WorkQueue<K, P, L, S> {
    /// Creates a queue of any storage with a clock, which may be that of another queue: instants of
    /// one then have a meaning in the other. O(1).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use requeue::tokio::binding::Clock;
    /// use requeue::tokio::limiter::NoLimit;
    /// use requeue::tokio::binding::Reporter;
    /// use requeue::tokio::priority::Plain;
    /// use requeue::tokio::storage::Fixed;
    /// use requeue::tokio::{Queue, QueueClock, WorkQueue};
    ///
    /// type Leases = WorkQueue<u16, Plain, NoLimit, Fixed<4>>;
    /// let clock = QueueClock::new();
    /// let empty = || Queue::with_metrics(NoLimit, Reporter::NONE);
    /// let ours: Leases = WorkQueue::from_queue(empty(), clock);
    /// let theirs: Leases = WorkQueue::from_queue(empty(), clock);
    /// let due = clock.now() + Duration::from_secs(60);
    /// let _ = ours.add_at(3, due);
    /// let _ = theirs.add_at(4, due);
    /// ```
    pub fn from_queue(queue: Queue<K, P, L, S, Reporter>, clock: QueueClock) -> Self {
        Tasks::assemble(queue, clock)
    }
}

/// The runtime of a [`Builder`]: Tokio's tasks.
#[derive(Clone, Copy, Debug)]
pub struct Tasks;

/// Adding keys. Only `add_wait` and `add_wait_with` wait.
impl<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage> WorkQueue<K, P, L, S> {
    face!(adding);
    face!(adding_many);
    requeue_core::queue_face! { producing: "requeue::tokio", Shared<K, P, L, S> }
    face_async!(adding_async, K);
}

/// Taking keys, and waiting for them.
impl<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage> WorkQueue<K, P, L, S> {
    face_async!(taking_async, K, Self::handle, Guard<K, P, L, S>);

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
    /// # Cancel safety
    ///
    /// As [`get`](Self::get).
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::tokio::WorkQueue;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let queue = WorkQueue::new();
    /// assert!(queue.add_many(0..5).rejected.is_empty());
    /// let batch = queue.get_many(3).await.unwrap();
    /// assert_eq!(batch.keys().copied().collect::<Vec<_>>(), [0, 1, 2]);
    /// batch.success();
    /// assert_eq!(queue.len(), 2);
    /// # }
    /// ```
    pub async fn get_many(&self, max: usize) -> Result<Batch<K, P, L, S>, WaitError>
    where
        K: Clone,
    {
        Batch::wait(Arc::clone(&self.shared), max).await
    }

    /// Returns the keys as a [`Stream`] of guards, which ends once the queue is shut down and no key
    /// is ready.
    ///
    /// [`Stream`]: https://docs.rs/futures-core/latest/futures_core/stream/trait.Stream.html
    pub fn guards(&self) -> Guards<K, P, L, S> {
        Guards::new(self)
    }

    requeue_core::queue_face! {
        taking: "requeue::tokio", "# let queue = requeue::tokio::example();", K, Self::handle,
        Guard<K, P, L, S>
    }

    fn handle(&self) -> Arc<Shared<K, P, L, S>> {
        Arc::clone(&self.shared)
    }
}

requeue_core::queue_face! {
    shell: "requeue::tokio", [K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage] WorkQueue,
    TaskHost, Tasks, QueueClock, Mutex
}

/// The queue of the examples in the documentation.
#[doc(hidden)]
pub fn example() -> WorkQueue<&'static str, Plain, DefaultItemBased> {
    let builder = WorkQueue::builder().limiter(default_item_based());
    builder.max_keys(4).build()
}
