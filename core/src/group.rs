//! The parts of a queue with groups: the function that names the group of a key, and the storage of
//! its lists. The lists themselves are in `lists/grouped.rs`.

use core::fmt;
use core::hash::Hash;
use core::marker::PhantomData;

#[cfg(doc)]
use crate::GroupLimits;
use crate::array::ConstDefault;
use crate::id::Index;
use crate::levels::{Aging, Naming, Plain, Priorities, WithPolicy, WithSlack};
use crate::lists::grouped::rates::{GroupRates, Rates};
use crate::lists::grouped::{Backing, Group, GroupLink, GroupedLists};
use crate::policy::InSlot;
use crate::sealed::Sealed;
use crate::store::fixed::{Fixed, FixedSlots};
#[cfg(feature = "alloc")]
use crate::{
    segments::Segments,
    store::growable::{Growable, GrowableSlots, RandomState},
};

/// A queue whose keys belong to groups, such as tenants, receivers, or the devices of one bus: the
/// backlog of one does not delay the others.
///
/// `G` is the name of a group, which a function of yours computes from each key. `P` are the
/// priority levels, if any. A [`Fixed`](crate::storage::Fixed) queue has room for `MAX` groups, at
/// most 255; a `Growable` one for any number. `R` says whether groups may have rates: [`Rates`], or
/// `()` to save their room and code on a board.
///
/// - **Fair.** The groups that have ready keys are served in turn, one key each, or as many as the
///   [weight](GroupLimits::weight) of the group says. With `n` such groups, the first key of a
///   group waits for at most `n - 1` others, however long their backlogs are.
/// - **Limits.** A group may have a [number of active keys](GroupLimits::max_active) at most, and a
///   [rate](GroupLimits::rate), which is charged when a key is handed out. A group at its limit is
///   not looked at until one of its runs ends or its rate allows the next one.
/// - **Levels.** The highest level that has a key to hand out is served first, and its groups in
///   turn. Within a group and a level, first in, first out.
/// - A group comes and goes with its keys, or stays while limits are set for it by name. Once its
///   last key has left, one with a rate stays until the tokens it has used are earned again, or
///   until its room is needed. Failure records alone keep no other group out: where all `MAX` are
///   taken, those of a group that has nothing else are discarded, O(n) in the records.
///
/// Deduplication, delays, retries and shutdown are as without groups. A drain honours the limits.
/// Shutdown lifts what would keep a drain from ending: pauses, and limits of no active key at all.
///
/// # Cost
///
/// Adding, handing out and completing a key are O(1) expected on top of what they cost without
/// groups; O(levels) if the group reaches or leaves its limit. One slot per group.
///
/// The function runs once for each key that gets a slot, before anything changes. A key stays in
/// the group that was computed then.
///
/// # Examples
///
/// Two sensors share a bus, and at most one of them is read at a time:
///
/// ```
/// use requeue::limiter::NoLimit;
/// use requeue::priority::Groups;
/// use requeue::storage::Fixed;
/// use requeue::{GroupLimits, Instant, Queue};
///
/// #[derive(Clone, Debug, PartialEq, Eq, Hash)]
/// struct Sensor { bus: u8, address: u8 }
///
/// let now = Instant::EPOCH;
/// let mut queue: Queue<Sensor, Groups<u8>, NoLimit, Fixed<8>> =
///     Queue::with_groups(NoLimit, (), |sensor: &Sensor| sensor.bus);
/// queue.at(now).limit_groups(GroupLimits::new().max_active(1));
///
/// for (bus, address) in [(1, 40), (1, 41), (2, 40)] {
///     queue.at(now).add(Sensor { bus, address }).unwrap();
/// }
/// let first = queue.at(now).try_get().unwrap();
/// assert_eq!((first.key.bus, first.key.address), (1, 40));
/// assert_eq!(queue.at(now).try_get().unwrap().key.bus, 2, "bus 1 is in use");
/// assert!(queue.at(now).try_get().is_none());
///
/// queue.at(now).release(first.ticket);
/// assert_eq!(queue.at(now).try_get().unwrap().key.address, 41);
/// ```
///
/// A function that takes any queue with groups, and which group has the most ready keys:
///
/// ```
/// use std::fmt::Debug;
/// use std::hash::Hash;
/// use requeue::limiter::{NoLimit, RateLimiter};
/// use requeue::metrics::Metrics;
/// use requeue::priority::{Grouped, Groups};
/// use requeue::storage::{Fixed, Storage};
/// use requeue::binding::Sweep;
/// use requeue::{Instant, Queue};
///
/// fn slowest<G, L, S>(queue: &Queue<(G, u32), Groups<G>, L, S>) -> Option<G>
/// where
///     G: Clone + Eq + Hash,
///     L: RateLimiter,
///     S: Storage,
/// {
///     let mut slowest = None;
///     let mut sweep = Sweep::new();
///     while queue.groups_some(&mut sweep, |name, group| {
///         if slowest.as_ref().is_none_or(|(ready, _)| group.ready > *ready) {
///             slowest = Some((group.ready, name.clone()));
///         }
///     }) {}
///     slowest.map(|(_, name)| name)
/// }
///
/// /// With levels or a policy inside, and with metrics.
/// fn count<K, P, L, S, M>(queue: &Queue<K, P, L, S, M>) -> usize
/// where
///     K: Eq + Hash,
///     P: Grouped<Group: Debug>,
///     L: RateLimiter,
///     S: Storage,
///     M: Metrics,
/// {
///     queue.groups_len()
/// }
///
/// let mut queue: Queue<(&str, u32), Groups<&str>, NoLimit, Fixed<8>> =
///     Queue::with_groups(NoLimit, (), |key| key.0);
/// let _ = queue.at(Instant::EPOCH).add_many([("a", 1), ("b", 1), ("b", 2)], |_| {});
/// assert_eq!((slowest(&queue), count(&queue)), (Some("b"), 2));
/// ```
///
/// There is no method that acts on all keys of a group:
/// [`retain`](crate::binding::Shared::retain) cancels them, by what they are named, and so does
/// [`retain_some`](crate::Session::retain_some).
pub struct Groups<G, P = Plain, const MAX: usize = 16, R = Rates>(PhantomData<(G, P, R)>);

impl<G, P, const MAX: usize, R> fmt::Debug for Groups<G, P, MAX, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Groups")
    }
}

impl<G, P, const MAX: usize, R> Sealed for Groups<G, P, MAX, R> {}

impl<G, P, const MAX: usize, R> Priorities for Groups<G, P, MAX, R>
where
    G: Eq + Hash,
    P: Priorities,
    R: GroupRates,
{
    const LEVELS: u8 = P::LEVELS;

    type Group = G;
    type Rates = R;
    type Leveled<const LEVELS: usize> = Groups<G, P::Leveled<LEVELS>, MAX, R>;
    type Aged = Groups<G, P::Aged, MAX, R>;

    type KeyLevels = P::KeyLevels;
    type Age = P::Age;
    type FixedPolicy = P::FixedPolicy;
    type FixedSlack = P::FixedSlack;
    type PerLevel<T: ConstDefault> = P::PerLevel<T>;
    type Naming<K> = GroupFn<K, G>;
    type FixedLists<const N: usize, I: Index> = GroupedLists<(Fixed<N, I>, Self)>;
    #[cfg(feature = "alloc")]
    type GrowableLists = GroupedLists<(Growable, Self)>;
}

/// The [`Priorities`] of a queue with groups: the bound of a function that takes any such queue.
/// [`Groups`] has an example.
#[diagnostic::on_unimplemented(
    message = "the keys of this queue belong to no groups",
    label = "this queue has no groups",
    note = "call `.build_with_groups(group_of)` on the builder, or choose `Groups` as priorities"
)]
pub trait Grouped: Priorities {}

impl<G, P, const MAX: usize, R> Grouped for Groups<G, P, MAX, R>
where
    G: Eq + Hash,
    P: Priorities,
    R: GroupRates,
{
}

#[diagnostic::do_not_recommend]
impl<P: Grouped> Grouped for Aging<P> {}

#[diagnostic::do_not_recommend]
impl<P: Grouped, X: InSlot> Grouped for WithPolicy<P, X> {}

#[diagnostic::do_not_recommend]
impl<P: Grouped> Grouped for WithSlack<P> {}

/// A function that computes the group of a key.
#[doc(hidden)]
pub struct GroupFn<K, G>(pub(crate) fn(&K) -> G);

impl<K, G> Naming<K> for GroupFn<K, G> {
    type Group = G;

    fn group_of(&self, key: &K) -> G {
        (self.0)(key)
    }
}

impl<K, G> fmt::Debug for GroupFn<K, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GroupFn")
    }
}

impl<G, P, const N: usize, I, const MAX: usize, R> Backing for (Fixed<N, I>, Groups<G, P, MAX, R>)
where
    G: Eq + Hash,
    P: Priorities,
    I: Index,
    R: GroupRates,
{
    type Name = G;
    type Index = I;
    type GroupIndex = u8;
    type Links = [GroupLink<I, u8>; N];
    type Groups = FixedSlots<G, Group<Self>, MAX, u8>;
    type Limit = R;
    type Rates = R::Fixed<MAX>;
    type PerLevel<T: ConstDefault> = P::PerLevel<T>;

    const LEVELS: usize = P::LEVELS as usize;
    const FEW_GROUPS: bool = true;
}

impl<G, P, const N: usize, I, const MAX: usize, R> ConstDefault
    for GroupedLists<(Fixed<N, I>, Groups<G, P, MAX, R>)>
where
    G: Eq + Hash,
    P: Priorities,
    I: Index,
    R: GroupRates,
{
    const DEFAULT: Self = Self::new(FixedSlots::new(), ConstDefault::DEFAULT);
}

#[cfg(feature = "alloc")]
impl<G, P, const MAX: usize, R> Backing for (Growable, Groups<G, P, MAX, R>)
where
    G: Eq + Hash,
    P: Priorities,
    R: GroupRates,
{
    type Name = G;
    type Index = u32;
    type GroupIndex = u32;
    type Links = Segments<GroupLink<u32, u32>, 512>;
    type Groups = GrowableSlots<G, Group<Self>, RandomState>;
    type Limit = R;
    type Rates = R::Growable;
    type PerLevel<T: ConstDefault> = P::PerLevel<T>;

    const LEVELS: usize = P::LEVELS as usize;
    const FEW_GROUPS: bool = false;
}

#[cfg(feature = "alloc")]
impl<G, P, const MAX: usize, R> Default for GroupedLists<(Growable, Groups<G, P, MAX, R>)>
where
    G: Eq + Hash,
    P: Priorities,
    R: GroupRates,
{
    fn default() -> Self {
        let groups = GrowableSlots::with_capacity(RandomState::default(), 0);
        Self::new(groups, R::Growable::default())
    }
}
