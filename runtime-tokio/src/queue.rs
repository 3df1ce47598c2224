//! The queue for tasks: what is left to do is to wait.

use std::fmt;
use std::hash::Hash;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use requeue_core::{
    Clock, DefaultController, Growable, Metrics, NoMetrics, Queue, RateLimiter, Storage,
};

use crate::clock::TokioClock;
use crate::sync::{Locked, Wakers};

/// A queue, its lock, its clock and its wakers: core's [`WorkQueue`](requeue_core::WorkQueue) for
/// tasks.
pub type Shared<K, L, M, S = Growable> =
    requeue_core::WorkQueue<Locked<Queue<K, S, L, M>>, TokioClock, Wakers>;

/// A key in work, handed out by [`WorkQueue::get`]. See [`requeue_core::Guard`].
///
/// It owns its share of the queue, so that it may live in another task than the one that got it.
///
/// **A guard that is dropped without having been completed counts as failed**: its key is requeued
/// rate-limited, as by [`retry`](requeue_core::Guard::retry). A task that panics, is aborted, or is
/// dropped by a `select!` or a timeout drops its guards, and no guard can tell those apart from the
/// end of a scope. So say how it went: [`done`](requeue_core::Guard::done),
/// [`forget`](requeue_core::Guard::forget), [`retry_after`](requeue_core::Guard::retry_after) or
/// [`complete`](requeue_core::Guard::complete).
///
/// # Examples
///
/// ```
/// use requeue_tokio::{Finished, Guard, WorkQueue};
///
/// async fn ping(node: Guard<&str>) -> Finished {
///     let is_up = *node != "node-7";
///     if is_up { node.forget() } else { node.retry() }.expect("nobody completes it by name")
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let queue = WorkQueue::new();
/// queue.add_many(["node-7", "node-8"], |_| {});
/// let first = tokio::spawn(ping(queue.get().await.unwrap()));
/// let second = tokio::spawn(ping(queue.get().await.unwrap()));
/// assert!(matches!(first.await.unwrap(), Finished::Delayed(_)));
/// assert_eq!(second.await.unwrap(), Finished::Idle);
/// # }
/// ```
pub type Guard<K, L = DefaultController, M = NoMetrics, S = Growable> =
    requeue_core::Guard<K, Arc<Shared<K, L, M, S>>>;

/// Keys in work, handed out by [`WorkQueue::get_many`]. See [`requeue_core::Batch`].
///
/// As with a [`Guard`], keys that are dropped without having been completed count as failed.
pub type Batch<K, L = DefaultController, M = NoMetrics, S = Growable> =
    requeue_core::Batch<K, Arc<Shared<K, L, M, S>>>;

/// A keyed work queue for tasks.
///
/// Clones are handles to the same queue. The producer side is core's, reached through `Deref`:
/// [`add`](requeue_core::WorkQueue::add), [`add_after`](requeue_core::WorkQueue::add_after),
/// [`add_rate_limited`](requeue_core::WorkQueue::add_rate_limited),
/// [`forget`](requeue_core::WorkQueue::forget) and the rest, none of which waits. Here is what
/// waits.
///
/// `S` is the storage: one that grows, or [`Fixed`](requeue_core::Fixed) for a bound; with
/// [`Levels`](requeue_core::Levels) keys have priorities.
///
/// No task runs in the background: of the tasks that wait in [`get`](Self::get), one sleeps until
/// the earliest deadline. A task is woken only if one waits, after the lock is released, and tasks
/// are woken in the order in which they came. A task that always finds a key yields to others by
/// Tokio's cooperative budget.
///
/// # Panics
///
/// A panic in a key's `Hash`, `Eq`, `Clone` or `Drop` reaches the caller; the queue stays usable.
/// A method that waits panics, as Tokio's timers do, if there is a deadline to wait for and no
/// runtime whose time is enabled.
///
/// # Examples
///
/// ```
/// use requeue_tokio::WorkQueue;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let queue: WorkQueue<&str> = WorkQueue::new();
/// let worker = tokio::spawn({
///     let queue = queue.clone();
///     async move {
///         let mut seen = Vec::new();
///         while let Some(key) = queue.get().await {
///             seen.push(*key);
///             key.forget().unwrap();
///         }
///         seen
///     }
/// });
///
/// queue.add("pod-a").unwrap();
/// queue.add("pod-b").unwrap();
/// queue.shut_down_with_drain().await;
/// assert_eq!(worker.await.unwrap(), ["pod-a", "pod-b"]);
/// # }
/// ```
///
/// Where its type has to be named, parts other than client-go's stand in this order:
///
/// ```
/// use requeue_tokio::core::{
///     DefaultController, Growable, ItemExponentialFailure, Levels, NoMetrics, RandomState,
/// };
/// use requeue_tokio::{Queue, WorkQueue};
///
/// type Leveled = Growable<RandomState, Levels<4>>;
///
/// struct Controller {
///     pods: WorkQueue<String>,
///     /// With a limiter of its own.
///     nodes: WorkQueue<String, ItemExponentialFailure>,
///     /// With four priority levels.
///     alarms: WorkQueue<String, DefaultController, NoMetrics, Leveled>,
/// }
///
/// # use requeue_tokio::core::default_item_based;
/// let controller = Controller {
///     pods: WorkQueue::new(),
///     nodes: Queue::builder().limiter(default_item_based()).build().into(),
///     alarms: Queue::builder().levels::<4>().build().into(),
/// };
/// controller.nodes.add(String::from("node-7")).unwrap();
/// # controller.pods.add(String::from("pod-a")).unwrap();
/// # controller.alarms.add(String::from("pod-b")).unwrap();
/// ```
///
/// With priorities: what somebody waits for goes before what is merely looked at again.
///
/// ```
/// use requeue_tokio::{AddOptions, Queue, WorkQueue};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let queue = WorkQueue::from(Queue::builder().levels::<2>().build());
/// queue.add_many(["pod-a", "pod-b", "pod-c"], |_| {});
/// queue.add_with("pod-c", AddOptions { priority: Some(1), ..AddOptions::new() }).unwrap();
///
/// let first = queue.get().await.unwrap();
/// assert_eq!((*first, first.priority()), ("pod-c", 1));
/// # }
/// ```
pub struct WorkQueue<K, L = DefaultController, M = NoMetrics, S = Growable>
where
    K: Eq + Hash,
    L: RateLimiter,
    M: Metrics,
    S: Storage,
{
    pub(crate) shared: Arc<Shared<K, L, M, S>>,
}

impl<K: Eq + Hash> WorkQueue<K> {
    /// An empty queue with client-go's default rate limiter. No runtime is needed for that.
    ///
    /// That limiter lets a failed key wait 5 ms, doubled per failure up to 1000 s, and lets all
    /// keys together come back ten times a second after a burst of a hundred: of thousands that
    /// fail at once the last waits for minutes. Another is chosen by [`Queue::builder`].
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use requeue_tokio::core::ItemExponentialFailure;
    /// use requeue_tokio::{Queue, WorkQueue};
    ///
    /// let plain = WorkQueue::new();
    /// plain.add("node-7").unwrap();
    ///
    /// let limiter = ItemExponentialFailure::new(Duration::from_secs(1), Duration::from_secs(60));
    /// let patient = WorkQueue::from(Queue::builder().limiter(limiter).build());
    /// let limited = patient.add_rate_limited("node-7").unwrap();
    /// assert_eq!(limited.delay, Duration::from_secs(1));
    /// ```
    pub fn new() -> Self {
        Self::from(Queue::builder().build())
    }
}

impl<K: Eq + Hash, L: RateLimiter, M: Metrics, S: Storage> From<Queue<K, S, L, M>>
    for WorkQueue<K, L, M, S>
{
    /// A queue of chosen parts.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_tokio::core::{Queue, default_item_based};
    /// use requeue_tokio::WorkQueue;
    ///
    /// let parts = Queue::builder().limiter(default_item_based()).capacity(100);
    /// let queue = WorkQueue::from(parts.build());
    /// queue.add("node-7").unwrap();
    /// ```
    fn from(queue: Queue<K, S, L, M>) -> Self {
        let shared = Shared::from_parts(Locked::new(queue), TokioClock::new(), Wakers::default());
        Self {
            shared: Arc::new(shared),
        }
    }
}

impl<K: Eq + Hash> Default for WorkQueue<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K, L, M, S> WorkQueue<K, L, M, S>
where
    K: Eq + Hash,
    L: RateLimiter,
    M: Metrics,
    S: Storage,
{
    /// Makes room for `additional` more keys, so that adding them does not grow the queue. O(n),
    /// and under the lock. See [`Queue::reserve`].
    ///
    /// # Panics
    ///
    /// If memory for so many keys cannot be addressed, as with any collection.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_tokio::WorkQueue;
    ///
    /// let listed = ["node-7", "node-8", "node-9"];
    /// let queue = WorkQueue::new();
    /// queue.reserve(listed.len());
    /// assert_eq!(queue.add_many(listed, |_| {}).ready, 3);
    /// ```
    pub fn reserve(&self, additional: usize) {
        self.lock().lock().reserve(additional);
    }

    /// Reports to the metrics how long the keys in work have been so, at once and then every
    /// `period`, until the queue is shut down. client-go does so every 500 ms.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the reports and nothing else.
    pub async fn report_running_every(&self, period: Duration) {
        while !self.shutting_down() {
            self.report_running();
            self.clock().sleep_until(self.clock().now() + period).await;
        }
    }
}

impl<K, L, M, S> Deref for WorkQueue<K, L, M, S>
where
    K: Eq + Hash,
    L: RateLimiter,
    M: Metrics,
    S: Storage,
{
    type Target = Shared<K, L, M, S>;

    fn deref(&self) -> &Self::Target {
        &self.shared
    }
}

impl<K, L, M, S> Clone for WorkQueue<K, L, M, S>
where
    K: Eq + Hash,
    L: RateLimiter,
    M: Metrics,
    S: Storage,
{
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<K, L, M, S> fmt::Debug for WorkQueue<K, L, M, S>
where
    K: Eq + Hash,
    L: RateLimiter,
    M: Metrics,
    S: Storage,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.shared.lock().lock();
        f.debug_struct("WorkQueue")
            .field("held", &state.held_len())
            .field("active", &state.active_len())
            .field("delayed", &state.delayed_len())
            .field("shutting_down", &state.shutting_down())
            .finish()
    }
}
