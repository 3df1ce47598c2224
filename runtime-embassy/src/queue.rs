//! The queue for microcontrollers: what is left to do is to wait.

use core::fmt;
use core::future::poll_fn;
use core::hash::Hash;
use core::ops::Deref;
use core::time::Duration;

use embassy_sync::blocking_mutex::raw::RawMutex;
use requeue_core::{
    Clock, Completion, Effect, Fixed, Getter, Index, Instant, ItemExponentialFailure, Leftover,
    Lock, Metrics, Next, NoMetrics, NoPriorities, Priorities, Queue, RateLimiter, Storage, Ticket,
    Waker, WorkOf,
};

use crate::clock::{EmbassyClock, Timer};
use crate::get_error::GetError;
use crate::sync::{Locked, Wakers};
use crate::waiting::{State, Stored, Waiting};

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
    shared: Shared<R, K, N, L, WAITERS, M, I, C, P>,
}

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

impl<R, K, const N: usize, L, const WAITERS: usize, M, I, C, P>
    WorkQueue<R, K, N, L, WAITERS, M, I, C, P>
where
    R: RawMutex,
    K: Eq + Hash + Clone,
    L: RateLimiter,
    M: Metrics,
    I: Index,
    P: Priorities,
    C: Timer,
{
    /// Hands out the first ready key; waits for one if there is none.
    ///
    /// A task that finds a key every time does not let others run: it awaits something else now and
    /// then, as [`run`](Self::run) does.
    ///
    /// # Errors
    ///
    /// [`GetError::Closed`] once the queue is shut down and no key is ready;
    /// [`GetError::TooManyWaiters`] if there is neither a key nor a place to wait for one. A call
    /// that has been woken keeps its place until it ends, and does not meet this.
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
    /// use embassy_futures::block_on;
    /// use requeue_embassy::core::default_item_based;
    /// use requeue_embassy::raw::NoopRawMutex;
    /// use requeue_embassy::{GetError, WorkQueue};
    ///
    /// let queue: WorkQueue<NoopRawMutex, u16, 16> = WorkQueue::new(default_item_based());
    /// queue.add(7).unwrap();
    /// let guard = block_on(queue.get()).unwrap();
    /// assert_eq!((*guard, guard.attempt()), (7, 1));
    /// guard.forget().unwrap();
    ///
    /// queue.shut_down();
    /// assert_eq!(block_on(queue.get()).unwrap_err(), GetError::Closed);
    /// ```
    pub async fn get(&self) -> Result<Guard<'_, R, K, N, L, WAITERS, M, I, C, P>, GetError> {
        let work = self.wait(None, Queue::get).await?;
        Ok(Guard::new(work, &self.shared))
    }

    /// As [`get`](Self::get), but waits no longer than `timeout`, counted from the first poll.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get), and [`GetError::TimedOut`] if no key was ready in time.
    ///
    /// # Cancel safety
    ///
    /// As [`get`](Self::get).
    pub async fn get_timeout(
        &self,
        timeout: Duration,
    ) -> Result<Guard<'_, R, K, N, L, WAITERS, M, I, C, P>, GetError> {
        self.get_deadline(self.clock().now() + timeout).await
    }

    /// As [`get`](Self::get), but waits no longer than until `deadline` of the queue's clock:
    /// [`EmbassyClock::at`] makes one of embassy-time's. A key that is ready is handed out even if
    /// the deadline has passed.
    ///
    /// # Errors
    ///
    /// As [`get_timeout`](Self::get_timeout).
    ///
    /// # Cancel safety
    ///
    /// As [`get`](Self::get).
    pub async fn get_deadline(
        &self,
        deadline: Instant,
    ) -> Result<Guard<'_, R, K, N, L, WAITERS, M, I, C, P>, GetError> {
        let work = self.wait(Some(deadline), Queue::get).await?;
        Ok(Guard::new(work, &self.shared))
    }

    /// Completes a key as told and hands out the next, under one lock: what a worker's loop does.
    /// Waits as [`get`](Self::get).
    ///
    /// A guard of another queue is completed there. To learn what became of the key, complete it by
    /// its guard.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    ///
    /// # Cancel safety
    ///
    /// The key is completed as told in any case, even if the future is dropped before its first
    /// poll. From then on as [`get`](Self::get).
    ///
    /// # Examples
    ///
    /// ```
    /// use embassy_futures::block_on;
    /// use requeue_embassy::core::default_item_based;
    /// use requeue_embassy::raw::NoopRawMutex;
    /// use requeue_embassy::{Completion, WorkQueue};
    ///
    /// let queue: WorkQueue<NoopRawMutex, u16, 16> = WorkQueue::new(default_item_based());
    /// queue.add_many([17, 18], |_| {});
    /// queue.shut_down();
    ///
    /// let mut seen = Vec::new();
    /// block_on(async {
    ///     let mut next = queue.get().await;
    ///     while let Ok(guard) = next {
    ///         seen.push(*guard);
    ///         next = queue.next(guard, Completion::Succeeded).await;
    ///     }
    /// });
    /// assert_eq!(seen, [17, 18]);
    /// ```
    #[expect(
        clippy::type_complexity,
        reason = "a guard names every part of its queue"
    )]
    pub fn next<'q>(
        &'q self,
        guard: Guard<'_, R, K, N, L, WAITERS, M, I, C, P>,
        completion: Completion,
    ) -> impl Future<Output = Result<Guard<'q, R, K, N, L, WAITERS, M, I, C, P>, GetError>> {
        // Made before the first poll: the caller has said how it went, and may drop the future.
        let mut turn = Turn {
            queue: &self.shared,
            ticket: None,
            completion,
        };
        if core::ptr::eq(guard.queue(), turn.queue) {
            turn.ticket = guard.into_ticket();
        } else {
            // What became of it matters to that queue alone, which loses nothing.
            let _ = guard.complete(completion);
        }
        async move {
            let look = |state: &mut _, now, getter: &mut _| turn.look(state, now, getter);
            let work = self.wait(None, look).await?;
            Ok(Guard::new(work, &self.shared))
        }
    }

    /// After shutdown: takes out every key that has not been worked on, ready keys first, then
    /// delayed ones in the order of their deadlines. Keys in work are not touched; nothing comes
    /// out before shutdown. O(log n) per key, each under a lock of its own.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue_embassy::core::default_item_based;
    /// use requeue_embassy::raw::NoopRawMutex;
    /// use requeue_embassy::WorkQueue;
    ///
    /// let queue: WorkQueue<NoopRawMutex, u16, 16> = WorkQueue::new(default_item_based());
    /// queue.add_after(3, Duration::from_secs(60)).unwrap();
    /// queue.add(7).unwrap();
    /// queue.shut_down();
    /// assert!(queue.leftovers().map(|left| left.key).eq([7, 3]));
    /// ```
    pub fn leftovers(&self) -> impl Iterator<Item = Leftover<K>> {
        let ready = core::iter::from_fn(|| self.take_ready());
        let delayed = core::iter::from_fn(|| self.take_delayed());
        ready.chain(delayed)
    }

    /// Looks until there is an answer, and sleeps in between.
    async fn wait<T>(
        &self,
        deadline: Option<Instant>,
        mut look: impl FnMut(&mut Held<K, N, L, M, I, P>, Instant, &mut Getter) -> Effect<Next<T>>,
    ) -> Result<T, GetError> {
        let mut sleeper = Sleeper {
            queue: &self.shared,
            waiting: Waiting::new(),
        };
        poll_fn(|context| {
            let Sleeper { queue, waiting } = &mut sleeper;
            waiting.poll(queue, context, deadline, &mut look)
        })
        .await
    }
}

/// What the lock of a [`WorkQueue`] holds.
pub(crate) type Held<K, const N: usize, L, M, I, P> = State<K, Fixed<N, I, P>, L, M>;

/// A call that waits for a key. However it ends, the queue is told if it has to know.
struct Sleeper<'q, R, K, S, L, const WAITERS: usize, M, C>
where
    R: RawMutex,
    K: Eq + Hash,
    S: Storage,
    L: RateLimiter,
    M: Metrics,
    C: Timer,
{
    queue: &'q Stored<R, K, S, L, WAITERS, M, C>,
    waiting: Waiting<C::Sleep>,
}

impl<R, K, S, L, const WAITERS: usize, M, C> Drop for Sleeper<'_, R, K, S, L, WAITERS, M, C>
where
    R: RawMutex,
    K: Eq + Hash,
    S: Storage,
    L: RateLimiter,
    M: Metrics,
    C: Timer,
{
    fn drop(&mut self) {
        self.waiting.end(self.queue);
    }
}

/// A run that its owner has declared over: completed in the first look, or on drop.
struct Turn<'q, R, K, S, L, const WAITERS: usize, M, C>
where
    R: RawMutex,
    K: Eq + Hash,
    S: Storage,
    L: RateLimiter,
    M: Metrics,
    C: Clock,
{
    queue: &'q Stored<R, K, S, L, WAITERS, M, C>,
    /// Present until the run is completed.
    ticket: Option<Ticket>,
    completion: Completion,
}

impl<R, K, S, L, const WAITERS: usize, M, C> Turn<'_, R, K, S, L, WAITERS, M, C>
where
    R: RawMutex,
    K: Eq + Hash + Clone,
    S: Storage,
    L: RateLimiter,
    M: Metrics,
    C: Clock,
{
    fn look(
        &mut self,
        state: &mut State<K, S, L, M>,
        now: Instant,
        getter: &mut Getter,
    ) -> Effect<Next<WorkOf<K, S, M>>> {
        let Some(ticket) = self.ticket.take() else {
            return state.get(now, getter);
        };
        let now = if self.completion.needs_time() {
            self.queue.clock().now()
        } else {
            now
        };
        let step = state.next(ticket, self.completion, now, getter);
        step.map(|step| step.next)
    }
}

impl<R, K, S, L, const WAITERS: usize, M, C> Drop for Turn<'_, R, K, S, L, WAITERS, M, C>
where
    R: RawMutex,
    K: Eq + Hash,
    S: Storage,
    L: RateLimiter,
    M: Metrics,
    C: Clock,
{
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            // Somebody may have completed the key by name: then there is nothing left to do.
            let _ = self.queue.complete(ticket, self.completion);
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
