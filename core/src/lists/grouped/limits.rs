//! The limits of groups: active runs, rates, weights and pauses. Owns whether a group may start a
//! run; never moves a key.

use core::borrow::Borrow;
use core::hash::Hash;
use core::num::NonZeroU16;

use crate::Instant;
use crate::array::Optional;
use crate::id::SlotId;
use crate::outcome::Why;
use crate::rate::{Rate, RateLimit};
use crate::store::{Located, Slots};

use super::rates::{GroupRates, KeepRates, Rates};
use super::{Backing, Group, GroupedLists, group_in};

/// The limits of a group. There are none by default, and the weight is 1. A drain keeps to them,
/// except for a limit of no active key at all.
///
/// # Examples
///
/// ```
/// use requeue::GroupLimits;
///
/// // At most two calls of a receiver at a time, ten a second, and up to five in a row after a rest.
/// const RECEIVER: GroupLimits = GroupLimits::new().max_active(2).rate(10.0, 5);
/// ```
#[derive(Clone, Debug)]
#[must_use = "limits do nothing until they are set"]
pub struct GroupLimits<R = Rates> {
    share: Share,
    rate: R,
}

/// The limits of a group that need no time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    pub(crate) max_active: u32,
    pub(crate) weight: NonZeroU16,
}

impl<R: GroupRates> GroupLimits<R> {
    /// Creates limits that limit nothing.
    pub const fn new() -> Self {
        Self {
            share: Share {
                max_active: u32::MAX,
                weight: NonZeroU16::MIN,
            },
            rate: R::DEFAULT,
        }
    }

    /// Sets how many keys of the group are active at most. With zero none is handed out: after
    /// shutdown one at a time is, because a drain has to end.
    pub const fn max_active(mut self, keys: usize) -> Self {
        // No storage has more keys.
        self.share.max_active = if keys < u32::MAX as usize {
            keys as u32
        } else {
            u32::MAX
        };
        self
    }

    /// Sets how many keys of the group are handed out in each of its turns. Zero counts as 1.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::limiter::NoLimit;
    /// use requeue::priority::Groups;
    /// use requeue::storage::Fixed;
    /// use requeue::{GroupLimits, Instant, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<(&str, u32), Groups<&str>, NoLimit, Fixed<8>> =
    ///     Queue::with_groups(NoLimit, (), |key| key.0);
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

    pub(super) const fn share(&self) -> Share {
        self.share
    }

    pub(super) fn rate_limit(&self) -> Option<RateLimit> {
        self.rate.limit()
    }
}

impl GroupLimits {
    /// Sets how many keys of the group are handed out per second, and how many in a row after a
    /// time without runs. A token is charged when a key is handed out, so adds that are coalesced
    /// cost none. The rate is exact over time: rounding errors do not add up.
    ///
    /// If the rate is not a positive number, or the burst is zero, no key is handed out, as with a
    /// [`max_active`](Self::max_active) of zero.
    pub const fn rate(mut self, per_second: f64, burst: u32) -> Self {
        let limit = RateLimit::new(per_second, burst);
        if limit.is_positive() {
            self.rate = Rates(Some(limit));
        } else {
            self.share.max_active = 0;
        }
        self
    }
}

impl<R: GroupRates> Default for GroupLimits<R> {
    fn default() -> Self {
        Self::new()
    }
}

/// The figures of a group: see [`Queue::group`](crate::Queue::group).
///
/// # Examples
///
/// ```
/// use requeue::limiter::NoLimit;
/// use requeue::priority::Groups;
/// use requeue::storage::Fixed;
/// use requeue::{GroupLimits, Instant, Queue};
///
/// let now = Instant::EPOCH;
/// let mut queue: Queue<(&str, u32), Groups<&str>, NoLimit, Fixed<8>> =
///     Queue::with_groups(NoLimit, (), |key| key.0);
/// queue.at(now).limit_groups(GroupLimits::new().max_active(2).rate(10.0, 5));
/// let _ = queue.at(now).add(("a", 1));
/// let a = queue.group("a").unwrap();
/// assert_eq!((a.max_active, a.rate, a.weight), (Some(2), Some((10.0, 5)), 1));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct GroupState {
    /// How many of its keys are ready.
    pub ready: usize,
    /// How many are active.
    pub active: usize,
    /// How many the queue has in any state: also delayed, and kept only for their failures.
    pub total: usize,
    /// Whether it may not start a run at present, because of its limits or a pause. Its rate counts
    /// only while it has ready keys.
    pub blocked: bool,
    /// Whether it is [paused](crate::Session::pause_group). Shutdown ends the pause.
    pub paused: bool,
    /// How many of its keys may be [active](GroupLimits::max_active) at a time. `None` if that is
    /// not limited.
    pub max_active: Option<usize>,
    /// How many of its keys are handed out in each of its turns.
    pub weight: u16,
    /// Its [rate](GroupLimits::rate): keys per second, and the burst. `None` if it has none.
    pub rate: Option<(f64, u32)>,
}

impl<B: Backing> Group<B> {
    /// Whether it may start a run. Shutdown lifts limits that would prevent the end of a drain.
    pub(super) fn may_start(&self, limits: &GroupLimits<B::Limit>, closed: bool) -> bool {
        !self.rate.get().is_resting && self.is_within(limits, closed)
    }

    /// Whether it may start a run, ignoring its rate.
    pub(super) fn is_within(&self, limits: &GroupLimits<B::Limit>, closed: bool) -> bool {
        let share = self.own.unwrap_or(limits.share());
        let most = share.max_active.max(u32::from(closed));
        self.active < most && (closed || !self.paused)
    }
}

impl<B: Backing> GroupedLists<B> {
    /// Sets the common limits, of groups without limits of their own.
    pub(crate) fn limit_all(&mut self, limits: GroupLimits<B::Limit>) {
        self.generation = self.generation.wrapping_add(1);
        if !is_same(self.limits.rate_limit(), limits.rate_limit().as_ref()) {
            self.rates.note_change(self.generation);
        }
        self.limits = limits;
        self.outdated = self.groups.len();
        self.review_turns();
        self.review_all();
    }

    /// Sets the limits of a group, or removes them. Returns the name if there is no room.
    pub(crate) fn limit(
        &mut self,
        name: B::Name,
        limits: Option<GroupLimits<B::Limit>>,
    ) -> Result<(), B::Name> {
        self.change(name, limits.is_none(), |lists, group| {
            // A common rate that is no longer the group's may have changed before.
            lists.see_limits(group);
            let share = limits.as_ref().map(GroupLimits::share);
            let rate = limits.and_then(|limits| limits.rate_limit());
            if let Some(own) = group_in::<B>(&mut lists.groups, group) {
                own.own = share;
                lists.rates.count_own(own.rate.get().is_own, rate.is_some());
                own.rate.set(|own| own.is_own = rate.is_some());
            }
            let rate = match share {
                Some(_) => rate,
                None => lists.limits.rate_limit(),
            };
            lists.set_rate(group, rate);
        })
    }

    /// Pauses a group. Returns the name if there is no room.
    pub(crate) fn pause(&mut self, name: B::Name) -> Result<(), B::Name> {
        if self.closed {
            return Ok(());
        }
        self.change(name, false, |lists, group| {
            if let Some(own) = lists.group_mut(group) {
                own.paused = true;
            }
        })
    }

    pub(crate) fn unpause<N>(&mut self, name: &N)
    where
        B::Name: Borrow<N>,
        N: Eq + Hash + ?Sized,
    {
        let Some(group) = self.groups.locate(name).found() else {
            return;
        };
        // A group that is not paused may be leaving, and must not be kept because of this call.
        if let Some(own) = self.group_mut(group).filter(|own| own.paused) {
            own.paused = false;
            self.refresh(group);
            self.retire(group);
        }
    }

    pub(crate) fn state<N>(&self, name: &N) -> Option<GroupState>
    where
        B::Name: Borrow<N>,
        N: Eq + Hash + ?Sized,
    {
        let group = self.groups.locate(name).found()?;
        Some(self.group_at(group)?.1)
    }

    pub(crate) fn len(&self) -> usize {
        self.groups.len()
    }

    /// One more than the highest slot of a group.
    pub(crate) fn bound(&self) -> usize {
        self.groups.bound()
    }

    pub(crate) fn group_at(&self, group: SlotId) -> Option<(&B::Name, GroupState)> {
        let slot = self.groups.slot(group)?;
        let own = &slot.meta;
        // Without ready keys the group has no deadline, so nothing notices that it has a token
        // again.
        let waits_for_token = own.rate.get().is_resting && own.ready > 0;
        let share = own.own.unwrap_or(self.limits.share());
        let rate = self.rate_of(group).map(|rate| rate.limit);
        let rate = own.own.map_or(self.limits.rate_limit(), |_| rate);
        let state = GroupState {
            ready: own.ready as usize,
            active: own.active as usize,
            total: own.total as usize,
            blocked: waits_for_token || !own.is_within(&self.limits, self.closed),
            paused: own.paused && !self.closed,
            max_active: (share.max_active != u32::MAX).then_some(share.max_active as usize),
            weight: share.weight.get(),
            rate: rate.map(|rate| (rate.per_second, rate.burst)),
        };
        Some((&slot.key, state))
    }

    /// Why a group may not start a run. Uses the present limits, even if the group has not seen
    /// them yet.
    pub(super) fn why(&self, group: SlotId, now: Instant) -> Option<Why> {
        let own = self.group(group)?;
        if own.paused && !self.closed {
            return Some(Why::GroupPaused);
        }
        if !own.is_within(&self.limits, self.closed) {
            return Some(Why::GroupAtLimit);
        }
        let until = self.rest_until(group);
        let rests = own.rate.get().is_resting && until.is_after(now) && self.keeps_rate(group);
        rests.then_some(Why::GroupNoToken { until })
    }

    /// Whether the rate of a group is still the one of its last check. A new bucket would be full.
    fn keeps_rate(&self, group: SlotId) -> bool {
        let has_changed = |former| self.rates.has_changed_since(former, self.generation);
        let own = self.group(group);
        own.is_none_or(|own| own.own.is_some() || !has_changed(own.generation))
    }

    /// Changes a group. Adds a missing group, unless the change only removes something.
    fn change(
        &mut self,
        name: B::Name,
        only_removes: bool,
        change: impl FnOnce(&mut Self, SlotId),
    ) -> Result<(), B::Name> {
        let group = match self.groups.locate(&name) {
            Located::Found(group) => group,
            Located::Absent(_) if only_removes => return Ok(()),
            Located::Absent(_) if self.groups.vacancy().is_none() => return Err(name),
            Located::Absent(place) => match self.add(name, place, 0) {
                Some(group) => group,
                None => return Ok(()),
            },
        };
        if self.group(group).is_some_and(Group::is_unused) {
            self.stay(group);
        }
        change(self, group);
        self.refresh(group);
        self.retire(group);
        Ok(())
    }

    /// Whether the common limits have changed since the last check of the group.
    pub(super) fn is_outdated(&self, group: SlotId) -> bool {
        let own = self.group(group);
        own.is_some_and(|own| own.generation != self.generation)
    }

    /// Applies the common limits to a group.
    pub(super) fn see_limits(&mut self, group: SlotId) {
        let Some(own) = group_in::<B>(&mut self.groups, group) else {
            return;
        };
        let (former, present) = (own.generation, self.generation);
        if former == present {
            return;
        }
        own.generation = present;
        self.outdated -= 1;
        if own.own.is_none() && self.rates.has_changed_since(former, present) {
            self.fill_bucket(group, self.limits.rate_limit());
        }
    }

    /// Gives a group a full bucket, unless it already has a bucket with this rate.
    fn set_rate(&mut self, group: SlotId, limit: Option<RateLimit>) {
        let old = self.rate_of(group).map(|old| &old.limit);
        if !is_same(limit, old) {
            self.fill_bucket(group, limit);
        }
    }

    /// Gives a group a full bucket of a rate, or no bucket.
    fn fill_bucket(&mut self, group: SlotId, limit: Option<RateLimit>) {
        let Some(own) = group_in::<B>(&mut self.groups, group) else {
            return;
        };
        own.rate.set(|rate| {
            rate.exists = limit.is_some();
            rate.is_resting = false;
        });
        self.begin_rate(group, limit);
        self.rates.wake(group);
    }

    pub(super) fn begin_rate(&mut self, group: SlotId, limit: Option<RateLimit>) {
        if let Some(limit) = limit {
            self.rates.begin(group, limit);
        }
    }

    /// The rate of a group, if it has one.
    pub(super) fn rate_of(&self, group: SlotId) -> Option<&Rate> {
        let own = self.group(group)?;
        self.rates.get(group).filter(|_| own.rate.get().exists)
    }

    /// When the rate of a group allows the next run.
    pub(super) fn rest_until(&self, group: SlotId) -> Instant {
        let rate = self.rates.get(group);
        rate.map_or(Instant::EPOCH, Rate::rest_until)
    }

    /// Checks a group that has got its first ready key, and is blocked or has not seen the present
    /// limits.
    #[cold]
    #[inline(never)]
    pub(super) fn look_again(&mut self, group: SlotId, at: Instant) {
        let until = self.rest_until(group);
        if let Some(own) = self.group_mut(group) {
            own.rate.set(|rate| rate.is_resting &= until > at);
        }
        self.refresh(group);
    }

    /// Charges a group that has handed out a key, if it is now at its limit or has a rate.
    #[inline(never)]
    pub(super) fn charge(&mut self, group: SlotId, now: Instant) {
        let Some(own) = group_in::<B>(&mut self.groups, group) else {
            return;
        };
        let rate = self.rates.get_mut(group);
        let rate = rate.filter(|_| own.rate.get().exists);
        if let Some(rate) = rate {
            rate.charge(now);
            let until = rate.rest_until();
            let rests = until > Instant::EPOCH;
            own.rate.set(|rate| rate.is_resting = rests);
            if rests && own.ready > 0 {
                self.rates.rest(group, until);
            }
        }
        self.refresh(group);
    }
}

/// Whether two rates are the same, or there is neither.
fn is_same(one: Option<RateLimit>, other: Option<&RateLimit>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => one.is(other),
        (one, other) => one.is_none() && other.is_none(),
    }
}
