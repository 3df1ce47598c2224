//! The queue for microcontrollers: what is left to do is to wait.

use core::fmt;
use core::hash::Hash;
use core::ops::Deref;
use core::time::Duration;

use embassy_sync::blocking_mutex::raw::RawMutex;
use requeue_core::{
    Fixed, Index, ItemExponentialFailure, Lock, Metrics, NoMetrics, NoPriorities, Priorities,
    Queue, RateLimiter, Waker,
};

use crate::clock::{EmbassyClock, Timer};
use crate::sync::{Locked, Wakers};
use crate::waiting::{State, Stored};

/// A queue, its lock, its clock and its wakers: core's [`WorkQueue`](requeue_core::WorkQueue) for
/// tasks on a microcontroller. What a [`WorkQueue`] dereferences to.
///
/// # Examples
///
/// ```
/// use requeue_embassy::WorkQueue;
/// use requeue_embassy::core::{Lock, default_item_based};
/// use requeue_embassy::raw::NoopRawMutex;
///
/// let queue: WorkQueue<NoopRawMutex, u16, 16> = WorkQueue::new(default_item_based());
/// queue.add(7).unwrap();
/// // It leads to the state machine, which tells more than the methods of the queue.
/// let held = queue.lock().with(|state| state.held_len());
/// assert_eq!(held, 1);
/// ```
pub type Shared<R, K, const N: usize, L, const WAITERS: usize, M, I, C, P = NoPriorities> =
    Stored<R, K, Fixed<N, I, P>, L, WAITERS, M, C>;

/// A key in work, handed out by [`WorkQueue::get`]. See [`requeue_core::Guard`].
///
/// **A guard that is dropped without having been completed counts as failed**: its key is requeued
/// rate-limited, as by [`retry`](requeue_core::Guard::retry). A future that is dropped by a
/// `select` or a timeout drops its guards, and no guard can tell that apart from the end of a
/// scope. So say how it went: [`done`](requeue_core::Guard::done),
/// [`forget`](requeue_core::Guard::forget), [`retry_after`](requeue_core::Guard::retry_after) or
/// [`complete`](requeue_core::Guard::complete).
///
/// # Examples
///
/// ```
/// use requeue_embassy::core::default_item_based;
/// use requeue_embassy::raw::NoopRawMutex;
/// use requeue_embassy::{Finished, Guard, WorkQueue};
///
/// fn read(sensor: Guard<'_, NoopRawMutex, u16, 16>) -> Finished {
///     let answers = *sensor != 17;
///     if answers { sensor.forget() } else { sensor.retry() }.expect("nobody completes it by name")
/// }
///
/// let queue: WorkQueue<NoopRawMutex, u16, 16> = WorkQueue::new(default_item_based());
/// queue.add_many([17, 18], |_| {});
/// assert!(matches!(read(queue.try_get().unwrap()), Finished::Delayed(_)));
/// assert_eq!(read(queue.try_get().unwrap()), Finished::Idle);
/// ```
pub type Guard<
    'q,
    R,
    K,
    const N: usize,
    L = ItemExponentialFailure,
    const WAITERS: usize = 3,
    M = NoMetrics,
    I = u8,
    C = EmbassyClock,
    P = NoPriorities,
> = requeue_core::Guard<K, &'q Shared<R, K, N, L, WAITERS, M, I, C, P>>;

/// A keyed work queue for tasks on a microcontroller, made for a `static`.
///
/// | parameter | |
/// |---|---|
/// | `R` | the kind of mutex, as in embassy-sync; for interrupts, [`CriticalSectionRawMutex`] |
/// | `K` | the keys: small and `Clone`, an enum or an integer |
/// | `N` | how many keys it holds |
/// | `L` | what decides how long a failed key waits |
/// | `WAITERS` | how many calls may wait at once, for keys and for the drain |
/// | `M` | who is told the figures |
/// | `I` | holds slot numbers: `u8` up to 255 keys, `u16` beyond |
/// | `C` | the clock |
///
/// The producer side is core's, reached through `Deref`: [`add`](requeue_core::WorkQueue::add),
/// [`add_after`](requeue_core::WorkQueue::add_after),
/// [`add_rate_limited`](requeue_core::WorkQueue::add_rate_limited),
/// [`forget`](requeue_core::WorkQueue::forget), [`try_get`](requeue_core::WorkQueue::try_get) and
/// the rest, none of which waits. Here is what waits.
///
/// No task runs in the background: of the tasks that wait in [`get`](Self::get), one has set a
/// timer for the earliest deadline, and the others none. A task is woken only if one waits, and
/// after the lock is released; tasks are woken in the order in which they came.
///
/// # From an interrupt
///
/// Every method of the producer side may be called from an interrupt handler, if `R` is a critical
/// section: none waits, and none allocates. Interrupts are held off for one operation:
/// [`add`](requeue_core::WorkQueue::add) takes O(1) expected, and at most `N` comparisons of keys
/// if all of them share a hash; each deadline that has come in the meantime, `N` at most, is
/// released by whoever comes next, at O(log `N`) each. A second, shorter section takes the waker of
/// a task that waits, O(`WAITERS`), and wakes it behind that.
///
/// # Panics
///
/// If a key's own code touches the queue that calls it. No method panics by itself.
///
/// [`CriticalSectionRawMutex`]: crate::raw::CriticalSectionRawMutex
///
/// # Examples
///
/// ```
/// use requeue_embassy::core::default_item_based;
/// use requeue_embassy::raw::CriticalSectionRawMutex;
/// use requeue_embassy::WorkQueue;
///
/// #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
/// enum Job {
///     Read(u8),
///     Upload,
/// }
///
/// static JOBS: WorkQueue<CriticalSectionRawMutex, Job, 16> =
///     WorkQueue::new(default_item_based());
///
/// fn on_data_ready() {
///     // An interrupt handler: ten edges make one run.
///     let _ = JOBS.add(Job::Read(3));
/// }
///
/// async fn worker() {
///     while let Ok(job) = JOBS.get().await {
///         let read = matches!(*job, Job::Read(_));
///         let _ = job.forget();
///         if read {
///             let _ = JOBS.add(Job::Upload);
///         }
///     }
/// }
///
/// on_data_ready();
/// on_data_ready();
/// # let mut worker = core::pin::pin!(worker());
/// # assert!(embassy_futures::poll_once(worker.as_mut()).is_pending());
/// # assert!(!JOBS.contains(&Job::Read(3)) && !JOBS.contains(&Job::Upload));
/// ```
///
/// With priorities, here two: an alarm goes before whatever else is ready.
///
/// ```
/// use requeue_embassy::core::{ItemExponentialFailure, Levels, NoMetrics, default_item_based};
/// use requeue_embassy::raw::CriticalSectionRawMutex;
/// use requeue_embassy::{AddOptions, EmbassyClock, WorkQueue};
///
/// type Jobs = WorkQueue<
///     CriticalSectionRawMutex, u8, 16, ItemExponentialFailure, 3, NoMetrics, u8, EmbassyClock,
///     Levels<2>,
/// >;
/// static JOBS: Jobs = WorkQueue::new(default_item_based());
/// const ALARM: AddOptions = AddOptions { priority: Some(1), ..AddOptions::new() };
///
/// JOBS.add(3).unwrap();
/// JOBS.add_with(9, ALARM).unwrap();
/// let first = JOBS.try_get().unwrap();
/// assert_eq!((*first, first.priority()), (9, 1));
/// ```
pub struct WorkQueue<
    R,
    K,
    const N: usize,
    L = ItemExponentialFailure,
    const WAITERS: usize = 3,
    M = NoMetrics,
    I = u8,
    C = EmbassyClock,
    P = NoPriorities,
> where
    R: RawMutex,
    K: Eq + Hash,
    L: RateLimiter,
    M: Metrics,
    I: Index,
    P: Priorities,
{
    pub(crate) shared: Shared<R, K, N, L, WAITERS, M, I, C, P>,
}

/// What the lock of a [`WorkQueue`] holds.
pub(crate) type Held<K, const N: usize, L, M, I, P> = State<K, Fixed<N, I, P>, L, M>;

impl<R, K, const N: usize, L, const WAITERS: usize, I, P>
    WorkQueue<R, K, N, L, WAITERS, NoMetrics, I, EmbassyClock, P>
where
    R: RawMutex,
    K: Eq + Hash,
    L: RateLimiter,
    I: Index,
    P: Priorities,
{
    /// An empty queue on embassy-time's clock, in a `static` if need be. A queue of other parts is
    /// made by [`from_queue`](Self::from_queue).
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_embassy::core::{DefaultController, default_controller, default_item_based};
    /// use requeue_embassy::raw::CriticalSectionRawMutex;
    /// use requeue_embassy::WorkQueue;
    ///
    /// // 1 ms doubled per failure for each key.
    /// static PLAIN: WorkQueue<CriticalSectionRawMutex, u16, 16> =
    ///     WorkQueue::new(default_item_based());
    /// // A bucket for all keys together besides, and five calls that may wait.
    /// static MORE: WorkQueue<CriticalSectionRawMutex, u16, 200, DefaultController, 5> =
    ///     WorkQueue::new(default_controller());
    /// # PLAIN.add(1).unwrap();
    /// # MORE.add(1).unwrap();
    /// ```
    pub const fn new(limiter: L) -> Self {
        Self::from_queue(Queue::new(limiter), EmbassyClock)
    }
}

impl<R, K, const N: usize, L, const WAITERS: usize, M, I, C, P>
    WorkQueue<R, K, N, L, WAITERS, M, I, C, P>
where
    R: RawMutex,
    K: Eq + Hash,
    L: RateLimiter,
    M: Metrics,
    I: Index,
    P: Priorities,
{
    /// A queue of chosen parts, and its clock: a [`ManualClock`](crate::ManualClock) for tests.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_embassy::core::{Metrics, NoLimit};
    /// use requeue_embassy::raw::CriticalSectionRawMutex;
    /// use requeue_embassy::{EmbassyClock, Queue, WorkQueue};
    ///
    /// struct Deepest(usize);
    ///
    /// impl Metrics for Deepest {
    ///     type Stamps = ();
    ///
    ///     fn depth(&mut self, keys: usize) {
    ///         self.0 = self.0.max(keys);
    ///     }
    /// }
    ///
    /// static QUEUE: WorkQueue<CriticalSectionRawMutex, u16, 16, NoLimit, 3, Deepest> =
    ///     WorkQueue::from_queue(Queue::with_metrics(NoLimit, Deepest(0)), EmbassyClock);
    /// # QUEUE.add(1).unwrap();
    /// ```
    pub const fn from_queue(queue: Queue<K, Fixed<N, I, P>, L, M>, clock: C) -> Self {
        Self {
            shared: Shared::from_parts(Locked::new(queue), clock, Wakers::new()),
        }
    }
}

impl<R, K, const N: usize, L, const WAITERS: usize, M, I, C, P>
    WorkQueue<R, K, N, L, WAITERS, M, I, C, P>
where
    R: RawMutex,
    K: Eq + Hash,
    L: RateLimiter,
    M: Metrics,
    I: Index,
    P: Priorities,
    C: Timer,
{
    /// Makes every waiting task look at the queue again: after a
    /// [`ManualClock`](crate::ManualClock) was moved.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::pin::pin;
    /// use core::time::Duration;
    /// use embassy_futures::poll_once;
    /// use requeue_embassy::core::{NoLimit, NoMetrics};
    /// use requeue_embassy::raw::NoopRawMutex;
    /// use requeue_embassy::{ManualClock, Queue, WorkQueue};
    ///
    /// let clock: ManualClock<NoopRawMutex> = ManualClock::new();
    /// let queue: WorkQueue<NoopRawMutex, u16, 8, NoLimit, 3, NoMetrics, u8, _> =
    ///     WorkQueue::from_queue(Queue::new(NoLimit), &clock);
    /// queue.add_after(17, Duration::from_secs(3600)).unwrap();
    /// let mut worker = pin!(queue.get());
    /// assert!(poll_once(worker.as_mut()).is_pending());
    ///
    /// clock.advance(Duration::from_secs(3600));
    /// queue.clock_moved();
    /// assert!(poll_once(worker.as_mut()).is_ready());
    /// ```
    pub fn clock_moved(&self) {
        self.waker().wake_all();
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
            let due = self.clock().now() + period;
            crate::backoff::sleep_until(self.clock(), due).await;
        }
    }
}

impl<R, K, const N: usize, L, const WAITERS: usize, M, I, C, P> Deref
    for WorkQueue<R, K, N, L, WAITERS, M, I, C, P>
where
    R: RawMutex,
    K: Eq + Hash,
    L: RateLimiter,
    M: Metrics,
    I: Index,
    P: Priorities,
{
    type Target = Shared<R, K, N, L, WAITERS, M, I, C, P>;

    fn deref(&self) -> &Self::Target {
        &self.shared
    }
}

impl<R, K, const N: usize, L, const WAITERS: usize, M, I, C, P> fmt::Debug
    for WorkQueue<R, K, N, L, WAITERS, M, I, C, P>
where
    R: RawMutex,
    K: Eq + Hash,
    L: RateLimiter,
    M: Metrics,
    I: Index,
    P: Priorities,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shared.lock().with(|state| {
            f.debug_struct("WorkQueue")
                .field("held", &state.held_len())
                .field("active", &state.active_len())
                .field("delayed", &state.delayed_len())
                .field("shutting_down", &state.shutting_down())
                .finish()
        })
    }
}
