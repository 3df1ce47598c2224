//! The queue behind a lock: every operation that does not wait, written once for every runtime.
//!
//! An operation reads the clock if time matters, runs a session under the lock, unlocks, wakes the
//! calls that the session names, and drops the caller's copy of a key. Nothing here knows how a
//! runtime sleeps.

use core::fmt;
use core::hash::Hash;
use core::mem;
use core::task;

use crate::Instant;
use crate::action::Action;
use crate::limiter::RateLimiter;
use crate::metrics::Metrics;
use crate::outcome::{Drain, Drained, Finished, Leftover, Wake};
use crate::priority::Priorities;
use crate::queue::{Queue, Session};
use crate::queue_face;
use crate::storage::Storage;
use crate::time::Clock;
use crate::wait_list::WaitList;
use crate::work::{Ticket, Work};

/// The types that a queue of one runtime is made of. A runtime implements it for a marker type.
///
/// # Examples
///
/// ```
/// use std::cell::RefCell;
/// use requeue::binding::{Clock, FixedWaitList, Host, Lock, State};
/// use requeue::limiter::NoLimit;
/// use requeue::priority::Plain;
/// use requeue::storage::Fixed;
/// use requeue::Instant;
/// # struct Single<T>(RefCell<T>);
/// # impl<T> Lock for Single<T> {
/// #     type State = T;
/// #     fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R { work(&mut self.0.borrow_mut()) }
/// # }
/// # struct Stopped;
/// # impl Clock for Stopped { fn now(&self) -> Instant { Instant::EPOCH } }
///
/// struct Sensors;
///
/// impl Host for Sensors {
///     type Key = u16;
///     type Priorities = Plain;
///     type Limiter = NoLimit;
///     type Storage = Fixed<16>;
///     type Metrics = ();
///     type Waiters = FixedWaitList<1>;
///     type Clock = Stopped;
///     type Lock = Single<State<Self>>;
/// }
/// ```
pub trait Host: Sized {
    /// A key.
    type Key: Eq + Hash;
    /// The order of the keys: levels, aging, groups.
    type Priorities: Priorities;
    /// The limiter, which delays failed keys.
    type Limiter: RateLimiter;
    /// The storage of the keys.
    type Storage: Storage;
    /// The metrics.
    type Metrics: Metrics;
    /// The list of waiting calls.
    type Waiters: WaitList;
    /// The source of time.
    type Clock: Clock;
    /// The lock of the state.
    type Lock: Lock<State = State<Self>>;
}

/// Gives exclusive access to a state.
///
/// # Contract
///
/// - `with` MUST run `work` exactly once, and never two at the same time.
/// - `work` is short and bounded, and never calls back into the same lock, so the lock need not be
///   re-entrant.
/// - If `work` panics, the state MUST stay usable, so the lock MUST NOT be poisoned: the queue is
///   valid whenever foreign code runs.
///
/// # Examples
///
/// ```
/// use std::cell::RefCell;
/// use requeue::binding::Lock;
///
/// /// For a program that has one thread and no interrupts.
/// struct Single<T>(RefCell<T>);
///
/// impl<T> Lock for Single<T> {
///     type State = T;
///
///     fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
///         work(&mut self.0.borrow_mut())
///     }
/// }
///
/// let lock = Single(RefCell::new(1));
/// lock.with(|state| *state += 1);
/// assert_eq!(lock.with(|state| *state), 2);
/// ```
pub trait Lock {
    /// The state under the lock.
    type State;

    /// Runs `work` with exclusive access to the state.
    fn with<R>(&self, work: impl FnOnce(&mut Self::State) -> R) -> R;

    /// Reports that a call cannot wait, because all `places` of the list are taken. Called outside
    /// the lock. By default this does nothing. A runtime may log it.
    #[inline]
    fn no_place(&self, places: usize) {
        let _ = places;
    }
}

/// A session of a host's queue.
pub type Access<'s, H> = Session<
    's,
    <H as Host>::Key,
    <H as Host>::Priorities,
    <H as Host>::Limiter,
    <H as Host>::Storage,
    <H as Host>::Metrics,
>;

/// The state machine of a host's queue.
pub type Machine<H> = Queue<
    <H as Host>::Key,
    <H as Host>::Priorities,
    <H as Host>::Limiter,
    <H as Host>::Storage,
    <H as Host>::Metrics,
>;

/// What the lock of a [`Shared`] protects: the state machine, and the calls that wait for it.
///
/// # Examples
///
/// ```
#[doc = include_str!("shared/example.txt")]
/// let total = queue.lock().with(|state| state.queue().stats().total);
/// assert_eq!(total, 0);
/// ```
// The queue first, so that its first fields share the cache line of a lock before it.
#[cfg_attr(feature = "alloc", repr(C))]
pub struct State<H: Host> {
    pub(crate) queue: Machine<H>,
    pub(crate) waiters: H::Waiters,
}

impl<H: Host> State<H> {
    /// Creates a state from a queue and an empty list. O(1).
    pub const fn new(queue: Machine<H>, waiters: H::Waiters) -> Self {
        Self { queue, waiters }
    }

    /// Returns the state machine, to be read. [`Shared::with`] changes it, and sends the wakes that
    /// a change asks for. O(1).
    pub const fn queue(&self) -> &Machine<H> {
        &self.queue
    }
}

impl<H: Host> fmt::Debug for State<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State")
            .field("total", &self.queue.total())
            .field("active", &self.queue.active_len())
            .field("delayed", &self.queue.delayed_len())
            .field("is_shutting_down", &self.queue.is_shutting_down())
            .finish()
    }
}

/// A runtime's queue: what it is made of, and the queue of core in it.
///
/// # Examples
///
/// A function that takes a queue of any runtime:
///
/// ```
/// use requeue::binding::{AsShared, Host};
///
/// fn add_all<Q: AsShared>(queue: &Q, keys: Vec<<Q::Host as Host>::Key>) {
///     for key in keys {
///         let _ = queue.as_shared().add(key);
///     }
/// }
/// ```
pub trait AsShared {
    /// The types that the queue is made of.
    type Host: Host;

    /// Returns the queue of core. O(1).
    fn as_shared(&self) -> &Shared<Self::Host>;
}

impl<H: Host> AsShared for Shared<H> {
    type Host = H;

    #[inline]
    fn as_shared(&self) -> &Self {
        self
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
/// [`default_item_based`](crate::limiter::default_item_based) as its limiter:
///
/// ```
/// use std::cell::RefCell;
/// use requeue::binding::{Clock, FixedWaitList, Host, Lock, Shared, State};
/// use requeue::limiter::NoLimit;
/// use requeue::priority::Plain;
/// use requeue::storage::Fixed;
/// use requeue::{Instant, Queue};
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
/// struct Valves;
/// impl Host for Valves {
///     type Key = &'static str;
///     type Priorities = Plain;
///     type Limiter = NoLimit;
///     type Storage = Fixed<4>;
///     type Metrics = ();
///     type Waiters = FixedWaitList<1>;
///     type Clock = Stopped;
///     type Lock = Single<State<Self>>;
/// }
///
/// let state = State::new(Queue::new(NoLimit), FixedWaitList::new());
/// let queue: Shared<Valves> = Shared::new(Single(RefCell::new(state)), Stopped);
///
/// let _ = queue.add("valve");
/// let guard = queue.try_get().unwrap();
/// assert_eq!(*guard, "valve");
/// guard.success();
/// assert!(queue.is_empty());
/// ```
pub struct Shared<H: Host> {
    lock: H::Lock,
    clock: H::Clock,
}

impl<H: Host> Shared<H> {
    /// Creates a queue from a lock around its [`State`] and a clock, as in the example of the
    /// [type](Self). O(1).
    pub const fn new(lock: H::Lock, clock: H::Clock) -> Self {
        Self { lock, clock }
    }

    /// Returns the lock. O(1).
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("shared/example.txt")]
    /// let total = queue.lock().with(|state| state.queue().stats().total);
    /// assert_eq!(total, 0);
    /// ```
    pub const fn lock(&self) -> &H::Lock {
        &self.lock
    }

    /// Returns the clock, in whose time [`add_at`](Self::add_at) takes its deadline. O(1).
    pub const fn clock(&self) -> &H::Clock {
        &self.clock
    }

    /// Runs `work` in one session under the lock, then wakes the calls that the session names. For
    /// runtimes. Costs as `work`.
    ///
    /// The session knows the time only if [`Queue::needs_time`] returns true, else
    /// [`Instant::EPOCH`].
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("shared/example.txt")]
    /// // Two figures of the same moment, under one lock.
    /// let (ready, active) = queue.with(|session| (session.len(), session.stats().active));
    /// assert_eq!((ready, active), (0, 0));
    /// ```
    #[inline]
    pub fn with<T>(&self, work: impl FnOnce(&mut Access<'_, H>) -> T) -> T {
        self.timed(false, work)
    }

    /// As [`with`](Self::with), and reads the clock in any case if `reads_clock`: for operations
    /// that always need the time. Costs as `work`, and reads the clock at most once.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("shared/example.txt")]
    /// use core::time::Duration;
    ///
    /// let minute = Duration::from_secs(60);
    /// let added = queue.timed(true, |session| session.add_after("lease-3", minute));
    /// assert_eq!(added, Ok(Added::Delayed));
    /// ```
    #[inline]
    pub fn timed<T>(&self, reads_clock: bool, work: impl FnOnce(&mut Access<'_, H>) -> T) -> T {
        // The caller's duplicate of a key is dropped after the lock and after the wake, so that a
        // `Drop` that panics loses no wake.
        let (value, _spare) = self.timed_with(reads_clock, |session, _| {
            let value = work(session);
            (value, session.take_spare())
        });
        value
    }

    /// Reads the state machine under the lock. Costs as `work`, and reads no clock.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("shared/example.txt")]
    /// let has_work = queue.look(|queue| queue.contains("node-7"));
    /// assert!(!has_work);
    /// ```
    #[inline]
    pub fn look<T>(&self, work: impl FnOnce(&Machine<H>) -> T) -> T {
        self.lock.with(|state| work(&state.queue))
    }

    /// Wakes every call that waits, so that it looks at the queue again: for clocks that are moved
    /// by hand. O(n) in the calls that wait.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("shared/example.txt")]
    /// queue.wake_all();
    /// ```
    pub fn wake_all(&self) {
        self.wake(Wake::ALL);
    }

    /// Runs one session under the lock, with the list of waiting calls. Sends its wake afterwards.
    // With an allocator this is inlined, so that an operation is one function. On boards a copy at
    // each call may cost flash.
    #[cfg_attr(feature = "alloc", inline(always))]
    #[cfg_attr(not(feature = "alloc"), inline)]
    pub(crate) fn timed_with<T>(
        &self,
        reads_clock: bool,
        work: impl FnOnce(&mut Access<'_, H>, &mut H::Waiters) -> T,
    ) -> T {
        let unwound = OnUnwind(|| self.wake_all());
        let (value, wake) = self.lock.with(|State { queue, waiters }| {
            let now = if reads_clock || queue.needs_time() {
                self.clock.now()
            } else {
                Instant::EPOCH
            };
            let mut session = queue.at(now);
            let value = work(&mut session, waiters);
            (value, session.close())
        });
        mem::forget(unwound);
        if wake != Wake::NONE {
            self.wake(wake);
        }
        value
    }

    /// Takes the wakers under a second lock, so that operations that wake no call stay small. A
    /// call that begins to wait in between is woken needlessly. A call that ends in between has
    /// looked at the queue itself, and has passed its wake on.
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

/// For runtimes: runs by their tickets, drains, and leftovers.
impl<H: Host> Shared<H> {
    #[inline]
    pub(crate) fn end_and_take(&self, ticket: Ticket, action: Action) -> Option<Work<H::Key>>
    where
        H::Key: Clone,
    {
        self.timed(action.needs_time(), |session| {
            session.finish(ticket, action);
            session.try_get()
        })
    }

    /// Ends a run by its ticket. O(log n) if the key runs again after a delay, else O(1). A guard
    /// does this by itself.
    ///
    /// Returns [`Finished::Stale`] if the run had ended before.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("shared/example.txt")]
    /// let _ = queue.add("node-7");
    /// // The ticket travels further than the guard, which borrows the queue.
    /// let ticket = queue.try_get().unwrap().into_ticket().unwrap();
    /// let finished = queue.finish(ticket, Action::Success);
    /// assert_eq!(finished, Finished::Idle);
    /// ```
    #[doc(alias = "Done")]
    #[cfg_attr(feature = "alloc", inline(never))]
    #[cfg_attr(not(feature = "alloc"), inline)]
    pub fn finish(&self, ticket: Ticket, action: Action) -> Finished {
        self.timed(action.needs_time(), |session| {
            session.finish(ticket, action)
        })
    }

    /// Returns whether the key of a run was cancelled since the run began. O(1). A guard does this
    /// by itself. [`Queue::is_cancelled`](crate::Queue::is_cancelled) has an example.
    pub fn is_cancelled(&self, ticket: &Ticket) -> bool {
        self.lock.with(|state| state.queue.is_cancelled(ticket))
    }

    /// As [`shut_down`](Self::shut_down), but does not end the waits for a drain: the begin of
    /// a runtime's `drain`, which then waits. O(1), and O(n) in the calls that wait, which are
    /// woken.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("shared/example.txt")]
    /// let _ = queue.add("node-7");
    /// let drain = queue.begin_drain();
    /// assert_eq!(queue.drain_status(&drain), Drained::Pending);
    /// queue.try_get().unwrap().success();
    /// assert_eq!(queue.drain_status(&drain), Drained::Complete);
    /// ```
    #[doc(alias = "ShutDownWithDrain")]
    pub fn begin_drain(&self) -> Drain {
        self.timed(true, |session| session.begin_drain())
    }

    /// Returns the status of a drain. O(1). [`begin_drain`](Self::begin_drain) has an example.
    pub fn drain_status(&self, drain: &Drain) -> Drained {
        self.lock.with(|state| state.queue.drain_status(drain))
    }

    /// Takes out the first ready key before a worker gets it, after shutdown. `None` before, and if
    /// no key is ready. O(log n).
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("shared/example.txt")]
    /// queue.add_many(["node-7", "node-8"], |_| {});
    /// queue.shut_down();
    /// assert_eq!(queue.take_ready().unwrap().key, "node-7");
    /// assert_eq!(queue.len(), 1);
    /// ```
    pub fn take_ready(&self) -> Option<Leftover<H::Key>>
    where
        H::Key: Clone,
    {
        self.with(|session| session.take_ready())
    }
}

/// Writes some of the methods of every queue.
macro_rules! face {
    ($($part:ident)+) => {$(
        queue_face! {
            $part: "requeue_core", include_str!("shared/example.txt"),
            include_str!("shared/example_groups.txt"), H::Key, H::Priorities, H::Storage
        }
    )+};
}

/// The methods of every queue that do not wait.
impl<H: Host> Shared<H> {
    face! { adding adding_each looking control limits closing }
}

impl<H: Host> fmt::Debug for Shared<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lock
            .with(|state| f.debug_tuple("WorkQueue").field(&state).finish())
    }
}

/// Dropped only if a key, a limiter or metrics have panicked under the lock. The operation's wake
/// is then lost, so every waiter is woken.
struct OnUnwind<F: Fn()>(F);

impl<F: Fn()> Drop for OnUnwind<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}
