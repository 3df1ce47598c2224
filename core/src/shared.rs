//! The queue behind a lock: every operation that does not wait, written once for every runtime.
//!
//! An operation reads the clock if time matters, runs a session under the lock, unlocks, wakes the
//! calls that the session names, and drops the caller's copy of a key. Nothing here knows how a
//! runtime sleeps.

use core::borrow::Borrow;
use core::fmt;
use core::hash::Hash;
use core::iter;
use core::mem;
use core::task;
use core::time::Duration;

use crate::Instant;
use crate::action::Action;
use crate::aging::Ages;
use crate::group::Grouped;
use crate::limiter::RateLimiter;
use crate::lists::grouped::{GroupLimits, GroupState};
use crate::metrics::Metrics;
use crate::options::AddOptions;
use crate::outcome::{
    Added, AddedMany, Drain, Drained, Entry, Finished, KeyState, Leftover, NotActive, Rejected,
    Scheduled, Wake,
};
use crate::policy::SetPolicy;
use crate::priority::Priorities;
use crate::queue::{Displacing, Queue, Session, Sweep, VISITS_MAX};
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
/// use requeue_core::binding::{Clock, FixedWaitList, Host, Lock, State};
/// use requeue_core::{Fixed, Instant, NoLimit, NoMetrics, Plain};
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
///     type Metrics = NoMetrics;
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
    /// How long a failed key waits.
    type Limiter: RateLimiter;
    /// Where the keys are kept.
    type Storage: Storage;
    /// What the queue reports its figures to.
    type Metrics: Metrics;
    /// The list of the calls that wait.
    type Waiters: WaitList;
    /// Where the time comes from.
    type Clock: Clock;
    /// What protects the state.
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
/// use requeue_core::binding::Lock;
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
    /// What the lock protects.
    type State;

    /// Runs `work` with exclusive access to the state.
    fn with<R>(&self, work: impl FnOnce(&mut Self::State) -> R) -> R;

    /// Reports that a call has to wait and all `places` of the list are taken. Called while the
    /// lock is not held. Does nothing by default: a runtime may log it.
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
/// let held = queue.lock().with(|state| state.queue().total());
/// assert_eq!(held, 0);
/// ```
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
            .field("held", &self.queue.total())
            .field("active", &self.queue.active_len())
            .field("delayed", &self.queue.delayed_len())
            .field("shutting_down", &self.queue.is_shutting_down())
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
/// use requeue_core::binding::{Clock, FixedWaitList, Host, Lock, Shared, State};
/// use requeue_core::{Fixed, Instant, NoLimit, NoMetrics, Plain, Queue};
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
///     type Metrics = NoMetrics;
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
/// guard.success().unwrap();
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
    /// let held = queue.lock().with(|state| state.queue().total());
    /// assert_eq!(held, 0);
    /// ```
    pub const fn lock(&self) -> &H::Lock {
        &self.lock
    }

    /// Returns the clock, in whose time [`add_at`](Self::add_at) takes its deadline. O(1).
    pub const fn clock(&self) -> &H::Clock {
        &self.clock
    }

    /// Returns the time by the queue's clock, in which its deadlines are. O(1), without the lock.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("shared/example.txt")]
    /// use core::time::Duration;
    ///
    /// let _ = queue.add_at("lease-3", queue.now() + Duration::from_secs(60));
    /// let due = queue.state("lease-3").unwrap().due.unwrap();
    /// assert_eq!(due.saturating_since(queue.now()), Duration::from_secs(60));
    /// ```
    pub fn now(&self) -> Instant {
        self.clock.now()
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
    /// let (ready, active) = queue.with(|session| (session.len(), session.active_len()));
    /// assert_eq!((ready, active), (0, 0));
    /// ```
    #[inline]
    pub fn with<T>(&self, work: impl FnOnce(&mut Access<'_, H>) -> T) -> T {
        self.timed(false, work)
    }

    /// As [`with`](Self::with), for operations that always need the time. Costs as `work`, and
    /// reads the clock once.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("shared/example.txt")]
    /// use core::time::Duration;
    ///
    /// let minute = Duration::from_secs(60);
    /// let added = queue.with_now(|session| session.add_after("lease-3", minute));
    /// assert_eq!(added, Ok(Added::Delayed));
    /// ```
    #[inline]
    pub fn with_now<T>(&self, work: impl FnOnce(&mut Access<'_, H>) -> T) -> T {
        self.timed(true, work)
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

    /// As [`with`](Self::with), and reads the clock in any case if `reads_clock`.
    #[inline]
    pub(crate) fn timed<T>(
        &self,
        reads_clock: bool,
        work: impl FnOnce(&mut Access<'_, H>) -> T,
    ) -> T {
        // The caller's copy of a key is dropped after the lock, and after the wake: a `Drop` that
        // panics loses no wake.
        let (value, _spare) = self.timed_with(reads_clock, |session, _| {
            let value = work(session);
            (value, session.take_spare())
        });
        value
    }

    /// Runs one session under the lock, with the list of the calls that wait. Sends its wake
    /// afterwards.
    #[inline]
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

/// Adding keys.
impl<H: Host> Shared<H> {
    /// Marks a key as having work to do. O(1). Waits for nothing except the lock.
    ///
    /// # Errors
    ///
    /// [`Rejected`] returns the key: the queue is shutting down, or the key is new and there is no
    /// room. Nothing has changed then.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("shared/example.txt")]
    /// assert_eq!(queue.add("node-7"), Ok(Added::Ready));
    /// assert_eq!(queue.add("node-7"), Ok(Added::Coalesced));
    /// queue.shut_down();
    /// assert_eq!(queue.add("node-7"), Err(Rejected::Closed("node-7")));
    /// ```
    #[doc(alias = "Add")]
    pub fn add(&self, key: H::Key) -> Result<Added, Rejected<H::Key>> {
        self.with(|session| session.add(key))
    }

    /// Adds a key after a delay. Of two delays the one that ends first counts. O(log n).
    ///
    /// As in client-go this changes nothing for a key that is ready or active until the delay is
    /// over, and an [`add`](Self::add) meanwhile does not end it. [`Duration::MAX`] means never.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("shared/example.txt")]
    /// use core::time::Duration;
    ///
    /// let minute = Duration::from_secs(60);
    /// assert_eq!(queue.add_after("lease-3", minute), Ok(Added::Delayed));
    /// assert_eq!(queue.add_after("lease-3", minute / 2), Ok(Added::Sooner));
    /// assert_eq!(queue.add("lease-3"), Ok(Added::Ready), "it runs now, and once more in 30 s");
    /// ```
    #[doc(alias = "AddAfter")]
    pub fn add_after(&self, key: H::Key, delay: Duration) -> Result<Added, Rejected<H::Key>> {
        self.with_now(|session| session.add_after(key, delay))
    }

    /// Adds a key at a point in time of this queue's clock, or now if that has passed. O(log n).
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("shared/example.txt")]
    /// use core::time::Duration;
    ///
    /// let full_hour = Instant::EPOCH + Duration::from_secs(3600);
    /// assert_eq!(queue.add_at("report", full_hour), Ok(Added::Delayed));
    /// assert_eq!(queue.state("report").unwrap().due, Some(full_hour));
    /// ```
    pub fn add_at(&self, key: H::Key, due: Instant) -> Result<Added, Rejected<H::Key>> {
        self.with_now(|session| session.add_at(key, due))
    }

    /// Counts a failure of a key, and adds the key when its limiter says so. O(log n).
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add). The limiter is not charged then.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("shared/example.txt")]
    /// let first = queue.add_rate_limited("node-7").unwrap().delay;
    /// let second = queue.add_rate_limited("node-7").unwrap().delay;
    /// assert_eq!((first.as_millis(), second.as_millis()), (1, 2));
    /// ```
    #[doc(alias = "AddRateLimited")]
    pub fn add_rate_limited(&self, key: H::Key) -> Result<Scheduled, Rejected<H::Key>> {
        self.with_now(|session| session.add_rate_limited(key))
    }

    /// Adds a key as the options say: [`Session::add_with`](crate::Session::add_with). O(log n).
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add), and if the queue has no such priority level.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("shared/example.txt")]
    /// let once = AddOptions { merge: Merge::Once, ..AddOptions::new() };
    /// let _ = queue.add_after("node-7", core::time::Duration::from_secs(60));
    /// queue.add_with("node-7", once).unwrap();
    /// assert_eq!(queue.state("node-7").unwrap().due, None, "it runs now, and only now");
    /// ```
    pub fn add_with(
        &self,
        key: H::Key,
        options: AddOptions,
    ) -> Result<Scheduled, Rejected<H::Key>> {
        self.timed(options.needs_time(), |session| {
            session.add_with(key, options)
        })
    }

    /// Adds a key once no such add of it has come for as long as `quiet`, or `max` after the first
    /// of them, if that is sooner: [`Session::add_debounced`](crate::Session::add_debounced). A
    /// [`Fixed`](crate::Fixed) queue needs [`WithPolicy`](crate::WithPolicy) for this. O(log n).
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::cell::{Cell, RefCell};
    /// # use requeue_core::binding::{Clock, FixedWaitList, Host, Lock, Shared, State};
    /// # use requeue_core::{Added, Fixed, Instant, NoLimit, NoMetrics, Queue, WithPolicy};
    /// # struct Single<T>(RefCell<T>);
    /// # impl<T> Lock for Single<T> {
    /// #     type State = T;
    /// #     fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
    /// #         work(&mut self.0.borrow_mut())
    /// #     }
    /// # }
    /// # struct Manual(Cell<Instant>);
    /// # impl Clock for Manual {
    /// #     fn now(&self) -> Instant {
    /// #         self.0.get()
    /// #     }
    /// # }
    /// # struct Files;
    /// # impl Host for Files {
    /// #     type Key = &'static str;
    /// #     type Priorities = WithPolicy;
    /// #     type Limiter = NoLimit;
    /// #     type Storage = Fixed<4>;
    /// #     type Metrics = NoMetrics;
    /// #     type Waiters = FixedWaitList<1>;
    /// #     type Clock = Manual;
    /// #     type Lock = Single<State<Self>>;
    /// # }
    /// # let state = State::new(Queue::new(NoLimit), FixedWaitList::new());
    /// # let clock = Manual(Cell::default());
    /// # let queue: Shared<Files> = Shared::new(Single(RefCell::new(state)), clock);
    /// use core::time::Duration;
    ///
    /// let (quiet, max) = (Duration::from_millis(100), Duration::from_secs(1));
    /// assert_eq!(queue.add_debounced("etc/hosts", quiet, max), Ok(Added::Delayed));
    /// // 50 ms later it changes again.
    /// # queue.clock().0.set(Instant::EPOCH + quiet / 2);
    /// assert_eq!(queue.add_debounced("etc/hosts", quiet, max), Ok(Added::Later));
    /// ```
    pub fn add_debounced(
        &self,
        key: H::Key,
        quiet: Duration,
        max: Duration,
    ) -> Result<Added, Rejected<H::Key>>
    where
        H::Storage: Storage<Policy<H::Priorities>: SetPolicy>,
    {
        self.with_now(|session| session.add_debounced(key, quiet, max))
    }

    /// As [`add_with`](Self::add_with), but if there is no room, the newest ready key of the lowest
    /// level makes way, and is returned. O(log n).
    ///
    /// Only a key of a lower level than [`AddOptions::priority`] makes way, together with its
    /// deadline. It can be [restored](Self::restore).
    ///
    /// # Errors
    ///
    /// As [`add_with`](Self::add_with). [`Rejected::Full`] if no key can make way: nothing changes.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("shared/example.txt")]
    /// // There is room, so no key makes way.
    /// let added = queue.add_displacing("node-7", AddOptions::new()).unwrap();
    /// assert_eq!(added.1, None);
    /// ```
    pub fn add_displacing(&self, key: H::Key, options: AddOptions) -> Displacing<H::Key>
    where
        H::Key: Clone,
    {
        self.timed(options.needs_time(), |session| {
            session.add_displacing(key, options)
        })
    }

    /// Adds many keys, up to [`KEYS_PER_LOCK`] under one lock. O(1) per key.
    ///
    /// Passes every key that is not taken to `rejected`. The iterator and `rejected` run while the
    /// queue is not locked. If one of them panics, the keys of the steps before stay added.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("shared/example.txt")]
    /// let nodes = ["node-1", "node-2", "node-3", "node-4", "node-5"];
    /// let mut refused = Vec::new();
    /// let many = queue.add_many(nodes, |rejected| refused.push(rejected.into_key()));
    /// assert_eq!(many.ready, 4);
    /// assert_eq!(refused, ["node-5"]);
    /// ```
    pub fn add_many(
        &self,
        keys: impl IntoIterator<Item = H::Key>,
        mut rejected: impl FnMut(Rejected<H::Key>),
    ) -> AddedMany {
        let mut keys = keys.into_iter();
        let mut all = AddedMany::default();
        loop {
            let step: Step<H::Key> = keys.by_ref().take(KEYS_PER_LOCK).collect();
            let is_last = !step.is_full();
            if step.is_empty() {
                return all;
            }
            let many = self.add_step(step, &mut rejected);
            all.ready += many.ready;
            all.dirty += many.dirty;
            all.delayed += many.delayed;
            all.coalesced += many.coalesced;
            all.rejected += many.rejected;
            if is_last {
                return all;
            }
        }
    }

    fn add_step(
        &self,
        step: Step<H::Key>,
        rejected: &mut impl FnMut(Rejected<H::Key>),
    ) -> AddedMany {
        let (mut refused, mut spares) = (Step::new(), Step::new());
        let many = self.with(|session| {
            let mut many = AddedMany::default();
            for key in step {
                // There is room for as many as a step has.
                let added = session.add(key).map_err(|key| drop(refused.push(key)));
                many.count(added.ok());
                let _ = session.take_spare().map(|key| spares.push(key));
            }
            many
        });
        refused.into_iter().for_each(rejected);
        many
    }

    /// Adds a key as another queue has handed it back: ready, or delayed by what was left of its
    /// delay, at its priority level, with its failures on record. O(log n).
    ///
    /// A key that the queue already holds is added once more, by the same rules as ever: of two
    /// deadlines the earlier counts, and of two priority levels the higher. Of two counts of
    /// failures the larger counts.
    ///
    /// # Errors
    ///
    /// As [`add_with`](Self::add_with), with the whole leftover: nothing has changed.
    ///
    /// # Examples
    ///
    /// A program saves what a shutdown hands back, and restores it in that order when it starts:
    ///
    /// ```
    #[doc = include_str!("shared/example.txt")]
    /// use core::time::Duration;
    ///
    /// let saved = [("node-8", 0, 0), ("node-7", 250, 3)];
    /// for (node, millis, failures) in saved {
    ///     let mut leftover = Leftover::new(node);
    ///     leftover.left = Duration::from_millis(millis);
    ///     leftover.failures = failures;
    ///     queue.restore(leftover).unwrap();
    /// }
    /// let guard = queue.try_get().unwrap();
    /// assert_eq!(*guard, "node-8");
    /// # guard.success().unwrap();
    /// assert_eq!((queue.delayed_len(), queue.failures("node-7")), (1, 3));
    /// ```
    pub fn restore(&self, leftover: Leftover<H::Key>) -> Result<Added, Rejected<Leftover<H::Key>>> {
        self.timed(!leftover.left.is_zero(), |session| {
            session.restore(leftover)
        })
    }

    /// Forgets the failures of a key, and returns how many there were. O(1).
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("shared/example.txt")]
    /// let _ = queue.add_rate_limited("node-7");
    /// assert_eq!(queue.failures("node-7"), 1);
    /// assert_eq!(queue.forget("node-7"), 1);
    /// assert_eq!(queue.failures("node-7"), 0);
    /// ```
    #[doc(alias = "Forget")]
    pub fn forget<B>(&self, key: &B) -> u32
    where
        H::Key: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        // No call waits for what this changes, so there is no wake to decide.
        self.lock
            .with(|state| state.queue.at(Instant::EPOCH).forget(key))
    }

    /// Makes room for `additional` more keys, so that adding them does not grow the queue. O(n)
    /// under the lock. See [`Queue::reserve`].
    ///
    /// # Panics
    ///
    /// If memory for so many keys cannot be addressed, as with any collection.
    #[cfg(feature = "alloc")]
    pub fn reserve(&self, additional: usize) {
        self.lock.with(|state| state.queue.reserve(additional));
    }
}

/// Ending runs.
impl<H: Host> Shared<H> {
    /// Ends a run and takes the next key under one lock, so that no wake is sent for that key.
    #[inline]
    pub(crate) fn finish_and_try_get(&self, ticket: Ticket, action: Action) -> Option<Work<H::Key>>
    where
        H::Key: Clone,
    {
        self.timed(action.needs_time(), |session| {
            // An error says that the run was ended by its key: nothing is left to do.
            let _ = session.finish(ticket, action);
            session.try_get()
        })
    }

    /// Ends a run by its ticket. O(log n) if the key runs again after a delay, else O(1). A guard
    /// does this by itself.
    ///
    /// # Errors
    ///
    /// [`NotActive`] if the run was ended otherwise: nothing changes.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("shared/example.txt")]
    /// let _ = queue.add("node-7");
    /// // The ticket travels further than the guard, which borrows the queue.
    /// let ticket = queue.try_get().unwrap().into_ticket().unwrap();
    /// let finished = queue.finish(ticket, Action::Success);
    /// assert_eq!(finished, Ok(Finished::Idle));
    /// ```
    #[doc(alias = "Done")]
    #[inline]
    pub fn finish(&self, ticket: Ticket, action: Action) -> Result<Finished, NotActive> {
        self.timed(action.needs_time(), |session| {
            session.finish(ticket, action)
        })
    }

    /// Ends the run of a key, as client-go's `Done`: the key's failures stay as they are. O(1).
    ///
    /// A worker that has the key's guard uses that. A guard whose run was ended by its key has no
    /// effect any more.
    ///
    /// # Errors
    ///
    /// [`NotActive`] if the key is not active: nothing changes.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("shared/example.txt")]
    /// let _ = queue.add("node-7");
    /// let guard = queue.try_get().unwrap();
    /// assert_eq!(queue.release_key("node-7"), Ok(()));
    /// assert_eq!(queue.release_key("node-7"), Err(NotActive));
    /// assert_eq!(guard.release(), Err(NotActive), "the guard has nothing left to do");
    /// ```
    #[doc(alias = "Done")]
    pub fn release_key<B>(&self, key: &B) -> Result<(), NotActive>
    where
        H::Key: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        self.with(|session| session.release_key(key))
    }

    /// Ends many runs, up to [`KEYS_PER_LOCK`] under one lock. Costs per run as
    /// [`finish`](Self::finish). The iterator runs while the queue is not locked.
    ///
    /// If a key's `Drop` panics, its own run is over. The tickets after it are lost with the
    /// iterator, and their keys stay active unless [`release_key`](Self::release_key) ends their
    /// runs. A `Batch` ends all of its runs.
    ///
    /// # Errors
    ///
    /// [`NotActive`] if any run was ended otherwise. The others end all the same.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("shared/example.txt")]
    /// queue.add_many(["node-7", "node-8"], |_| {});
    /// let mut tickets = Vec::new();
    /// while let Some(guard) = queue.try_get() {
    ///     tickets.extend(guard.into_ticket());
    /// }
    /// assert_eq!(queue.finish_many(tickets, Action::Success), Ok(()));
    /// assert!(!queue.contains("node-7"));
    /// ```
    pub fn finish_many(
        &self,
        tickets: impl IntoIterator<Item = Ticket>,
        action: Action,
    ) -> Result<(), NotActive> {
        let mut tickets = tickets.into_iter();
        let mut outcome = Ok(());
        loop {
            let step: Step<Ticket> = tickets.by_ref().take(KEYS_PER_LOCK).collect();
            let is_last = !step.is_full();
            if step.is_empty() {
                return outcome;
            }
            let finished = self.timed(action.needs_time(), |session| {
                session.finish_many(step, action)
            });
            outcome = outcome.and(finished);
            if is_last {
                return outcome;
            }
        }
    }

    /// Returns whether the key of a run was cancelled since the run began. O(1). A guard does this
    /// by itself. [`Queue::is_cancelled`](crate::Queue::is_cancelled) has an example.
    pub fn is_cancelled(&self, ticket: &Ticket) -> bool {
        self.lock.with(|state| state.queue.is_cancelled(ticket))
    }
}

/// Looking.
impl<H: Host> Shared<H> {
    /// Returns the number of ready keys: client-go's `Len`. Active and delayed keys do not count.
    /// O(1), and O(log n) for each due key that is not ready yet, a few of them under each lock.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("shared/example.txt")]
    /// queue.add_many(["node-7", "node-8"], |_| {});
    /// let guard = queue.try_get().unwrap();
    /// assert_eq!(queue.len(), 1, "an active key is not ready");
    /// assert!(queue.contains("node-7"), "but the queue has work for it");
    /// # guard.success().unwrap();
    /// ```
    #[doc(alias = "Len")]
    pub fn len(&self) -> usize {
        self.when_released(|session| session.len())
    }

    /// Returns whether no key is ready. Active and delayed keys do not count. Costs as
    /// [`len`](Self::len).
    pub fn is_empty(&self) -> bool {
        self.with(|session| session.is_empty())
    }

    /// Returns what the queue knows about a key, `None` if it does not hold the key. Costs as
    /// [`len`](Self::len).
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("shared/example.txt")]
    /// let _ = queue.add("node-7");
    /// let guard = queue.try_get().unwrap();
    /// let _ = queue.add("node-7");
    /// let state = queue.state("node-7").unwrap();
    /// assert!(state.active && state.dirty);
    /// # guard.success().unwrap();
    /// assert!(queue.state("node-8").is_none());
    /// ```
    pub fn state<B>(&self, key: &B) -> Option<KeyState>
    where
        H::Key: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        self.with(|session| session.state(key))
    }

    /// Returns whether a key is ready, active or delayed. Failures alone do not count. O(1).
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("shared/example.txt")]
    /// let _ = queue.add("node-7");
    /// assert!(queue.contains("node-7"));
    /// queue.try_get().unwrap().success().unwrap();
    /// assert!(!queue.contains("node-7"));
    /// ```
    pub fn contains<B>(&self, key: &B) -> bool
    where
        H::Key: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        self.lock.with(|state| state.queue.contains(key))
    }

    /// Returns how many failures of a key are on record. O(1). [`forget`](Self::forget) has an
    /// example.
    #[doc(alias = "NumRequeues")]
    pub fn failures<B>(&self, key: &B) -> u32
    where
        H::Key: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        self.lock.with(|state| state.queue.failures(key))
    }

    /// Returns the number of active keys, including dirty ones. O(1).
    pub fn active_len(&self) -> usize {
        self.lock.with(|state| state.queue.active_len())
    }

    /// Returns the number of keys that wait for a deadline, including those that are also ready or
    /// active. O(1).
    pub fn delayed_len(&self) -> usize {
        self.lock.with(|state| state.queue.delayed_len())
    }

    /// Returns the number of keys that the queue holds: ready, active, delayed, or held for their
    /// failures alone. O(1).
    ///
    /// # Examples
    ///
    /// The four counts of a queue:
    ///
    /// ```
    #[doc = include_str!("shared/example.txt")]
    /// queue.add_many(["node-7", "node-8"], |_| {});
    /// let _ = queue.add_after("lease-3", core::time::Duration::from_secs(60));
    /// let guard = queue.try_get().unwrap();
    /// assert_eq!((queue.len(), queue.active_len(), queue.delayed_len()), (1, 1, 1));
    /// assert_eq!(queue.total(), 3);
    /// # guard.success().unwrap();
    /// ```
    pub fn total(&self) -> usize {
        self.lock.with(|state| state.queue.total())
    }

    /// Returns how many keys fit, `None` if the queue grows without a limit. O(1).
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("shared/example.txt")]
    /// assert_eq!(queue.max_keys(), Some(4));
    /// ```
    pub fn max_keys(&self) -> Option<usize> {
        self.lock.with(|state| state.queue.max_keys())
    }

    /// Returns whether no key is ready or active. Delayed keys do not count until they are due.
    /// O(log n).
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("shared/example.txt")]
    /// let _ = queue.add("node-7");
    /// let guard = queue.try_get().unwrap();
    /// assert!(!queue.is_idle());
    /// guard.success().unwrap();
    /// assert!(queue.is_idle());
    /// ```
    pub fn is_idle(&self) -> bool {
        self.with(|session| session.is_idle())
    }

    /// Returns whether no key is ready, active or delayed, so that nothing runs again unless it is
    /// added. O(1).
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("shared/example.txt")]
    /// let _ = queue.add_after("lease-3", core::time::Duration::from_secs(60));
    /// assert!(queue.is_idle() && !queue.is_settled());
    /// ```
    pub fn is_settled(&self) -> bool {
        self.lock.with(|state| state.queue.is_settled())
    }

    /// Returns the keys that the queue holds, with what it knows about each: an iterator that looks
    /// at 32 slots (8 without the feature `alloc`) under each lock, O(1) each. `take` limits it,
    /// and what is not asked for is not looked at. Changes nothing.
    ///
    /// Keys come in no order. A key that the queue holds from the first step to the last comes
    /// exactly once; one that is added or removed meanwhile may or may not come. Each is shown as
    /// it is at its step, as [`state`](Self::state) shows it. Keys are cloned while the queue is
    /// locked.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("shared/example.txt")]
    /// queue.add_many(["node-7", "node-8"], |_| {});
    /// let _ = queue.add_rate_limited("node-9");
    ///
    /// let mut waiting = Vec::new();
    /// for entry in queue.snapshot().take(1_000).filter(|entry| !entry.state.ready) {
    ///     waiting.push((entry.key, entry.state.due.is_some(), entry.state.failures));
    /// }
    /// assert_eq!(waiting, [("node-9", true, 1)]);
    /// ```
    ///
    /// A snapshot that is saved now and then can be [restored](Self::restore) after a crash:
    ///
    /// ```
    #[doc = include_str!("shared/example.txt")]
    /// let _ = queue.add("node-7");
    /// let now = queue.now();
    /// let saved: Vec<_> = queue.snapshot().filter_map(|entry| entry.leftover(now)).collect();
    /// # queue.clear();
    /// // In the next process.
    /// for leftover in saved {
    ///     queue.restore(leftover).unwrap();
    /// }
    /// # assert_eq!(queue.len(), 1);
    /// ```
    pub fn snapshot(&self) -> impl Iterator<Item = Entry<H::Key>>
    where
        H::Key: Clone,
    {
        pages(|sweep, page| {
            // There is room for as many as a step looks at.
            let visit = |entry: Entry<&H::Key>| drop(page.push(entry.cloned()));
            self.with(|session| session.snapshot_some(sweep, visit))
        })
    }

    /// Reports how long the active keys have been running, as client-go does every 500 ms. O(1).
    /// [`Session::report_running`](crate::Session::report_running) has an example.
    pub fn report_running(&self) {
        self.with_now(|session| session.report_running());
    }

    /// Makes every due key ready, in steps that each hold the lock for a short time, and then does
    /// `work`.
    fn when_released<T>(&self, mut work: impl FnMut(&mut Access<'_, H>) -> T) -> T {
        // One step for some of the due keys, and one more.
        loop {
            let done = self.with(|session| (!session.release_some_due()).then(|| work(session)));
            if let Some(done) = done {
                return done;
            }
        }
    }
}

/// Control.
impl<H: Host> Shared<H> {
    /// Takes back the work of a key: it is no longer ready, dirty or delayed. O(log n).
    ///
    /// Returns what the key was, `None` if it was neither ready, active nor delayed: then nothing
    /// changes. A present run goes on, and can ask by
    /// [`Guard::is_cancelled`](crate::Guard::is_cancelled) or [`state`](Self::state). The failures
    /// of the key stay on record, until [`forget`](Self::forget). The other keys keep their order.
    ///
    /// After shutdown this works as before, and a drain ends if nothing is left.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("shared/example.txt")]
    /// let _ = queue.add("node-7");
    /// let _ = queue.add_after("node-7", core::time::Duration::from_secs(60));
    /// let was = queue.cancel("node-7").unwrap();
    /// assert!(was.ready && was.due.is_some());
    /// assert!(queue.try_get().is_none());
    /// assert_eq!(queue.cancel("node-7"), None);
    /// ```
    pub fn cancel<B>(&self, key: &B) -> Option<KeyState>
    where
        H::Key: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        self.with(|session| session.cancel(key))
    }

    /// Takes back the deadline of a key. Returns it, `None` if the key is not delayed. O(log n).
    ///
    /// A key that is also ready or active stays so. A deadline that has passed is an add that has
    /// happened: there is nothing left to take back but with [`cancel`](Self::cancel).
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("shared/example.txt")]
    /// let _ = queue.add_after("lease-3", core::time::Duration::from_secs(60));
    /// assert!(queue.cancel_delay("lease-3").is_some());
    /// assert!(!queue.contains("lease-3"));
    /// ```
    pub fn cancel_delay<B>(&self, key: &B) -> Option<Instant>
    where
        H::Key: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        self.with(|session| session.cancel_delay(key))
    }

    /// [Cancels](Self::cancel) the keys that `keep` returns `false` for. Returns how many.
    /// O(slots), and O(log n) for each key that is cancelled, a few of them under each lock.
    ///
    /// Asks about each key that is ready, active or delayed, in no order; the order of those that
    /// stay does not change. A key that is added meanwhile may or may not be asked about. `keep`
    /// runs while the queue is locked: it must not touch it.
    ///
    /// # Examples
    ///
    /// A site is closed, and its nodes need no more runs:
    ///
    /// ```
    #[doc = include_str!("shared/example.txt")]
    /// queue.add_many(["ulm/node-1", "bonn/node-1", "ulm/node-2"], |_| {});
    /// assert_eq!(queue.retain(|node| !node.starts_with("ulm/")), 2);
    /// assert_eq!(*queue.try_get().unwrap(), "bonn/node-1");
    /// ```
    pub fn retain(&self, mut keep: impl FnMut(&H::Key) -> bool) -> usize {
        let mut sweep = Sweep::new();
        while self.with(|session| session.retain_some(&mut sweep, &mut keep)) {}
        sweep.cancelled()
    }

    /// [Cancels](Self::cancel) all keys. Returns how many. Costs as [`retain`](Self::retain).
    ///
    /// Present runs go on, and failures stay on record. A key that is added meanwhile may stay.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("shared/example.txt")]
    /// queue.add_many(["node-7", "node-8"], |_| {});
    /// assert_eq!(queue.clear(), 2);
    /// assert!(queue.is_empty());
    /// ```
    pub fn clear(&self) -> usize {
        self.retain(|_| false)
    }

    /// Ends the delay of a key now, as if its deadline had passed. Returns whether it had one.
    /// O(log n).
    ///
    /// The key becomes ready, or dirty if it is active; if it is ready, it stays where it is. A key
    /// that is [held](crate::Policy) waits until its hold is over. Does nothing after shutdown,
    /// which stops the time.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("shared/example.txt")]
    /// let _ = queue.add_after("node-7", core::time::Duration::from_secs(60));
    /// assert!(queue.try_get().is_none());
    /// assert!(queue.expedite("node-7"));
    /// assert_eq!(*queue.try_get().unwrap(), "node-7");
    /// ```
    pub fn expedite<B>(&self, key: &B) -> bool
    where
        H::Key: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        self.with(|session| session.expedite(key))
    }

    /// Ends the delays of all keys now, in the order of their deadlines. O(log n) for each, a few
    /// of them under each lock. Does nothing after shutdown.
    ///
    /// If the queue [holds](crate::Policy) keys, the order is not specified.
    ///
    /// Ends as many delays as there are when it begins. Keys that others delay meanwhile count, if
    /// their deadlines are among the first.
    ///
    /// # Examples
    ///
    /// A cluster is reachable again, and every retry may come now:
    ///
    /// ```
    #[doc = include_str!("shared/example.txt")]
    /// use core::time::Duration;
    ///
    /// let _ = queue.add_after("node-8", Duration::from_secs(60));
    /// let _ = queue.add_after("node-7", Duration::from_secs(30));
    /// queue.expedite_all();
    /// assert_eq!(*queue.try_get().unwrap(), "node-7");
    /// ```
    pub fn expedite_all(&self) {
        // Each step ends a delay, lets a group run whose time has come, or is the last one.
        let mut left = self.delayed_len();
        let mut sweep = Sweep::new();
        while left > 0 {
            let more = self.with(|session| {
                let before = session.delayed_len();
                let more = session.expedite_some(&mut sweep);
                left = left.saturating_sub(before - session.delayed_len());
                more
            });
            if !more {
                break;
            }
        }
    }

    /// Hands out no more keys until [`resume`](Self::resume): calls that wait for a key wait,
    /// even if keys are ready, and time out as usual. O(1).
    ///
    /// Everything else goes on: keys can be added, cancelled and looked at, delays end, and present
    /// runs end as usual. Shutdown ends a pause, because a drain has to end, and after it this does
    /// nothing.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("shared/example.txt")]
    /// queue.pause();
    /// let _ = queue.add("node-7");
    /// assert!(queue.is_paused());
    /// assert!(queue.try_get().is_none());
    /// queue.resume();
    /// assert_eq!(*queue.try_get().unwrap(), "node-7");
    /// ```
    pub fn pause(&self) {
        self.with(|session| session.pause());
    }

    /// Hands keys out again after [`pause`](Self::pause), and wakes a call that waits if there is
    /// something for it. O(1).
    pub fn resume(&self) {
        self.with(|session| session.resume());
    }

    /// Returns whether the queue is [paused](Self::pause). O(1).
    pub fn is_paused(&self) -> bool {
        self.lock.with(|state| state.queue.is_paused())
    }

    /// Serves keys that have waited for longer than `after` before the younger keys of higher
    /// levels, from now on; with `None`, none of them. For queues with [`Aging`](crate::Aging).
    /// O(1).
    ///
    /// [`Aging`](crate::Aging) has an example.
    pub fn age_after(&self, after: impl Into<Option<Duration>>)
    where
        H::Priorities: Ages,
    {
        let after = after.into();
        self.with(|session| session.age_after(after));
    }
}

#[cfg(feature = "alloc")]
impl<H, B> Shared<H>
where
    H: Host<Storage = crate::storage::growable::Growable<B>>,
    B: core::hash::BuildHasher,
{
    /// Sets how many keys the queue holds at most, [`usize::MAX`] for any number, and wakes a call
    /// that waits for room if there is some now. O(1), and O(1) per failure record that makes way.
    ///
    /// A queue that holds more keys keeps them, and refuses new ones until there is room again:
    /// [`Queue::limit_keys`](crate::Session::limit_keys) says it in full.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("shared/example_growable.txt")]
    /// queue.limit_keys(1);
    /// let _ = queue.add("node-7");
    /// assert_eq!(queue.add("node-8"), Err(Rejected::Full("node-8")));
    /// queue.limit_keys(usize::MAX);
    /// let _ = queue.add("node-8");
    /// ```
    pub fn limit_keys(&self, keys: usize) {
        self.with(|session| session.limit_keys(keys));
    }
}

/// Groups.
impl<H: Host> Shared<H> {
    /// Sets the limits of the groups that have none of their own, present and future, and wakes a
    /// call that waits if there is something for it now. O(levels) for at most eight groups. The
    /// next get looks at the groups in front that the new limits block, each once.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("shared/example_groups.txt")]
    /// queue.limit_groups(GroupLimits::new().max_active(1));
    /// queue.add_many([("a", 1), ("a", 2), ("b", 1)], |_| {});
    /// let (first, second) = (queue.try_get().unwrap(), queue.try_get().unwrap());
    /// assert_eq!((*first, *second), (("a", 1), ("b", 1)));
    /// assert!(queue.try_get().is_none());
    /// ```
    pub fn limit_groups(&self, limits: GroupLimits)
    where
        H::Priorities: Grouped,
    {
        self.with(|session| session.limit_groups(limits));
    }

    /// Sets the limits of a group by name, which then stays although it may have no keys. With
    /// `None` it has those of all groups again. O(levels).
    ///
    /// # Errors
    ///
    /// The name, if there is no room for one more group. Nothing changes then.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("shared/example_groups.txt")]
    /// // At most ten keys of it a second, and up to three at once after a pause.
    /// queue.limit_group("a", GroupLimits::new().rate(10.0, 3)).unwrap();
    /// assert_eq!(queue.limit_group("a", None), Ok(()));
    /// ```
    pub fn limit_group<G>(&self, name: G, limits: impl Into<Option<GroupLimits>>) -> Result<(), G>
    where
        H::Priorities: Grouped<Group = G>,
    {
        let limits = limits.into();
        self.with(|session| session.limit_group(name, limits))
    }

    /// Hands out no more keys of a group until [`resume_group`](Self::resume_group). Everything
    /// else goes on, and shutdown ends the pause. O(levels).
    ///
    /// # Errors
    ///
    /// The name, if there is no room for one more group. Nothing changes then.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("shared/example_groups.txt")]
    /// let _ = queue.add(("a", 1));
    /// queue.pause_group("a").unwrap();
    /// assert!(queue.try_get().is_none());
    /// queue.resume_group("a");
    /// assert_eq!(*queue.try_get().unwrap(), ("a", 1));
    /// ```
    pub fn pause_group<G>(&self, name: G) -> Result<(), G>
    where
        H::Priorities: Grouped<Group = G>,
    {
        self.with(|session| session.pause_group(name))
    }

    /// Hands out keys of a group again, at the end of the turn, and wakes a call that waits if
    /// there is something for it. O(levels).
    /// [`pause_group`](Self::pause_group) has an example.
    pub fn resume_group<B, G>(&self, name: &B)
    where
        H::Priorities: Grouped<Group = G>,
        G: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        self.with(|session| session.resume_group(name));
    }

    /// Returns the figures of a group. `None` if it has no keys, no limits of its own and no pause;
    /// a group that has just lost the last of them may remain, with figures of zero, until its
    /// place is needed. A due key counts as ready, and a group with a new token as not blocked,
    /// once an operation has noticed. O(1) expected.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("shared/example_groups.txt")]
    /// let _ = queue.add(("a", 1));
    /// queue.pause_group("a").unwrap();
    /// let a = queue.group("a").unwrap();
    /// assert!(a.ready == 1 && a.paused);
    /// ```
    pub fn group<B, G>(&self, name: &B) -> Option<GroupState>
    where
        H::Priorities: Grouped<Group = G>,
        G: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        self.lock.with(|state| state.queue.group(name))
    }

    /// Returns the groups, with the figures of each: an iterator that looks at 32 of them (8
    /// without the feature `alloc`) under each lock, O(1) each. Changes nothing.
    ///
    /// Groups come in no order. One that is there from the first step to the last comes exactly
    /// once. Names are cloned while the queue is locked.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("shared/example_groups.txt")]
    /// queue.add_many([("a", 1), ("a", 2), ("b", 1)], |_| {});
    /// let longest = queue.groups().max_by_key(|(_, group)| group.ready);
    /// assert_eq!(longest.unwrap().0, "a");
    /// ```
    pub fn groups<G>(&self) -> impl Iterator<Item = (G, GroupState)>
    where
        H::Priorities: Grouped<Group = G>,
        G: Clone,
    {
        pages(|sweep, page| {
            // There is room for as many as a step looks at.
            let visit = |name: &G, group| drop(page.push((name.clone(), group)));
            self.lock
                .with(|state| state.queue.groups_some(sweep, visit))
        })
    }
}

/// Shutting down.
impl<H: Host> Shared<H> {
    /// Shuts the queue down: it takes no more keys, and getters find it closed once no key is
    /// ready. Ends every wait for a drain. O(1), and O(n) in the calls that wait, which are woken.
    ///
    /// An active key that is dirty is ready again after its run, and getters may have left by then.
    /// A drain waits for such keys, and so do getters meanwhile:
    /// [`Session::begin_drain`](crate::Session::begin_drain) says the rule.
    ///
    /// Delayed keys stay until they are [taken](Self::take_delayed) or the queue is dropped.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("shared/example.txt")]
    /// let _ = queue.add("node-7");
    /// queue.shut_down();
    /// assert!(queue.is_shutting_down());
    /// let guard = queue.try_get().unwrap();
    /// assert_eq!(*guard, "node-7", "what was ready is handed out");
    /// # guard.success().unwrap();
    /// ```
    #[doc(alias = "ShutDown")]
    pub fn shut_down(&self) {
        self.with_now(|session| session.shut_down());
    }

    /// As [`shut_down`](Self::shut_down), but does not end the waits for a drain: the first step of
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
    /// queue.try_get().unwrap().success().unwrap();
    /// assert_eq!(queue.drain_status(&drain), Drained::Complete);
    /// ```
    #[doc(alias = "ShutDownWithDrain")]
    pub fn begin_drain(&self) -> Drain {
        self.with_now(|session| session.begin_drain())
    }

    /// Returns the status of a drain. O(1). [`begin_drain`](Self::begin_drain) has an example.
    pub fn drain_status(&self, drain: &Drain) -> Drained {
        self.lock.with(|state| state.queue.drain_status(drain))
    }

    /// Takes out every key that is ready or delayed, after shutdown: ready keys first, then delayed
    /// ones in the order of their deadlines. Active keys are not touched. Empty before shutdown.
    /// O(log n) per key, each under a lock of its own.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("shared/example.txt")]
    /// use core::time::Duration;
    ///
    /// let _ = queue.add_after("lease-3", Duration::from_secs(60));
    /// let _ = queue.add("node-7");
    /// queue.shut_down();
    /// assert!(queue.leftovers().map(|left| left.key).eq(["node-7", "lease-3"]));
    /// ```
    pub fn leftovers(&self) -> impl Iterator<Item = Leftover<H::Key>>
    where
        H::Key: Clone,
    {
        let ready = iter::from_fn(|| self.take_ready());
        let delayed = iter::from_fn(|| self.take_delayed());
        ready.chain(delayed)
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

    /// Takes out the delayed key with the earliest deadline, after shutdown. `None` before, and if
    /// no key is delayed. O(log n).
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("shared/example.txt")]
    /// use core::time::Duration;
    ///
    /// let _ = queue.add_after("lease-3", Duration::from_secs(60));
    /// assert_eq!(queue.take_delayed(), None, "not before shutdown");
    /// queue.shut_down();
    /// let leftover = queue.take_delayed().unwrap();
    /// assert_eq!((leftover.key, leftover.left.as_secs()), ("lease-3", 60));
    /// ```
    pub fn take_delayed(&self) -> Option<Leftover<H::Key>>
    where
        H::Key: Clone,
    {
        if !self.is_shutting_down() {
            return None;
        }
        self.when_released(|session| {
            // Read under the lock: what others do before this step happens before this time.
            session.move_to(self.clock.now());
            session.take_delayed()
        })
    }

    /// Returns whether the queue has been shut down. O(1). [`shut_down`](Self::shut_down) has an
    /// example.
    #[doc(alias = "ShuttingDown")]
    pub fn is_shutting_down(&self) -> bool {
        self.lock.with(|state| state.queue.is_shutting_down())
    }

    /// Returns when the queue was first shut down, `None` if it was not. O(1).
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("shared/example.txt")]
    /// assert_eq!(queue.closed_at(), None);
    /// queue.shut_down();
    /// assert_eq!(queue.closed_at(), Some(Instant::EPOCH));
    /// ```
    pub fn closed_at(&self) -> Option<Instant> {
        self.lock.with(|state| state.queue.closed_at())
    }
}

impl<H: Host> fmt::Debug for Shared<H> {
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

/// What each step of a sweep has seen, outside of the lock. `step` returns whether there are more.
fn pages<T>(mut step: impl FnMut(&mut Sweep, &mut Page<T>) -> bool) -> impl Iterator<Item = T> {
    let mut sweep = Some(Sweep::new());
    let page = move || {
        let mut page = Page::new();
        if !step(sweep.as_mut()?, &mut page) {
            sweep = None;
        }
        Some(page)
    };
    iter::from_fn(page).flatten()
}

type Page<T> = heapless::Vec<T, VISITS_MAX>;

/// How many keys of a batch are added, taken or ended under one lock, so that no call waits for a
/// whole batch of another: 64, or 8 without the feature `alloc`.
///
/// A batch of at most this many keys is one step. A larger one is several: other calls may come in
/// between, and each step sends its own wake. While keys are added they need room on the stack,
/// about three times the size of a key for each of a step.
///
/// # Examples
///
/// ```
/// use requeue_core::binding::KEYS_PER_LOCK;
///
/// let locks = 1_000_usize.div_ceil(KEYS_PER_LOCK);
/// assert!(locks > 1, "a batch of 1,000 keys is added in {locks} steps");
/// ```
pub const KEYS_PER_LOCK: usize = if cfg!(feature = "alloc") { 64 } else { 8 };

type Step<T> = heapless::Vec<T, KEYS_PER_LOCK>;
