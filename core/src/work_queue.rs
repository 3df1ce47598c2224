//! The queue behind a lock: everything except waiting, written once for every runtime.

use core::fmt;
use core::hash::Hash;
use core::mem;
use core::task;

use crate::Instant;
use crate::limiter::RateLimiter;
use crate::lock::Lock;
use crate::metrics::Metrics;
use crate::outcome::{Effect, Wake};
use crate::queue::Queue;
use crate::storage::Storage;
use crate::time::Clock;
use crate::wait::WaitList;

mod age;
mod batch;
mod cancel;
mod debounce;
mod displace;
mod drain;
mod expedite;
mod get;
mod groups;
#[cfg(feature = "alloc")]
mod limit;
mod pause;
mod produce;
mod query;
mod restore;
mod room;
mod runs;
mod shutdown;
mod snapshot;
mod watch;

pub use batch::KEYS_PER_LOCK;

/// What the lock of a [`WorkQueue`] protects: the state machine, and the calls that wait for it.
///
/// # Examples
///
/// ```
/// use requeue_core::binding::{FixedWaitList, State};
/// use requeue_core::{Fixed, NoLimit, NoMetrics, Queue};
///
/// type Sensors = State<u16, Fixed<16>, NoLimit, NoMetrics, FixedWaitList<1>>;
/// let state: Sensors = State::new(Queue::new(NoLimit), FixedWaitList::new());
/// assert_eq!(state.queue().held_len(), 0);
/// ```
pub struct State<K, S, L, M, W>
where
    K: Eq + Hash,
    S: Storage,
    L: RateLimiter,
    M: Metrics,
{
    pub(crate) queue: Queue<K, S, L, M>,
    pub(crate) waiters: W,
}

impl<K: Eq + Hash, S: Storage, L: RateLimiter, M: Metrics, W> State<K, S, L, M, W> {
    /// Creates a state from a queue and an empty list. O(1).
    pub const fn new(queue: Queue<K, S, L, M>, waiters: W) -> Self {
        Self { queue, waiters }
    }

    /// Returns the state machine, to be read. [`WorkQueue::with`] changes it, and sends the wakes
    /// that a change asks for. O(1).
    pub const fn queue(&self) -> &Queue<K, S, L, M> {
        &self.queue
    }
}

impl<K: Eq + Hash, S: Storage, L: RateLimiter, M: Metrics, W> fmt::Debug for State<K, S, L, M, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State")
            .field("held", &self.queue.held_len())
            .field("active", &self.queue.active_len())
            .field("delayed", &self.queue.delayed_len())
            .field("shutting_down", &self.queue.shutting_down())
            .finish()
    }
}

/// A [`Queue`] behind its runtime's [`Lock`], with its runtime's [`Clock`].
///
/// Each method reads the clock if time matters, runs the state machine under the lock, unlocks, and
/// wakes the calls that the state machine names. A runtime adds how its calls wait: see
/// [`Wait`](crate::binding::Wait).
///
/// # Panics
///
/// A panic in a key's `Hash`, `Eq`, `Clone` or `Drop` reaches the caller: see
/// [`Queue`](Queue#keys). The methods themselves do not panic.
///
/// # Examples
///
/// A queue for a bare loop, without threads. The examples of the methods use this queue, with
/// [`default_item_based`](crate::default_item_based) as its limiter:
///
/// ```
/// use std::cell::RefCell;
/// use requeue_core::binding::{Clock, FixedWaitList, Lock, State, WorkQueue};
/// use requeue_core::{Fixed, Instant, NoLimit, Queue};
///
/// struct Single<T>(RefCell<T>);
/// impl<T> Lock for Single<T> {
///     type State = T;
///     fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
///         work(&mut self.0.borrow_mut())
///     }
/// }
///
/// struct Stopped;
/// impl Clock for Stopped {
///     fn now(&self) -> Instant {
///         Instant::EPOCH
///     }
/// }
///
/// let queue: Queue<&str, Fixed<4>, NoLimit> = Queue::new(NoLimit);
/// let state = State::new(queue, FixedWaitList::<1>::new());
/// let queue = WorkQueue::new(Single(RefCell::new(state)), Stopped);
///
/// let _ = queue.add("valve");
/// let guard = queue.try_get().unwrap();
/// assert_eq!(*guard, "valve");
/// guard.success().unwrap();
/// assert!(queue.is_empty());
/// ```
pub struct WorkQueue<Q, C> {
    lock: Q,
    clock: C,
}

impl<Q, C> WorkQueue<Q, C> {
    /// Creates a queue from a lock around its [`State`] and a clock, as in the example of the
    /// [type](Self). O(1).
    pub const fn new(lock: Q, clock: C) -> Self {
        Self { lock, clock }
    }

    /// Returns the lock. O(1).
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("work_queue/example.txt")]
    /// let held = queue.lock().with(|state| state.queue().held_len());
    /// assert_eq!(held, 0);
    /// ```
    pub const fn lock(&self) -> &Q {
        &self.lock
    }

    /// Returns the clock, in whose time [`add_at`](Self::add_at) takes its deadline. O(1).
    pub const fn clock(&self) -> &C {
        &self.clock
    }

    /// Returns the time by the queue's clock, in which its deadlines are. O(1), without the lock.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("work_queue/example.txt")]
    /// use core::time::Duration;
    ///
    /// let _ = queue.add_at("lease-3", queue.now() + Duration::from_secs(60));
    /// let due = queue.state("lease-3").unwrap().due.unwrap();
    /// assert_eq!(due.saturating_since(queue.now()), Duration::from_secs(60));
    /// ```
    pub fn now(&self) -> Instant
    where
        C: Clock,
    {
        self.clock.now()
    }
}

impl<K, S, L, M, W, Q, C> WorkQueue<Q, C>
where
    K: Eq + Hash,
    S: Storage,
    L: RateLimiter,
    M: Metrics,
    W: WaitList,
    Q: Lock<State = State<K, S, L, M, W>>,
    C: Clock,
{
    /// Runs `work` on the state machine, then sends the wake that it returns. For runtimes. Costs
    /// as `work`.
    ///
    /// `now` is the time only if [`Queue::needs_time`] returns true, else [`Instant::EPOCH`].
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("work_queue/example.txt")]
    /// // Two figures of the same moment, under one lock.
    /// let (ready, active) = queue.with(|queue, now| {
    ///     let active = queue.active_len();
    ///     queue.len(now).map(|ready| (ready, active))
    /// });
    /// assert_eq!((ready, active), (0, 0));
    /// ```
    #[inline]
    pub fn with<T>(&self, work: impl FnOnce(&mut Queue<K, S, L, M>, Instant) -> Effect<T>) -> T {
        self.under_lock(|state| {
            let now = if state.queue.needs_time() {
                self.clock.now()
            } else {
                Instant::EPOCH
            };
            work(&mut state.queue, now)
        })
    }

    /// As [`with`](Self::with), for operations that always need the time. Costs as `work`, and
    /// reads the clock once.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("work_queue/example.txt")]
    /// use core::time::Duration;
    ///
    /// let minute = Duration::from_secs(60);
    /// let added = queue.with_now(|queue, now| queue.add_at("lease-3", now + minute, now));
    /// assert_eq!(added, Ok(Added::Delayed));
    /// ```
    #[inline]
    pub fn with_now<T>(
        &self,
        work: impl FnOnce(&mut Queue<K, S, L, M>, Instant) -> Effect<T>,
    ) -> T {
        self.under_lock(|state| work(&mut state.queue, self.clock.now()))
    }

    /// Wakes every call that waits, so that it looks at the queue again: for clocks that are moved
    /// by hand. O(n) in the calls that wait.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("work_queue/example.txt")]
    /// queue.wake_all();
    /// ```
    pub fn wake_all(&self) {
        self.wake(Wake::ALL);
    }

    /// Runs `work` under the lock, then wakes the calls that it names.
    ///
    /// Inlines only the check, because most operations wake no call.
    #[inline]
    pub(crate) fn under_lock<T>(
        &self,
        work: impl FnOnce(&mut State<K, S, L, M, W>) -> Effect<T>,
    ) -> T {
        let unwound = OnUnwind(|| self.wake_all());
        let Effect { value, wake } = self.lock.with(work);
        mem::forget(unwound);
        if wake != Wake::NONE {
            self.wake(wake);
        }
        value
    }

    /// Takes the wakers under a lock of its own, so that operations that wake no call stay small.
    /// A call that begins to wait in between is woken without need. One that ends in between has
    /// looked at the queue itself, and has passed on what it left.
    #[inline(never)]
    fn wake(&self, wake: Wake) {
        if wake == Wake::ONE {
            let first = self.lock.with(|state| state.waiters.take_first());
            first.into_iter().for_each(task::Waker::wake);
            return;
        }
        let taken = self.lock.with(|state| state.waiters.take(wake));
        taken.into_iter().for_each(task::Waker::wake);
    }
}

impl<K, S, L, M, W, Q, C> fmt::Debug for WorkQueue<Q, C>
where
    K: Eq + Hash,
    S: Storage,
    L: RateLimiter,
    M: Metrics,
    Q: Lock<State = State<K, S, L, M, W>>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lock
            .with(|state| f.debug_tuple("WorkQueue").field(&state).finish())
    }
}

/// Dropped only if a key, a limiter or metrics have panicked under the lock. The wake of the
/// operation is lost then, so every waiter is woken.
struct OnUnwind<F: Fn()>(F);

impl<F: Fn()> Drop for OnUnwind<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}
