//! Groups of keys: what they are, and their limits.

use core::fmt;
use core::hash::Hash;
use core::marker::PhantomData;
use core::num::NonZeroU16;

use crate::id::Index;
use crate::limiter::Bucket;
#[cfg(feature = "alloc")]
use crate::lists::grouped::GrowableGroups;
use crate::lists::grouped::{FixedGroups, GroupedLists};
use crate::lists::leveled::ConstDefault;
use crate::priority::{Naming, NoPriorities, Priorities, sealed};

/// A queue whose keys belong to groups, such as tenants, receivers, or the devices of one bus: the
/// backlog of one does not delay the others.
///
/// `G` is the name of a group, which a function of yours computes from each key. `P` are the
/// priority levels, if any. A [`Fixed`](crate::Fixed) queue has room for `MAX` groups, at most 255;
/// a `Growable` one for any number.
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
/// use requeue_core::{Fixed, GroupLimits, Groups, Instant, NoLimit, NoMetrics, Queue};
///
/// #[derive(Clone, Debug, PartialEq, Eq, Hash)]
/// struct Sensor { bus: u8, address: u8 }
///
/// let now = Instant::EPOCH;
/// let mut queue: Queue<Sensor, Fixed<8, u8, Groups<u8>>, NoLimit> =
///     Queue::with_groups(NoLimit, NoMetrics, |sensor: &Sensor| sensor.bus);
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
/// queue.at(now).release(first.ticket).unwrap();
/// assert_eq!(queue.at(now).try_get().unwrap().key.address, 41);
/// ```
///
/// There is no method that acts on all keys of a group:
/// [`retain`](crate::binding::Shared::retain) cancels them, by what they are named, and so does
/// [`retain_some`](crate::Session::retain_some).
pub struct Groups<G, P = NoPriorities, const MAX: usize = 16>(PhantomData<(G, P)>);

impl<G, P, const MAX: usize> fmt::Debug for Groups<G, P, MAX> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Groups")
    }
}

impl<G, P, const MAX: usize> sealed::Sealed for Groups<G, P, MAX> {}

impl<G: Eq + Hash, P: Priorities, const MAX: usize> Priorities for Groups<G, P, MAX> {
    const LEVELS: u8 = P::LEVELS;

    type KeyLevels = P::KeyLevels;
    type Age = P::Age;
    type FixedPolicy = P::FixedPolicy;
    type PerLevel<T: ConstDefault> = P::PerLevel<T>;
    type Group = G;
    type Naming<K> = GroupFn<K, G>;
    type FixedLists<const N: usize, I: Index> = GroupedLists<FixedGroups<G, P, N, I, MAX>>;
    #[cfg(feature = "alloc")]
    type GrowableLists = GroupedLists<GrowableGroups<G, P>>;
}

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

/// The limits of a group. There are none by default, and the weight is 1.
///
/// # Examples
///
/// ```
/// use requeue_core::GroupLimits;
///
/// // At most two calls of a receiver at a time, ten a second, and up to five after a pause.
/// const RECEIVER: GroupLimits = GroupLimits::new().max_active(2).rate(10.0, 5);
/// ```
#[derive(Clone, Debug)]
#[must_use = "limits do nothing until they are set"]
pub struct GroupLimits {
    share: Share,
    bucket: Option<Bucket>,
}

/// The limits of a group that need no time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    pub(crate) max_active: u32,
    pub(crate) weight: NonZeroU16,
}

impl GroupLimits {
    /// Creates limits that limit nothing.
    pub const fn new() -> Self {
        Self {
            share: Share {
                max_active: u32::MAX,
                weight: NonZeroU16::MIN,
            },
            bucket: None,
        }
    }

    /// Sets how many keys of the group are active at most. With zero none is handed out: after
    /// shutdown one at a time is, because a drain has to end.
    pub const fn max_active(mut self, keys: usize) -> Self {
        // No storage holds more.
        self.share.max_active = if keys < u32::MAX as usize {
            keys as u32
        } else {
            u32::MAX
        };
        self
    }

    /// Sets how many keys of the group are handed out per second, and how many at once after a
    /// pause. A token is charged when a key is handed out, so adds that are coalesced cost none.
    ///
    /// If the rate is not a positive number, or the burst is zero, no key is handed out, as with a
    /// [`max_active`](Self::max_active) of zero.
    pub const fn rate(mut self, per_second: f64, burst: u32) -> Self {
        if per_second > 0.0 && burst > 0 {
            self.bucket = Some(Bucket::new(per_second, burst));
        } else {
            self.share.max_active = 0;
        }
        self
    }

    /// Sets how many keys of the group are handed out in each of its turns. Zero counts as 1.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_core::{Fixed, GroupLimits, Groups, Instant, NoLimit, NoMetrics, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<(&str, u32), Fixed<8, u8, Groups<&str>>, NoLimit> =
    ///     Queue::with_groups(NoLimit, NoMetrics, |key| key.0);
    /// queue.at(now).limit_group("b", Some(GroupLimits::new().weight(2))).unwrap();
    ///
    /// let _ = queue.at(now).add_many([("a", 1), ("a", 2), ("b", 1), ("b", 2), ("b", 3)], |_| {});
    /// let turns: Vec<_> = std::iter::from_fn(|| Some(queue.at(now).try_get()?.key.0)).collect();
    /// assert_eq!(turns, ["a", "b", "b", "a", "b"]);
    /// ```
    pub const fn weight(mut self, keys: u16) -> Self {
        self.share.weight = match NonZeroU16::new(keys) {
            Some(keys) => keys,
            None => NonZeroU16::MIN,
        };
        self
    }

    pub(crate) const fn share(&self) -> Share {
        self.share
    }

    pub(crate) fn into_bucket(self) -> Option<Bucket> {
        self.bucket
    }

    pub(crate) const fn bucket(&self) -> Option<&Bucket> {
        self.bucket.as_ref()
    }
}

impl Default for GroupLimits {
    fn default() -> Self {
        Self::new()
    }
}

/// The figures of a group: see [`Queue::group`](crate::Queue::group).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GroupState {
    /// How many of its keys are ready.
    pub ready: usize,
    /// How many are active.
    pub active: usize,
    /// How many the queue holds, for whatever reason.
    pub held: usize,
    /// Whether it may not start a run at present, because of its limits or a pause. Its rate counts
    /// only while it has ready keys.
    pub blocked: bool,
    /// Whether it is [paused](crate::Session::pause_group). Shutdown ends the pause.
    pub paused: bool,
}
