//! Conditions for which a ready or due key still waits: a hold after a run or a failure, a missing
//! token, a series of adds. Owns the settings, and the data of each key for them; the state machine
//! asks. Never touches a key's phase, its deadline or its failures.

use core::fmt::Debug;
use core::time::Duration;

use crate::Instant;
use crate::id::SlotId;
#[cfg(doc)]
use crate::limiter::TokenBucket;
use crate::rate::{Rate, RateLimit};
#[cfg(feature = "alloc")]
use crate::segments::Segments;
#[cfg(feature = "alloc")]
use alloc::boxed::Box;

/// Further conditions for a run, besides delays: a pause after each run
/// ([`cool_down`](Self::cool_down)), the end of a backoff ([`hold_failures`](Self::hold_failures)),
/// a token for each run ([`run_rate`](Self::run_rate)).
///
/// A queue that grows takes a policy at run time: its builder has the three methods, and
/// [`set_policy`](crate::Session::set_policy) sets it later. Its type stays the same. A
/// [`Fixed`](crate::storage::Fixed) queue has
/// [`WithPolicy`](crate::priority::WithPolicy) in its type, and
/// [`Queue::with_policy`](crate::Queue::with_policy) in a `static`.
///
/// # Holds
///
/// In client-go an add starts a run even during a backoff. A reconciler that triggers adds of its
/// own key then fails in a tight loop. A hold prevents that. No run of a held key starts before the
/// hold is over:
///
/// | what happens to a held key | what becomes of it |
/// |---|---|
/// | it is added, now or for a time before the hold is over | delayed until the hold is over |
/// | it is added again | the adds coalesce |
/// | it is added for a time after that | delayed until that time |
/// | its run ends, and it was added meanwhile | delayed until the hold is over |
/// | `add_rate_limited` while it is ready | delayed until the hold is over |
/// | [`expedite`](crate::Session::expedite) | delayed until the hold is over |
/// | [`forget`](crate::Session::forget), `GiveUp` | failures and holds are forgotten |
/// | a success | failures and holds are forgotten, and then a cool-down begins |
/// | shutdown while it is delayed | a leftover, with the time that is left of the hold |
///
/// To run a held key now, call `forget`, then `add`. If a cool-down and a failure both hold a key,
/// the later end counts. A hold of [`Duration::MAX`] lasts until the key is forgotten. During a run
/// its key is not held. Adds, delays and `expedite` act at once, and obey the hold after the run.
///
/// # Room
///
/// An idle key that is held takes a slot, and counts as a failure record. If a new key needs the
/// slot, or [`limit_failure_records`](crate::Queue::limit_failure_records) allows no more, the
/// oldest record is discarded, and its hold ends early. Size the queue for the keys that may cool
/// down at the same time. Runs that end drop the records whose holds are over, two at most each;
/// the order of the other records may change by that.
///
/// # Cost
///
/// O(log n) for a hold that moves a deadline, and O(1) per run for a run rate. With either, every
/// operation reads the clock. A queue that grows keeps 16 bytes per key beside its slots, from the
/// first hold or the first debounced add on; [`WithPolicy`](crate::priority::WithPolicy)
/// keeps as much in each slot.
///
/// # Examples
///
/// A reconciler writes to the object that it watches, so that its own key is added in each run:
///
/// ```
/// use core::time::Duration;
/// use requeue::limiter::default_item_based;
/// use requeue::priority::WithPolicy;
/// use requeue::storage::Fixed;
/// use requeue::{Action, Added, Instant, Policy, Queue};
///
/// let mut queue: Queue<&str, WithPolicy, _, Fixed<4>> =
///     Queue::new(default_item_based()).with_policy(Policy::new().hold_failures());
/// let now = Instant::EPOCH;
///
/// assert_eq!(queue.at(now).add("node-7"), Ok(Added::Ready));
/// let work = queue.at(now).try_get().unwrap();
/// assert_eq!(queue.at(now).add("node-7"), Ok(Added::Dirty));
/// queue.at(now).finish(work.ticket, Action::Retry);
///
/// // It failed, and runs in a millisecond: neither the add nor another one changes that.
/// assert_eq!(queue.at(now).add("node-7"), Ok(Added::Coalesced));
/// assert!(queue.at(now).try_get().is_none());
/// assert!(queue.at(now + Duration::from_millis(1)).try_get().is_some());
/// ```
#[derive(Clone, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[must_use = "a policy does nothing until a queue has it"]
pub struct Policy {
    cool_down: Duration,
    holds_failures: bool,
    /// Charged for each key that is handed out.
    rate: Rate,
}

impl Policy {
    /// Creates a policy under which no key waits.
    pub const fn new() -> Self {
        Self {
            cool_down: Duration::ZERO,
            holds_failures: false,
            rate: Rate::full(RateLimit::new(f64::MAX, 0)),
        }
    }

    /// Holds each key for `pause` after each of its runs ends, however it ends. Zero, the default,
    /// holds none.
    ///
    /// # Examples
    ///
    /// A display is redrawn immediately, and again no sooner than 100 ms after that:
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue::limiter::NoLimit;
    /// use requeue::priority::WithPolicy;
    /// use requeue::storage::Fixed;
    /// use requeue::{Action, Added, Instant, Policy, Queue};
    ///
    /// let pause = Duration::from_millis(100);
    /// let mut queue: Queue<&str, WithPolicy, _, Fixed<4>> =
    ///     Queue::new(NoLimit).with_policy(Policy::new().cool_down(pause));
    /// let now = Instant::EPOCH;
    ///
    /// let _ = queue.at(now).add("display");
    /// let work = queue.at(now).try_get().unwrap();
    /// queue.at(now).finish(work.ticket, Action::Success);
    /// assert_eq!(queue.at(now).add("display"), Ok(Added::Delayed));
    /// assert!(queue.at(now).try_get().is_none());
    /// assert!(queue.at(now + pause).try_get().is_some());
    /// ```
    pub const fn cool_down(mut self, pause: Duration) -> Self {
        self.cool_down = pause;
        self
    }

    /// Holds each key that fails until its backoff ends. The [type](Self) has an example.
    pub const fn hold_failures(mut self) -> Self {
        self.holds_failures = true;
        self
    }

    /// Limits how many runs begin per second, after a burst of at most `burst`: a token is used for
    /// each key that is handed out.
    ///
    /// A [`TokenBucket`] that is a limiter delays retries only. A run rate covers every run, first
    /// tries too. An add that coalesces costs no token, and keys keep their order and their
    /// [level](crate::priority::Levels). Use it if the service that your runs call is rate-limited.
    ///
    /// If no token is left, keys stay ready, and getters wait. A drain keeps to the rate, too.
    /// Leftovers need no token. A run uses its token when it starts. Up to `burst` unused tokens
    /// are saved, so a queue that was idle may start `burst` runs in a row.
    ///
    /// | parameters | runs |
    /// |---|---|
    /// | rate [`TokenBucket::UNLIMITED_RATE`] or above | no limit |
    /// | rate 0, negative or not a number | the burst, and then none, as with burst 0 |
    /// | burst 0, and a rate below that | none at all: a drain does not end by itself |
    ///
    /// The rate is exact over time: rounding errors do not add up.
    ///
    /// # Examples
    ///
    /// A server allows ten calls per second:
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue::limiter::NoLimit;
    /// use requeue::priority::WithPolicy;
    /// use requeue::storage::Fixed;
    /// use requeue::{Instant, Policy, Queue};
    ///
    /// let mut queue: Queue<u16, WithPolicy, _, Fixed<8>> =
    ///     Queue::new(NoLimit).with_policy(Policy::new().run_rate(10.0, 2));
    /// let now = Instant::EPOCH;
    /// let _ = queue.at(now).add_many([1, 2, 3, 4, 3, 3], |_| {});
    ///
    /// let later = now + Duration::from_millis(100);
    /// assert_eq!(queue.at(now).try_get().unwrap().key, 1);
    /// assert_eq!(queue.at(now).try_get().unwrap().key, 2);
    /// assert!(queue.at(now).try_get().is_none());
    /// assert_eq!(queue.next_deadline(), Some(later));
    /// assert_eq!(queue.at(later).try_get().unwrap().key, 3);
    /// assert!(queue.at(later).try_get().is_none());
    /// ```
    pub const fn run_rate(mut self, per_second: f64, burst: u32) -> Self {
        self.rate = Rate::full(RateLimit::new(per_second, burst));
        self
    }

    /// Whether keys may be held.
    #[doc(hidden)]
    pub const fn holds(&self) -> bool {
        self.holds_failures || !self.cool_down.is_zero()
    }

    /// Whether runs wait for tokens.
    pub(crate) const fn paces(&self) -> bool {
        self.rate.limit.is_limited()
    }

    /// From when on a ready key may be handed out.
    #[doc(hidden)]
    pub fn next_start(&self) -> Instant {
        if self.paces() {
            self.rate.rest_until()
        } else {
            Instant::EPOCH
        }
    }

    /// Records that a key was handed out.
    #[doc(hidden)]
    pub fn start(&mut self, now: Instant) {
        if self.paces() {
            self.rate.charge(now);
        }
    }

    /// Until when a run that ends now holds its key.
    #[doc(hidden)]
    pub fn held_after_run(&self, now: Instant) -> Instant {
        if self.cool_down.is_zero() {
            return Instant::EPOCH;
        }
        now + self.cool_down
    }

    /// Whether failures hold their keys.
    #[doc(hidden)]
    pub const fn holds_failures(&self) -> bool {
        self.holds_failures
    }

    /// Until when a failure holds its key, which has to wait for so long.
    #[doc(hidden)]
    pub fn held_after_failure(&self, delay: Duration, now: Instant) -> Instant {
        if self.holds_failures {
            return now + delay;
        }
        Instant::EPOCH
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self::new()
    }
}

/// Where a queue keeps its policy, and what it keeps of each key: nowhere, in its slots, or in a
/// table beside them.
#[doc(hidden)]
pub trait KeepPolicy: Debug {
    /// Whether the queue can have a policy. If not, all code that asks for one is dead.
    const EXISTS: bool = false;
    /// Whether keys can be suspended. If not, all code that asks for it is dead.
    const SUSPENDS: bool = false;
    const NONE: Self;
    /// The policy's data in a key's slot.
    type InSlot: Debug + Default;

    /// The policy, if the queue has one.
    #[inline]
    fn policy(&self) -> Option<&Policy> {
        None
    }
    #[inline]
    fn policy_mut(&mut self) -> Option<&mut Policy> {
        None
    }

    #[inline]
    fn kept(&self, _in_slot: &Self::InSlot, _id: SlotId) -> Kept {
        Kept::default()
    }
    #[inline]
    fn kept_mut<'a>(
        &'a mut self,
        _in_slot: &'a mut Self::InSlot,
        _id: SlotId,
    ) -> Option<&'a mut Kept> {
        None
    }

    #[inline]
    fn suspension(&self, _in_slot: &Self::InSlot, _id: SlotId) -> Suspension {
        Suspension::NONE
    }
    #[inline]
    fn suspension_mut<'a>(
        &'a mut self,
        _in_slot: &'a mut Self::InSlot,
        _id: SlotId,
    ) -> Option<&'a mut Suspension> {
        None
    }
    /// The number of suspended keys.
    #[inline]
    fn suspended(&self) -> usize {
        0
    }
    #[inline]
    fn suspended_mut(&mut self) -> Option<&mut usize> {
        None
    }

    /// Ends a run of a key. Returns whether the key is held.
    fn end_run(
        &mut self,
        in_slot: &mut Self::InSlot,
        id: SlotId,
        forgets: bool,
        now: Instant,
    ) -> bool {
        let held = match self.policy() {
            Some(policy) => policy.held_after_run(now),
            None => return false,
        };
        let Some(kept) = self.kept_mut(in_slot, id) else {
            return false;
        };
        if forgets {
            kept.held_until = Instant::EPOCH;
        }
        kept.held_until = kept.held_until.max(held);
        kept.held_until.is_after(now)
    }
}

/// The same, of a queue that can have a policy.
#[doc(hidden)]
pub trait SetPolicy: KeepPolicy {
    fn set(&mut self, policy: Policy);
}

/// The same, of a queue whose keys can be suspended.
#[doc(hidden)]
pub trait KeepSuspensions: SetPolicy {}

/// The policy's data of a key. After the key has lost its slot, it must not affect the next key.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Kept {
    /// The end of the key's hold. A passed time if it is not held.
    pub(crate) held_until: Instant,
    /// When the series of debounced adds began that set the key's deadline. `NEVER` if another call
    /// set it. Without a deadline this has no meaning. So it need not change when the deadline ends
    /// or is removed, or when the key loses its slot.
    pub(crate) series: Instant,
}

impl Default for Kept {
    fn default() -> Self {
        Self {
            held_until: Instant::EPOCH,
            series: Instant::NEVER,
        }
    }
}

/// The data of a key that is, will be or was suspended, or that polls. After the key has lost its
/// slot, it must not affect the next key.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Suspension {
    /// For a suspended key: its own deadline, if it is [`DELAYED`](Self::DELAYED), because the heap
    /// has the end of the suspension. For an active key: the end of its planned suspension.
    pub(crate) at: Instant,
    flags: u8,
    /// The number of pauses of [`Action::poll`](crate::Action::poll) in a row. An idle key is in
    /// the last of them. Any other key runs, or will run, because the last one ended.
    pub(crate) pauses: u8,
}

impl Suspension {
    pub(crate) const NONE: Self = Self {
        at: Instant::NEVER,
        flags: 0,
        pauses: 0,
    };
    /// The key is suspended: it is neither ready nor active.
    pub(crate) const SUSPENDED: u8 = 1;
    /// The suspended key was added, or its run asked for another.
    pub(crate) const QUEUED: u8 = 1 << 1;
    /// The suspended key has a deadline of its own.
    pub(crate) const DELAYED: u8 = 1 << 2;
    /// The limiter has set that deadline.
    pub(crate) const BACKOFF: u8 = 1 << 3;
    /// The key is active, and will be suspended at the end of its run.
    pub(crate) const PENDING: u8 = 1 << 4;
    /// The key is active, and its action asks for a run after the suspension.
    pub(crate) const ASKS: u8 = 1 << 5;
    /// The key is active, and was resumed since its run began.
    pub(crate) const RESUMED: u8 = 1 << 6;
    /// The last suspension of the key ended by its timeout.
    pub(crate) const TIMED_OUT: u8 = 1 << 7;

    pub(crate) const fn new(flags: u8, at: Instant) -> Self {
        Self {
            at,
            flags,
            pauses: 0,
        }
    }

    #[inline]
    pub(crate) const fn has(self, flags: u8) -> bool {
        self.flags & flags != 0
    }

    pub(crate) const fn set(&mut self, flags: u8, on: bool) {
        self.flags &= !flags;
        if on {
            self.flags |= flags;
        }
    }
}

impl Default for Suspension {
    fn default() -> Self {
        Self::NONE
    }
}

impl KeepPolicy for () {
    const NONE: Self = ();
    type InSlot = ();
}

/// A policy in the queue, and what it keeps of a key in the key's slot: see [`WithPolicy`]. `X` is
/// the key's suspension, if it can have one.
#[doc(hidden)]
#[derive(Debug)]
pub struct InSlots<X: InSlot = ()> {
    pub(crate) policy: Policy,
    suspended: X::Count,
}

/// A key's suspension, or no room for one.
#[doc(hidden)]
pub trait InSlot: Copy + Debug + Default {
    const SUSPENDS: bool = false;
    /// Counts the suspended keys.
    type Count: Copy + Debug;
    const ZERO: Self::Count;

    #[inline]
    fn get(&self) -> Suspension {
        Suspension::NONE
    }
    #[inline]
    fn get_mut(&mut self) -> Option<&mut Suspension> {
        None
    }
    #[inline]
    fn count(_count: &Self::Count) -> usize {
        0
    }
    #[inline]
    fn count_mut(_count: &mut Self::Count) -> Option<&mut usize> {
        None
    }
}

impl InSlot for () {
    type Count = ();
    const ZERO: () = ();
}

impl InSlot for Suspension {
    const SUSPENDS: bool = true;
    type Count = usize;
    const ZERO: usize = 0;

    fn get(&self) -> Suspension {
        *self
    }

    fn get_mut(&mut self) -> Option<&mut Suspension> {
        Some(self)
    }

    fn count(count: &usize) -> usize {
        *count
    }

    fn count_mut(count: &mut usize) -> Option<&mut usize> {
        Some(count)
    }
}

impl<X: InSlot> KeepPolicy for InSlots<X> {
    const EXISTS: bool = true;
    const SUSPENDS: bool = X::SUSPENDS;
    const NONE: Self = Self {
        policy: Policy::new(),
        suspended: X::ZERO,
    };
    type InSlot = (Kept, X);

    #[inline]
    fn policy(&self) -> Option<&Policy> {
        Some(&self.policy)
    }

    #[inline]
    fn policy_mut(&mut self) -> Option<&mut Policy> {
        Some(&mut self.policy)
    }

    #[inline]
    fn kept(&self, (kept, _): &(Kept, X), _: SlotId) -> Kept {
        *kept
    }

    #[inline]
    fn kept_mut<'a>(&'a mut self, (kept, _): &'a mut (Kept, X), _: SlotId) -> Option<&'a mut Kept> {
        Some(kept)
    }

    #[inline]
    fn suspension(&self, (_, suspension): &(Kept, X), _: SlotId) -> Suspension {
        suspension.get()
    }

    #[inline]
    fn suspension_mut<'a>(
        &'a mut self,
        (_, suspension): &'a mut (Kept, X),
        _: SlotId,
    ) -> Option<&'a mut Suspension> {
        suspension.get_mut()
    }

    #[inline]
    fn suspended(&self) -> usize {
        X::count(&self.suspended)
    }

    #[inline]
    fn suspended_mut(&mut self) -> Option<&mut usize> {
        X::count_mut(&mut self.suspended)
    }
}

#[diagnostic::do_not_recommend]
impl<X: InSlot> SetPolicy for InSlots<X> {
    fn set(&mut self, policy: Policy) {
        self.policy = policy;
    }
}

#[diagnostic::do_not_recommend]
impl KeepSuspensions for InSlots<Suspension> {}

/// A policy, and tables beside the slots, which do not exist before they are used.
#[cfg(feature = "alloc")]
#[doc(hidden)]
#[derive(Debug)]
pub struct SideTable(Option<Box<Tables>>);

#[cfg(feature = "alloc")]
#[derive(Debug)]
struct Tables {
    policy: Policy,
    kept: Segments<Kept, 512>,
    suspensions: Segments<Suspension, 512>,
    suspended: usize,
}

#[cfg(feature = "alloc")]
impl SideTable {
    fn tables(&mut self) -> &mut Tables {
        self.0.get_or_insert_with(|| {
            Box::new(Tables {
                policy: Policy::new(),
                kept: Segments::new(),
                suspensions: Segments::new(),
                suspended: 0,
            })
        })
    }
}

#[cfg(feature = "alloc")]
impl KeepPolicy for SideTable {
    const EXISTS: bool = true;
    const SUSPENDS: bool = true;
    const NONE: Self = Self(None);
    type InSlot = ();

    fn policy(&self) -> Option<&Policy> {
        self.0.as_deref().map(|tables| &tables.policy)
    }

    fn policy_mut(&mut self) -> Option<&mut Policy> {
        self.0.as_deref_mut().map(|tables| &mut tables.policy)
    }

    fn kept(&self, (): &(), id: SlotId) -> Kept {
        let tables = self.0.as_deref();
        let kept = tables.and_then(|tables| tables.kept.get(id.index()));
        kept.copied().unwrap_or_default()
    }

    fn kept_mut<'a>(&'a mut self, (): &'a mut (), id: SlotId) -> Option<&'a mut Kept> {
        self.tables().kept.slot(id.index(), Kept::default())
    }

    fn suspension(&self, (): &(), id: SlotId) -> Suspension {
        let tables = self.0.as_deref();
        let suspension = tables.and_then(|tables| tables.suspensions.get(id.index()));
        suspension.copied().unwrap_or_default()
    }

    fn suspension_mut<'a>(&'a mut self, (): &'a mut (), id: SlotId) -> Option<&'a mut Suspension> {
        let suspensions = &mut self.tables().suspensions;
        suspensions.slot(id.index(), Suspension::NONE)
    }

    fn suspended(&self) -> usize {
        self.0.as_deref().map_or(0, |tables| tables.suspended)
    }

    fn suspended_mut(&mut self) -> Option<&mut usize> {
        Some(&mut self.tables().suspended)
    }
}

#[cfg(feature = "alloc")]
#[diagnostic::do_not_recommend]
impl SetPolicy for SideTable {
    fn set(&mut self, policy: Policy) {
        self.tables().policy = policy;
    }
}

#[cfg(feature = "alloc")]
#[diagnostic::do_not_recommend]
impl KeepSuspensions for SideTable {}
