//! The priorities of a queue, and their data for each key: its levels, since when it waits, and in
//! fixed storage the room for a policy.
//!
//! By default a queue has one level, and this takes neither room nor time: a key's levels are `()`,
//! and there is a single list of ready keys.

use core::fmt::Debug;
use core::time::Duration;

use crate::Instant;
use crate::array::{Array, ConstDefault, Optional, Stored};
use crate::delay::Slack;
use crate::id::Index;
use crate::lists::fixed::FixedLists;
use crate::lists::grouped::rates::GroupRates;
#[cfg(feature = "alloc")]
use crate::lists::growable::{GrowableLinks, GrowableLists};
use crate::lists::leveled::LeveledLists;
use crate::lists::{Link, Lists};
use crate::policy::{InSlot, InSlots, KeepPolicy, Suspension};
#[cfg(doc)]
use crate::priority::Groups;
use crate::sealed::Sealed;

/// The order in which a queue serves its keys: the second parameter of its type.
///
/// | `P` | for | with another inside |
/// |---|---|---|
/// | [`Plain`] | one level for all keys, the default | |
/// | [`Levels<4>`](Levels) | four priority levels | |
/// | [`Aging`] | low levels that are served once they have waited for long | `Aging<Levels<2>>` |
/// | [`Groups<u32>`](crate::priority::Groups) | groups of keys, served in turn | `Groups<u32, Aging<Levels<2>>>` |
/// | [`WithPolicy`] | holds and a rate of runs, in `Fixed` storage | `WithPolicy<Levels<2>>` |
/// | [`WithSuspension`] | the same, and keys that wait for events | `WithSuspension<Levels<2>>` |
/// | [`WithSlack`] | delays that may become longer, in `Fixed` storage | `WithSlack<WithPolicy>` |
///
/// Functions that take any queue name what they need: [`Grouped`](crate::priority::Grouped) to call
/// the methods for groups, [`Ages`](crate::binding::Ages) to call `age_after`, and otherwise this
/// trait. It is sealed. To call `run` they also need the bound that `run` shows, on threads
/// `Shared<ThreadHost<K, P, L, S>>: Send + Sync` with both names from `requeue::std::binding`.
///
/// # Examples
///
/// ```
/// use requeue::priority::{Levels, Plain, Priorities};
///
/// assert_eq!(<Plain as Priorities>::LEVELS, 1);
/// assert_eq!(<Levels<4> as Priorities>::LEVELS, 4);
/// ```
pub trait Priorities: Sealed {
    /// The number of levels. The lowest is 0, the default of every add.
    const LEVELS: u8;

    /// The name of a group: `()` without [`Groups`].
    type Group;
    /// Whether groups may have rates: [`Rates`](crate::priority::Rates) or `()`.
    type Rates: GroupRates;
    /// These priorities with another number of levels.
    type Leveled<const LEVELS: usize>: Priorities;
    /// These priorities with [`Aging`].
    type Aged: Priorities;

    #[doc(hidden)]
    type KeyLevels: Optional<ThreeLevels>;
    #[doc(hidden)]
    type Age: Age;
    /// Where a queue of a fixed size keeps its policy. A growable queue can always have a policy.
    #[doc(hidden)]
    type FixedPolicy: KeepPolicy;
    /// What a queue of a fixed size keeps of a key's slack. A growable queue can always use slack.
    #[doc(hidden)]
    type FixedSlack: Slack;
    #[doc(hidden)]
    type PerLevel<T: ConstDefault>: Array<Item = T>;
    #[doc(hidden)]
    type Naming<K>: Naming<K, Group = Self::Group> + Debug;
    #[doc(hidden)]
    type FixedLists<const N: usize, I: Index>: Lists<Group = Self::Group, Rates = Self::Rates>
        + ConstDefault;
    #[cfg(feature = "alloc")]
    #[doc(hidden)]
    type GrowableLists: Lists<Group = Self::Group, Rates = Self::Rates> + Default;
}

/// One level for all keys: no room, no code.
///
/// # Examples
///
/// ```
/// use requeue::limiter::NoLimit;
/// use requeue::priority::Plain;
/// use requeue::storage::Fixed;
/// use requeue::Queue;
///
/// // The default of a queue.
/// let queue: Queue<u16, Plain, NoLimit, Fixed<8>> = Queue::new(NoLimit);
/// let same: Queue<u16, Plain, NoLimit, Fixed<8>> = queue;
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Plain;

/// `P` levels, from 0, the lowest, to `P - 1`; at most 32.
///
/// The rules are those of controller-runtime's priority queue:
///
/// - The highest level that has a ready key is served first, and within a level the key that became
///   ready first. A busy level can starve the levels below it, unless keys
///   [age](crate::priority::Aging).
/// - An add never lowers a key's level. An add that raises it moves the key to the end of the
///   higher level.
/// - A delay has a level of its own: the key joins the end of that level when its deadline comes.
/// - A key that is retried runs again at the level of its run.
/// - A key that is added during its run joins the end of its level when the run ends.
///
/// [`add_with`](crate::Session::add_with) sets a level; every other add means 0.
///
/// # Cost
///
/// Three bytes per key, and the two ends of a list per level. Every operation costs the same as
/// without levels: one word of bits shows the highest level that has a ready key.
///
/// # Examples
///
/// ```
/// use requeue::limiter::NoLimit;
/// use requeue::priority::Levels;
/// use requeue::storage::Fixed;
/// use requeue::{AddOptions, Instant, Queue};
///
/// let now = Instant::EPOCH;
/// let mut queue: Queue<&str, Levels<2>, NoLimit, Fixed<16>> = Queue::new(NoLimit);
///
/// // A controller lists all nodes as it starts, and meanwhile one of them changes.
/// let _ = queue.at(now).add_many(["node-1", "node-2", "node-3"], |_| {});
/// let urgent = AddOptions { priority: Some(1), ..AddOptions::new() };
/// queue.at(now).add_with("node-3", urgent).unwrap();
///
/// let work = queue.at(now).try_get().unwrap();
/// assert_eq!((work.key, work.priority), ("node-3", 1));
/// # queue.at(now).release(work.ticket);
/// ```
///
/// ```compile_fail
/// use requeue::limiter::NoLimit;
/// use requeue::priority::Levels;
/// use requeue::storage::Fixed;
/// use requeue::Queue;
///
/// let too_many: Queue<u16, Levels<33>, NoLimit, Fixed<8>> = Queue::new(NoLimit);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Levels<const P: usize>;

impl Sealed for Plain {}

impl Priorities for Plain {
    const LEVELS: u8 = 1;

    type Group = ();
    type Rates = ();
    type Leveled<const LEVELS: usize> = Levels<LEVELS>;
    type Aged = Aging<Self>;

    type KeyLevels = ();
    type Age = ();
    type FixedPolicy = ();
    type FixedSlack = ();
    type PerLevel<T: ConstDefault> = [T; 1];
    type Naming<K> = ();
    type FixedLists<const N: usize, I: Index> = FixedLists<N, I>;
    #[cfg(feature = "alloc")]
    type GrowableLists = GrowableLists;
}

impl<const P: usize> Sealed for Levels<P> {}

impl<const P: usize> Priorities for Levels<P> {
    const LEVELS: u8 = P as u8;

    type Group = ();
    type Rates = ();
    type Leveled<const LEVELS: usize> = Levels<LEVELS>;
    type Aged = Aging<Self>;

    type KeyLevels = Stored<ThreeLevels>;
    type Age = ();
    type FixedPolicy = ();
    type FixedSlack = ();
    type PerLevel<T: ConstDefault> = [T; P];
    type Naming<K> = ();
    type FixedLists<const N: usize, I: Index> = LeveledLists<[Link<I>; N], I, P>;
    #[cfg(feature = "alloc")]
    type GrowableLists = LeveledLists<GrowableLinks, u32, P>;
}

/// The parts that priorities around other priorities, `P`, do not change.
macro_rules! inner {
    () => {
        const LEVELS: u8 = P::LEVELS;
        type Group = P::Group;
        type Rates = P::Rates;
        type KeyLevels = P::KeyLevels;
        type PerLevel<T: ConstDefault> = P::PerLevel<T>;
        type Naming<K> = P::Naming<K>;
        type FixedLists<const N: usize, I: Index> = P::FixedLists<N, I>;
        #[cfg(feature = "alloc")]
        type GrowableLists = P::GrowableLists;
    };
}

/// Priority levels whose busy high ones do not starve the low ones: a key that has waited for
/// longer than [a given time](crate::Session::age_after) is served before the younger keys of
/// higher levels.
///
/// `P` are the levels, [`Levels`](crate::priority::Levels). A queue with groups has
/// `Groups<G, Aging<Levels<2>>>`.
///
/// - Of each level, the key that is next there is looked at. Of those that have waited for longer
///   than the time, the one that has waited longest is served; if there is none, the highest level
///   is, as without aging.
/// - A key waits from the add that made it ready, or dirty, or from its deadline. A key that is
///   raised to a higher level keeps its age.
/// - Until the time is set, nothing ages.
///
/// # Cost
///
/// A time of eight bytes per key, which padding makes 12 to 16 bytes on a 64-bit machine; a reading
/// of the clock for each operation, and O(levels) for a get.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use requeue::limiter::NoLimit;
/// use requeue::priority::{Aging, Levels};
/// use requeue::storage::Fixed;
/// use requeue::{AddOptions, Instant, Queue};
///
/// let now = Instant::EPOCH;
/// let mut queue: Queue<&str, Aging<Levels<2>>, NoLimit, Fixed<16>> = Queue::new(NoLimit);
/// queue.at(now).age_after(Duration::from_secs(60));
///
/// let urgent = AddOptions { priority: Some(1), ..AddOptions::new() };
/// queue.at(now).add("report").unwrap();
/// let later = now + Duration::from_secs(61);
/// queue.at(later).add_with("alarm", urgent).unwrap();
/// assert_eq!(queue.at(later).try_get().unwrap().key, "report");
/// assert_eq!(queue.at(later).try_get().unwrap().key, "alarm");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Aging<P>(P);

impl<P> Sealed for Aging<P> {}

impl<P: Priorities> Priorities for Aging<P> {
    inner! {}

    type Leveled<const LEVELS: usize> = Aging<P::Leveled<LEVELS>>;
    type Aged = Self;
    type Age = Instant;
    type FixedPolicy = P::FixedPolicy;
    type FixedSlack = P::FixedSlack;
}

/// Lets a [`Fixed`](crate::storage::Fixed) queue have a [`Policy`](crate::Policy), and debounce
/// adds. `P` are the priority levels, and `X` says whether keys can also be suspended:
/// [`WithSuspension`].
///
/// A queue that grows can have a policy without this type. A queue with groups has
/// `Groups<G, WithPolicy>`.
///
/// # Cost
///
/// 16 bytes in each slot, and the policy itself in the queue.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use requeue::limiter::NoLimit;
/// use requeue::priority::{Levels, WithPolicy};
/// use requeue::storage::Fixed;
/// use requeue::{Policy, Queue};
///
/// const POLICY: Policy = Policy::new().cool_down(Duration::from_millis(100)).run_rate(20.0, 5);
/// const QUEUE: Queue<u16, WithPolicy, NoLimit, Fixed<8>> =
///     Queue::new(NoLimit).with_policy(POLICY);
/// const LEVELED: Queue<u16, WithPolicy<Levels<2>>, NoLimit, Fixed<8>> =
///     Queue::new(NoLimit).with_policy(POLICY);
/// assert!(QUEUE.needs_time() && LEVELED.needs_time());
/// ```
///
/// ```compile_fail
/// use requeue::limiter::NoLimit;
/// use requeue::priority::Plain;
/// use requeue::storage::Fixed;
/// use requeue::{Policy, Queue};
///
/// // This queue has no room for it.
/// let _ =
///     Queue::<u16, Plain, _, Fixed<8>>::new(NoLimit).with_policy(Policy::new().hold_failures());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct WithPolicy<P = Plain, X = ()>(P, X);

impl<P, X> Sealed for WithPolicy<P, X> {}

impl<P: Priorities, X: InSlot> Priorities for WithPolicy<P, X> {
    inner! {}

    type Leveled<const LEVELS: usize> = WithPolicy<P::Leveled<LEVELS>, X>;
    type Aged = WithPolicy<P::Aged, X>;
    type Age = P::Age;
    type FixedPolicy = InSlots<X>;
    type FixedSlack = P::FixedSlack;
}

/// Lets a [`Fixed`](crate::storage::Fixed) queue [suspend](crate::Session::suspend) keys, and have
/// a [`Policy`](crate::Policy). `P` are the priority levels.
///
/// A queue that grows can suspend keys without this type. A queue with groups has
/// `Groups<G, WithSuspension>`.
///
/// # Cost
///
/// 16 bytes in each slot, and what [`WithPolicy`] costs.
///
/// # Examples
///
/// A sensor starts to measure, and raises an interrupt when its value is there:
///
/// ```
/// use core::time::Duration;
/// use requeue::limiter::NoLimit;
/// use requeue::priority::WithSuspension;
/// use requeue::storage::Fixed;
/// use requeue::{Action, Instant, Queue};
///
/// let now = Instant::EPOCH;
/// let mut queue: Queue<u16, WithSuspension, NoLimit, Fixed<8>> = Queue::new(NoLimit);
/// let _ = queue.at(now).add(17);
/// let work = queue.at(now).try_get().unwrap();
/// queue.at(now).finish(work.ticket, Action::Suspend(Duration::from_millis(50)));
///
/// assert!(queue.at(now).try_get().is_none());
/// assert!(queue.at(now).resume(&17), "in the interrupt");
/// assert_eq!(queue.at(now).try_get().unwrap().key, 17);
/// ```
pub type WithSuspension<P = Plain> = WithPolicy<P, Suspension>;

/// Lets a [`Fixed`](crate::storage::Fixed) queue use slack: [`add_within`], the slack of an
/// [`Action`](crate::Action::with_slack) and of [`AddOptions`](crate::AddOptions::slack). Then one
/// wake of the processor serves several keys. `P` are the priorities around which it is put.
///
/// A queue that grows can use slack without this type. A queue with groups has
/// `Groups<G, WithSlack>`. Without it, `add_within` does not compile, and delays are exact.
///
/// [`add_within`]: crate::Session::add_within
///
/// # Cost
///
/// Eight bytes for each key, and eight more on a board.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use requeue::limiter::NoLimit;
/// use requeue::priority::{Levels, WithPolicy, WithSlack};
/// use requeue::storage::Fixed;
/// use requeue::{Instant, Queue};
///
/// let (minute, slack) = (Duration::from_secs(60), Duration::from_secs(6));
/// let mut queue: Queue<u16, WithSlack, NoLimit, Fixed<8>> = Queue::new(NoLimit);
/// let _ = queue.at(Instant::EPOCH).add_within(17, minute, slack);
/// assert_eq!(queue.next_deadline(), Some(Instant::EPOCH + minute + slack));
///
/// // With levels and a policy.
/// type Other = Queue<u16, WithSlack<WithPolicy<Levels<2>>>, NoLimit, Fixed<8>>;
/// let mut other: Other = Queue::new(NoLimit);
/// let _ = other.at(Instant::EPOCH).add_within(17, minute, slack);
/// ```
///
/// ```compile_fail
/// use core::time::Duration;
/// use requeue::limiter::NoLimit;
/// use requeue::priority::Plain;
/// use requeue::storage::Fixed;
/// use requeue::{Instant, Queue};
///
/// // This queue has no room for it.
/// let mut queue: Queue<u16, Plain, NoLimit, Fixed<8>> = Queue::new(NoLimit);
/// let _ = queue.at(Instant::EPOCH).add_within(17, Duration::from_secs(60), Duration::ZERO);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct WithSlack<P = Plain>(P);

impl<P> Sealed for WithSlack<P> {}

impl<P: Priorities> Priorities for WithSlack<P> {
    inner! {}

    type Leveled<const LEVELS: usize> = WithSlack<P::Leveled<LEVELS>>;
    type Aged = WithSlack<P::Aged>;
    type Age = P::Age;
    type FixedPolicy = P::FixedPolicy;
    type FixedSlack = u64;
}

/// The levels of one key, in a queue with more than one level. All are 0 in the others.
///
/// A key can be active, dirty and delayed at the same time, so it has three levels.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ThreeLevels {
    /// The level at which the key is ready, or will be when its run ends.
    pub(crate) queued: u8,
    /// The level of its deadline.
    pub(crate) delayed: u8,
    /// The level of its run.
    pub(crate) running: u8,
}

/// Since when a key has been ready or dirty: `()` if keys do not age.
#[doc(hidden)]
pub trait Age: Copy + Debug + Default {
    const EXISTS: bool = false;
    /// How long a key waits before it is served first. By default: [`OFF`](Self::OFF).
    type Limit: Copy + Debug;
    const OFF: Self::Limit;

    #[inline]
    fn since(self) -> Instant {
        Instant::EPOCH
    }
    #[inline]
    fn begin(&mut self, _at: Instant) {}
    #[inline]
    fn after(_limit: Self::Limit) -> Option<Duration> {
        None
    }
}

impl Age for () {
    type Limit = ();
    const OFF: () = ();
}

impl Age for Instant {
    const EXISTS: bool = true;
    type Limit = Option<Duration>;
    const OFF: Option<Duration> = None;

    #[inline]
    fn since(self) -> Instant {
        self
    }

    #[inline]
    fn begin(&mut self, at: Instant) {
        *self = at;
    }

    #[inline]
    fn after(limit: Option<Duration>) -> Option<Duration> {
        limit
    }
}

/// The [`Priorities`] of a queue whose keys age: the bound of a function that takes any such queue.
#[diagnostic::on_unimplemented(
    message = "the keys of this queue do not age",
    label = "this queue does not know how long its keys have waited",
    note = "call `.aging()` on the builder, or put `Aging` around the queue's priorities"
)]
pub trait Ages: Priorities<Age = Instant> {}

#[diagnostic::do_not_recommend]
impl<P: Priorities<Age = Instant>> Ages for P {}

/// How the group of a key is computed.
#[doc(hidden)]
pub trait Naming<K> {
    type Group;

    fn group_of(&self, key: &K) -> Self::Group;
}

impl<K> Naming<K> for () {
    type Group = ();

    #[inline]
    fn group_of(&self, _: &K) {}
}
