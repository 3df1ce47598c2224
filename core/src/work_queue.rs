//! The queue behind a lock: everything but waiting, written once for every runtime.

use core::hash::Hash;

use crate::Instant;
use crate::limiter::RateLimiter;
use crate::lock::Lock;
use crate::metrics::Metrics;
use crate::outcome::{Completion, Effect, Wake};
use crate::queue::Queue;
use crate::slots::Storage;
use crate::time::Clock;
use crate::waker::Waker;

mod produce;
mod query;
mod shutdown;
mod work;

/// A [`Queue`] with its runtime's [`Lock`], [`Clock`] and [`Waker`].
///
/// Each method reads the clock where time matters, runs the state machine under the lock, unlocks,
/// and wakes whom the state machine names. What is left to a runtime is to wait: its `get` calls
/// [`poll_get`](Self::poll_get) until there is work, and sleeps in between.
///
/// # Panics
///
/// A panic in a key's `Hash`, `Eq`, `Clone` or `Drop` reaches the caller: see
/// [`Queue`](Queue#keys). The methods themselves do not panic.
///
/// # Examples
///
/// A queue for a bare loop, without threads. The examples of the methods use this one, with
/// [`default_item_based`](crate::default_item_based) for a limiter:
///
/// ```
/// use std::cell::RefCell;
/// use requeue_core::{Clock, Fixed, Instant, Lock, NoLimit, Queue, Waker, WorkQueue};
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
/// struct Restless;
/// impl Waker for Restless {
///     fn wake_one(&self) {}
///     fn wake_all(&self) {}
/// }
///
/// let queue: Queue<&str, Fixed<4>, NoLimit> = Queue::new(NoLimit);
/// let queue = WorkQueue::from_parts(Single(RefCell::new(queue)), Stopped, Restless);
///
/// queue.add("valve").unwrap();
/// let guard = queue.try_get().unwrap();
/// assert_eq!(*guard, "valve");
/// guard.done();
/// assert!(queue.is_empty());
/// ```
#[derive(Debug)]
pub struct WorkQueue<Q, C, W> {
    lock: Q,
    clock: C,
    waker: W,
}

impl<Q, C, W> WorkQueue<Q, C, W> {
    /// Puts a queue together, as in the example of the [type](Self). O(1).
    pub const fn from_parts(lock: Q, clock: C, waker: W) -> Self {
        Self { lock, clock, waker }
    }

    /// The lock, for the runtime that waits on it. O(1).
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("work_queue/example.txt")]
    /// // The state machine tells more than the methods here.
    /// let held = queue.lock().with(|queue| queue.held_len());
    /// assert_eq!(held, 0);
    /// ```
    pub const fn lock(&self) -> &Q {
        &self.lock
    }

    /// The clock, by which the deadlines of [`add_at`](Self::add_at) are reckoned. O(1).
    pub const fn clock(&self) -> &C {
        &self.clock
    }

    /// The waker. O(1).
    pub const fn waker(&self) -> &W {
        &self.waker
    }
}

impl<K, S, L, M, Q, C, W> WorkQueue<Q, C, W>
where
    K: Eq + Hash,
    S: Storage,
    L: RateLimiter,
    M: Metrics,
    Q: Lock<State = Queue<K, S, L, M>>,
    C: Clock,
    W: Waker,
{
    /// Runs `work` on the state machine, then wakes whom it names. For runtimes; `now` is the time
    /// only if [`Queue::needs_time`] says that it matters.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("work_queue/example.txt")]
    /// // Two looks at one moment, under one lock.
    /// let (ready, active) = queue.act(|queue, now| {
    ///     let active = queue.active_len();
    ///     queue.len(now).map(|ready| (ready, active))
    /// });
    /// assert_eq!((ready, active), (0, 0));
    /// ```
    #[inline]
    pub fn act<T>(&self, work: impl FnOnce(&mut Queue<K, S, L, M>, Instant) -> Effect<T>) -> T {
        self.run(|queue| {
            let now = if queue.needs_time() {
                self.clock.now()
            } else {
                Instant::EPOCH
            };
            work(queue, now)
        })
    }

    /// As [`act`](Self::act), for operations that complete a run: the clock is read also if
    /// [the completion](Completion::needs_time) needs it. [`complete`](Self::complete) is made of
    /// it.
    #[inline]
    pub fn act_for<T>(
        &self,
        completion: Completion,
        work: impl FnOnce(&mut Queue<K, S, L, M>, Instant) -> Effect<T>,
    ) -> T {
        if completion.needs_time() {
            self.act_now(work)
        } else {
            self.act(work)
        }
    }

    /// As [`act`](Self::act), for operations that need the time in any case.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("work_queue/example.txt")]
    /// use core::time::Duration;
    ///
    /// let minute = Duration::from_secs(60);
    /// let added = queue.act_now(|queue, now| queue.add_at("lease-3", now + minute, now));
    /// assert_eq!(added, Ok(Added::Delayed));
    /// ```
    #[inline]
    pub fn act_now<T>(&self, work: impl FnOnce(&mut Queue<K, S, L, M>, Instant) -> Effect<T>) -> T {
        self.run(|queue| work(queue, self.clock.now()))
    }

    #[inline]
    fn run<T>(&self, work: impl FnOnce(&mut Queue<K, S, L, M>) -> Effect<T>) -> T {
        let unwound = Unwound(&self.waker);
        let Effect { value, wake } = self.lock.with(work);
        core::mem::forget(unwound);
        // Most operations wake nobody: no call is made for that.
        if wake != Wake::None {
            self.waker.obey(wake);
        }
        value
    }
}

/// Dropped only if a key's code, a limiter or metrics have panicked under the lock: nobody has said
/// then whom to wake, and so everybody looks for himself.
struct Unwound<'w, W: Waker>(&'w W);

impl<W: Waker> Drop for Unwound<'_, W> {
    fn drop(&mut self) {
        self.0.wake_all();
    }
}
