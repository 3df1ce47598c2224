//! The queue for tasks: what is left to do is to wait.

use std::fmt;
use std::future::poll_fn;
use std::hash::Hash;
use std::ops::Deref;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use requeue_core::{
    Clock, Completion, DefaultController, Drained, Effect, GetError, Getter, Growable, Instant,
    Leftover, Metrics, Next, NoMetrics, Queue, RateLimiter, Storage, Wake, Waker,
};

use crate::clock::TokioClock;
use crate::stream::Guards;
use crate::sync::{Line, Locked, Place, Wakers};
use crate::waiting::{State, Turn, Waiting};

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
    /// Takes no more keys and waits until nothing is ready, dirty or in work, however many tasks
    /// wait for that. Answers how it ended: a [`shut_down`](requeue_core::WorkQueue::shut_down)
    /// meanwhile interrupts it.
    ///
    /// Somebody has to do the work: without workers this waits for ever. A worker that calls it
    /// while it holds a guard waits for itself. Delayed keys are not waited for:
    /// [`leftovers`](Self::leftovers) hands them back.
    ///
    /// # Cancel safety
    ///
    /// The queue takes no more keys from the first poll on. Dropping the future ends the wait and
    /// nothing else.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_tokio::{Drained, WorkQueue};
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() {
    /// let queue = WorkQueue::new();
    /// queue.add_many(["node-7", "node-8"], |_| {});
    /// let worker = tokio::spawn({
    ///     let queue = queue.clone();
    ///     async move {
    ///         while let Some(guard) = queue.get().await {
    ///             guard.forget().unwrap();
    ///         }
    ///     }
    /// });
    /// assert_eq!(queue.shut_down_with_drain().await, Drained::Complete);
    /// assert!(!queue.contains(&"node-8"));
    /// # worker.await.unwrap();
    /// # }
    /// ```
    pub async fn shut_down_with_drain(&self) -> Drained {
        self.drain(Instant::NEVER).await
    }

    /// As [`shut_down_with_drain`](Self::shut_down_with_drain), but waits no longer than `timeout`:
    /// [`Drained::Pending`] says that it was not enough. The queue takes no more keys all the same.
    ///
    /// # Cancel safety
    ///
    /// As [`shut_down_with_drain`](Self::shut_down_with_drain).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use requeue_tokio::{Drained, WorkQueue};
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() {
    /// let queue = WorkQueue::new();
    /// queue.add("node-7").unwrap();
    /// let guard = queue.get().await.unwrap();
    /// let ten_seconds = Duration::from_secs(10);
    /// assert_eq!(queue.drain_timeout(ten_seconds).await, Drained::Pending);
    /// guard.done().unwrap();
    /// assert_eq!(queue.drain_timeout(ten_seconds).await, Drained::Complete);
    /// # }
    /// ```
    pub async fn drain_timeout(&self, timeout: Duration) -> Drained {
        self.drain(self.clock().now() + timeout).await
    }

    /// Waits until the queue has been shut down, by whomever, and nothing is ready, dirty or in
    /// work. Any number of tasks may wait.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the wait and nothing else.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_tokio::WorkQueue;
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() {
    /// let queue = WorkQueue::new();
    /// queue.add("node-7").unwrap();
    /// let flushed = tokio::spawn({
    ///     let queue = queue.clone();
    ///     async move { queue.drained().await }
    /// });
    /// queue.get().await.unwrap().forget().unwrap();
    /// queue.shut_down();
    /// flushed.await.unwrap();
    /// # }
    /// ```
    pub async fn drained(&self) {
        let is_drained = |state: &mut State<K, S, L, M>| Effect {
            value: state.is_drained().then_some(()),
            wake: Wake::None,
        };
        self.wait_for_drain(is_drained, Instant::NEVER).await;
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

    async fn drain(&self, deadline: Instant) -> Drained {
        let drain = self.begin_drain();
        let ended = |state: &mut State<K, S, L, M>| {
            let drained = state.drained(&drain);
            Effect {
                value: (drained != Drained::Pending).then_some(drained),
                wake: Wake::None,
            }
        };
        let ended = self.wait_for_drain(ended, deadline).await;
        ended.unwrap_or(Drained::Pending)
    }

    /// Waits until `ended` has an answer, and no longer than until `deadline`.
    async fn wait_for_drain<T>(
        &self,
        ended: impl Fn(&mut State<K, S, L, M>) -> Effect<Option<T>>,
        deadline: Instant,
    ) -> Option<T> {
        let mut drainer = Drainer {
            line: &self.waker().drains,
            place: Place::default(),
        };
        let mut late = pin!(self.clock().sleep_until(deadline));
        poll_fn(|context| {
            let waker = context.waker().clone();
            let mut state = self.lock().lock();
            let Effect { value, wake } = ended(&mut state);
            // Under the queue's lock, as in `Waiting::poll`. What stood there is dropped last.
            let _stale = drainer.line.stand(&mut drainer.place, waker);
            drop(state);
            self.waker().obey(wake);
            if value.is_some() {
                return Poll::Ready(value);
            }
            late.as_mut().poll(context).map(|()| None)
        })
        .await
    }
}

impl<K, L, M, S> WorkQueue<K, L, M, S>
where
    K: Eq + Hash + Clone,
    L: RateLimiter,
    M: Metrics,
    S: Storage,
{
    /// Hands out the first ready key; waits for one if there is none. Nothing once the queue is
    /// shut down and no key is ready.
    ///
    /// # Cancel safety
    ///
    /// No key is lost: dropping the future before it is ready takes nothing out of the queue. If it
    /// had been woken, or watched the clock, another task takes that over. It loses its place in
    /// line.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_tokio::WorkQueue;
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() {
    /// let queue = WorkQueue::new();
    /// queue.add("node-7").unwrap();
    /// let guard = queue.get().await.unwrap();
    /// assert_eq!((*guard, guard.attempt()), ("node-7", 1));
    /// guard.forget().unwrap();
    ///
    /// queue.shut_down();
    /// assert!(queue.get().await.is_none());
    /// # }
    /// ```
    pub async fn get(&self) -> Option<Guard<K, L, M, S>> {
        let work = self.wait(None, Queue::get).await.ok()?;
        Some(Guard::new(work, Arc::clone(&self.shared)))
    }

    /// Hands out the first ready key, if there is one. O(1). Never waits but for the lock.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_tokio::WorkQueue;
    ///
    /// let queue = WorkQueue::new();
    /// assert!(queue.try_get().is_none());
    /// queue.add("node-7").unwrap();
    /// queue.try_get().unwrap().forget().unwrap();
    /// ```
    pub fn try_get(&self) -> Option<Guard<K, L, M, S>> {
        let work = self.act(Queue::try_get)?;
        Some(Guard::new(work, Arc::clone(&self.shared)))
    }

    /// As [`get`](Self::get), but waits no longer than `timeout`, counted from the first poll.
    /// [`Duration::MAX`] waits as [`get`](Self::get) does.
    ///
    /// # Errors
    ///
    /// [`GetError`]: no key was ready in time, or the queue is shut down.
    ///
    /// # Cancel safety
    ///
    /// As [`get`](Self::get).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use requeue_tokio::{GetError, WorkQueue};
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() {
    /// let queue = WorkQueue::new();
    /// queue.add("node-7").unwrap();
    /// match queue.get_timeout(Duration::from_secs(1)).await {
    ///     Ok(guard) => guard.forget().map(drop).unwrap(),
    ///     Err(GetError::TimedOut) => println!("nothing to do: time for something else"),
    ///     Err(error) => println!("stopping: {error}"),
    /// }
    /// assert!(!queue.contains(&"node-7"));
    /// # }
    /// ```
    pub async fn get_timeout(&self, timeout: Duration) -> Result<Guard<K, L, M, S>, GetError> {
        self.get_until(self.clock().now() + timeout).await
    }

    /// As [`get`](Self::get), but waits no longer than until `deadline`. A key that is ready is
    /// handed out even if the deadline has passed.
    ///
    /// # Errors
    ///
    /// As [`get_timeout`](Self::get_timeout).
    ///
    /// # Cancel safety
    ///
    /// As [`get`](Self::get).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use requeue_tokio::WorkQueue;
    /// use tokio::time::Instant;
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() {
    /// let queue = WorkQueue::new();
    /// queue.add_after("lease-3", Duration::from_secs(60)).unwrap();
    /// let deadline = Instant::now() + Duration::from_secs(30);
    /// assert!(queue.get_deadline(deadline).await.is_err());
    /// assert_eq!(Instant::now(), deadline);
    /// # }
    /// ```
    pub async fn get_deadline(
        &self,
        deadline: tokio::time::Instant,
    ) -> Result<Guard<K, L, M, S>, GetError> {
        self.get_until(self.clock().at(deadline)).await
    }

    /// Hands out up to `max` ready keys, one at least, under one lock; waits for the first if there
    /// is none. Nothing once the queue is shut down and no key is ready. O(1) per key.
    ///
    /// # Cancel safety
    ///
    /// As [`get`](Self::get).
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_tokio::WorkQueue;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let queue = WorkQueue::new();
    /// queue.add_many(0..5, |rejected| panic!("{rejected}"));
    /// let batch = queue.get_many(3).await.unwrap();
    /// assert_eq!(batch.keys().copied().collect::<Vec<_>>(), [0, 1, 2]);
    /// batch.done().unwrap();
    /// assert_eq!(queue.len(), 2);
    /// # }
    /// ```
    pub async fn get_many(&self, max: usize) -> Option<Batch<K, L, M, S>> {
        // A batch from the start: if a key's clone panics, those before it are given back.
        let work = Vec::with_capacity(max.min(BATCH_RESERVE_MAX));
        let mut batch = Batch::new(work, Arc::clone(&self.shared));
        self.wait(None, |queue, now, getter| {
            queue.get_many(max, now, getter, |taken| batch.push(taken))
        })
        .await
        .ok()?;
        Some(batch)
    }

    /// Completes a key as told and hands out the next, under one lock: what a worker's loop does.
    /// Waits as [`get`](Self::get).
    ///
    /// A guard of another queue is completed there. To learn what became of the key, complete it by
    /// its guard.
    ///
    /// # Cancel safety
    ///
    /// The key is completed as told in any case, even if the future is dropped before its first
    /// poll. From then on as [`get`](Self::get).
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_tokio::{Completion, WorkQueue};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let queue = WorkQueue::new();
    /// queue.add_many(["a", "b"], |_| {});
    /// queue.shut_down();
    ///
    /// let mut seen = Vec::new();
    /// let mut next = queue.get().await;
    /// while let Some(guard) = next {
    ///     seen.push(*guard);
    ///     next = queue.next(guard, Completion::Succeeded).await;
    /// }
    /// assert_eq!(seen, ["a", "b"]);
    /// # }
    /// ```
    pub fn next(
        &self,
        guard: Guard<K, L, M, S>,
        completion: Completion,
    ) -> impl Future<Output = Option<Guard<K, L, M, S>>> {
        // Made before the first poll: the caller has said how it went, and may drop the future.
        let mut turn = Turn::new(&*self.shared, guard, completion);
        async move {
            let look = |state: &mut _, now, getter: &mut _| turn.look(state, now, getter);
            let work = self.wait(None, look).await.ok()?;
            Some(Guard::new(work, Arc::clone(&self.shared)))
        }
    }

    /// The keys as a [`Stream`](futures_core::Stream) of guards, which ends once the queue is shut
    /// down and no key is ready.
    pub fn guards(&self) -> Guards<K, L, M, S> {
        Guards::new(self.clone())
    }

    /// After shutdown: takes out every key that has not been worked on, ready keys first, then
    /// delayed ones in the order of their deadlines. Keys in work are not touched; nothing comes
    /// out before shutdown. O(log n) per key, each under a lock of its own.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use requeue_tokio::WorkQueue;
    ///
    /// let queue = WorkQueue::new();
    /// queue.add_after("lease-3", Duration::from_secs(60)).unwrap();
    /// queue.add("node-7").unwrap();
    /// queue.shut_down();
    /// let keys: Vec<_> = queue.leftovers().into_iter().map(|left| left.key).collect();
    /// assert_eq!(keys, ["node-7", "lease-3"]);
    /// ```
    pub fn leftovers(&self) -> Vec<Leftover<K>> {
        let ready = std::iter::from_fn(|| self.take_ready());
        let delayed = std::iter::from_fn(|| self.take_delayed());
        ready.chain(delayed).collect()
    }

    async fn get_until(&self, deadline: Instant) -> Result<Guard<K, L, M, S>, GetError> {
        let work = self.wait(Some(deadline), Queue::get).await?;
        Ok(Guard::new(work, Arc::clone(&self.shared)))
    }

    /// Looks until there is an answer, and sleeps in between.
    async fn wait<T>(
        &self,
        deadline: Option<Instant>,
        mut look: impl FnMut(&mut State<K, S, L, M>, Instant, &mut Getter) -> Effect<Next<T>>,
    ) -> Result<T, GetError> {
        let mut sleeper = Sleeper {
            queue: &self.shared,
            waiting: Waiting::default(),
        };
        let mut timer = pin!(None);
        poll_fn(|context| {
            let timer = timer.as_mut();
            sleeper
                .waiting
                .poll(sleeper.queue, context, timer, deadline, &mut look)
        })
        .await
    }
}

/// What `get_many` reserves at most before it knows how many keys there are.
const BATCH_RESERVE_MAX: usize = 64;

/// A call that waits for a key. However it ends, the queue is told if it has to know.
struct Sleeper<'q, K: Eq + Hash, L: RateLimiter, M: Metrics, S: Storage> {
    queue: &'q Shared<K, L, M, S>,
    waiting: Waiting,
}

impl<K: Eq + Hash, L: RateLimiter, M: Metrics, S: Storage> Drop for Sleeper<'_, K, L, M, S> {
    fn drop(&mut self) {
        self.waiting.end(self.queue);
    }
}

/// A call that waits for the drain. Nobody has to take its place.
struct Drainer<'q> {
    line: &'q Line,
    place: Place,
}

impl Drop for Drainer<'_> {
    fn drop(&mut self) {
        drop(self.line.step_out(&self.place));
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
