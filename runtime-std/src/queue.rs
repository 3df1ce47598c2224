//! The queue for threads: what is left to do is to wait.

use std::fmt;
use std::hash::Hash;
use std::ops::Deref;
use std::sync::Arc;

use requeue_core::{
    DefaultController, Growable, Metrics, NoMetrics, Queue, RateLimiter, Storage, Waker,
};

use crate::clock::{SystemClock, Timer};
use crate::sync::{Condvars, Locked};

/// A queue, its lock, its clock and its condition variables: core's
/// [`WorkQueue`](requeue_core::WorkQueue) for threads. What a [`WorkQueue`] dereferences to.
///
/// # Examples
///
/// ```
/// use requeue_std::WorkQueue;
/// use requeue_std::core::Lock;
///
/// let queue = WorkQueue::new();
/// queue.add("node-7").unwrap();
/// // It leads to the state machine, which tells more than the methods of the queue.
/// let held = queue.lock().with(|state| state.held_len());
/// assert_eq!(held, 1);
/// ```
pub type Shared<K, L, M, C, S = Growable> =
    requeue_core::WorkQueue<Locked<Queue<K, S, L, M>>, C, Condvars>;

/// A key in work, handed out by [`WorkQueue::get`]. See [`requeue_core::Guard`].
///
/// # Examples
///
/// ```
/// use requeue_std::{Finished, Guard, WorkQueue};
///
/// fn ping(node: Guard<'_, &str>) -> Finished {
///     let is_up = *node != "node-7";
///     if is_up { node.forget() } else { node.retry() }.expect("nobody completes it by name")
/// }
///
/// let queue = WorkQueue::new();
/// queue.add_many(["node-7", "node-8"], |_| {});
/// assert!(matches!(ping(queue.get().unwrap()), Finished::Delayed(_)));
/// assert_eq!(ping(queue.get().unwrap()), Finished::Idle);
/// ```
pub type Guard<'q, K, L = DefaultController, M = NoMetrics, C = SystemClock, S = Growable> =
    requeue_core::Guard<K, &'q Shared<K, L, M, C, S>>;

/// Keys in work, handed out by [`WorkQueue::get_many`]. See [`requeue_core::Batch`].
///
/// # Examples
///
/// ```
/// use requeue_std::{Batch, WorkQueue};
///
/// fn write_down(batch: Batch<'_, u32>) -> u32 {
///     let sum = batch.keys().sum();
///     batch.done().expect("nobody completes a key by name");
///     sum
/// }
///
/// let queue = WorkQueue::new();
/// queue.add_many([17, 18], |_| {});
/// assert_eq!(write_down(queue.get_many(32).unwrap()), 35);
/// ```
pub type Batch<'q, K, L = DefaultController, M = NoMetrics, C = SystemClock, S = Growable> =
    requeue_core::Batch<K, &'q Shared<K, L, M, C, S>>;

/// A keyed work queue for threads.
///
/// Clones are handles to the same queue. The producer side is core's, reached through `Deref`:
/// [`add`](requeue_core::WorkQueue::add), [`add_after`](requeue_core::WorkQueue::add_after),
/// [`add_rate_limited`](requeue_core::WorkQueue::add_rate_limited),
/// [`forget`](requeue_core::WorkQueue::forget) and the rest. Here is what waits.
///
/// `S` is the storage: one that grows, or [`Fixed`](requeue_core::Fixed) for a bound; with
/// [`Levels`](requeue_core::Levels) keys have priorities.
///
/// No thread runs in the background: of the threads that sleep in [`get`](Self::get), one sleeps
/// until the earliest deadline. A thread is notified only if one sleeps, after the lock is
/// released, and sleeping threads are woken in the order in which they went to sleep.
///
/// # Panics
///
/// A panic in a key's `Hash`, `Eq`, `Clone` or `Drop` reaches the caller; the queue stays usable.
///
/// # Examples
///
/// ```
/// use requeue_std::WorkQueue;
///
/// let queue = WorkQueue::new();
/// let worker = std::thread::spawn({
///     let queue = queue.clone();
///     move || {
///         let mut seen = Vec::new();
///         while let Some(key) = queue.get() {
///             seen.push(*key);
///         }
///         seen
///     }
/// });
///
/// queue.add("pod-a").unwrap();
/// queue.add("pod-b").unwrap();
/// queue.shut_down_with_drain();
/// assert_eq!(worker.join().unwrap(), ["pod-a", "pod-b"]);
/// ```
///
/// Where its type has to be named, parts other than client-go's stand in this order:
///
/// ```
/// use requeue_std::core::{
///     DefaultController, Growable, ItemExponentialFailure, Levels, NoMetrics, RandomState,
/// };
/// use requeue_std::{Queue, SystemClock, WorkQueue};
///
/// type Leveled = Growable<RandomState, Levels<4>>;
///
/// struct Controller {
///     pods: WorkQueue<String>,
///     /// With a limiter of its own.
///     nodes: WorkQueue<String, ItemExponentialFailure>,
///     /// With four priority levels.
///     alarms: WorkQueue<String, DefaultController, NoMetrics, SystemClock, Leveled>,
/// }
///
/// # use requeue_std::core::default_item_based;
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
/// use requeue_std::{AddOptions, Queue, WorkQueue};
///
/// let queue = WorkQueue::from(Queue::builder().levels::<2>().build());
/// queue.add_many(["pod-a", "pod-b", "pod-c"], |_| {});
/// queue.add_with("pod-c", AddOptions { priority: Some(1), ..AddOptions::new() }).unwrap();
///
/// let first = queue.get().unwrap();
/// assert_eq!((*first, first.priority()), ("pod-c", 1));
/// ```
pub struct WorkQueue<K, L = DefaultController, M = NoMetrics, C = SystemClock, S = Growable>
where
    K: Eq + Hash,
    L: RateLimiter,
    M: Metrics,
    S: Storage,
{
    pub(crate) shared: Arc<Shared<K, L, M, C, S>>,
}

impl<K: Eq + Hash> WorkQueue<K> {
    /// An empty queue with client-go's default rate limiter, on the system's clock. A queue of
    /// other parts is made by `WorkQueue::from`.
    ///
    /// That limiter lets a failed key wait 5 ms, doubled per failure up to 1000 s, and lets all
    /// keys together come back ten times a second after a burst of a hundred: of thousands that
    /// fail at once the last waits for minutes. Another is chosen by [`Queue::builder`].
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use requeue_std::core::ItemExponentialFailure;
    /// use requeue_std::{Queue, WorkQueue};
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
    for WorkQueue<K, L, M, SystemClock, S>
{
    /// A queue of chosen parts, on the system's clock.
    fn from(queue: Queue<K, S, L, M>) -> Self {
        Self::from_queue(queue, SystemClock::new())
    }
}

impl<K: Eq + Hash> Default for WorkQueue<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K, L, M, C, S> WorkQueue<K, L, M, C, S>
where
    K: Eq + Hash,
    L: RateLimiter,
    M: Metrics,
    S: Storage,
    C: Timer,
{
    /// A queue of chosen parts, and its clock: a [`ManualClock`](crate::ManualClock) for tests.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_std::core::{Queue, default_item_based};
    /// use requeue_std::{SystemClock, WorkQueue};
    ///
    /// let parts = Queue::builder().limiter(default_item_based()).capacity(100);
    /// let queue = WorkQueue::from_queue(parts.build(), SystemClock::new());
    /// queue.add("node-7").unwrap();
    /// ```
    pub fn from_queue(queue: Queue<K, S, L, M>, clock: C) -> Self {
        let shared = Shared::from_parts(Locked::new(queue), clock, Condvars::default());
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Makes every sleeping thread look at the queue again: after a
    /// [`ManualClock`](crate::ManualClock) was moved.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use requeue_std::{ManualClock, Queue, WorkQueue};
    ///
    /// let clock = ManualClock::new();
    /// let queue = WorkQueue::from_queue(Queue::builder().build(), clock.clone());
    /// queue.add_after("lease-3", Duration::from_secs(3600)).unwrap();
    /// std::thread::scope(|scope| {
    ///     let worker = scope.spawn(|| queue.get().map(|guard| *guard));
    ///     clock.advance(Duration::from_secs(3600));
    ///     queue.clock_moved();
    ///     assert_eq!(worker.join().unwrap(), Some("lease-3"));
    /// });
    /// ```
    pub fn clock_moved(&self) {
        // Whoever has read the old time and not yet gone to sleep holds the lock.
        drop(self.lock().lock());
        self.waker().wake_all();
    }

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
    /// use requeue_std::WorkQueue;
    ///
    /// let listed = ["node-7", "node-8", "node-9"];
    /// let queue = WorkQueue::new();
    /// queue.reserve(listed.len());
    /// assert_eq!(queue.add_many(listed, |_| {}).ready, 3);
    /// ```
    pub fn reserve(&self, additional: usize) {
        self.lock().lock().reserve(additional);
    }
}

/// What the lock of a [`WorkQueue`] holds.
pub(crate) type State<K, S, L, M> = Queue<K, S, L, M>;

impl<K, L, M, C, S> Deref for WorkQueue<K, L, M, C, S>
where
    K: Eq + Hash,
    L: RateLimiter,
    M: Metrics,
    S: Storage,
{
    type Target = Shared<K, L, M, C, S>;

    fn deref(&self) -> &Self::Target {
        &self.shared
    }
}

impl<K, L, M, C, S> Clone for WorkQueue<K, L, M, C, S>
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

impl<K, L, M, C, S> fmt::Debug for WorkQueue<K, L, M, C, S>
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
