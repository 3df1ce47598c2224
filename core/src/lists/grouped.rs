//! The ready keys of groups: each level serves its groups in turn.
//!
//! Round robin: each group that has ready keys, and may start a run, is in the turn of each level
//! at which it has them. The first of the highest level gives its first key, and goes to the end
//! once it has given as many as its weight. So a key that is first in its group waits for one turn
//! of the others, however long their backlogs are (J. Nagle, "On packet switches with infinite
//! storage", 1985).
//!
//! A group that may not start a run, because of its limits, is *blocked*: it leaves every turn, and
//! nothing looks at it until one of its runs ends, its rate allows the next run, or its limits
//! change.

use core::fmt;

use crate::Instant;
use crate::delay::Delays;
use crate::group::{GroupLimits, Share};
use crate::id::SlotId;
use crate::limiter::RateLimiter;
use crate::lists::leveled::{ConstDefault, LevelArray};
use crate::storage::{Located, Slots};

use super::{Link, List};

mod backing;
mod control;
mod lifetime;
mod ready;
mod turns;

pub(crate) use backing::FixedGroups;
#[cfg(feature = "alloc")]
pub(crate) use backing::GrowableGroups;
pub(crate) use backing::{Backing, Members, PerLevel};
use backing::{Rate, Rates};
pub(crate) use control::GroupControl;
use turns::Ring;

/// Where a group is, or would be.
pub(crate) type Seat<B> = Located<
    <<B as Backing>::Groups as Slots<<B as Backing>::Name, Group<<B as Backing>::Lanes>>>::Place,
>;

/// The lists of a queue with groups. A group is a slot of `groups`, found by its name.
#[doc(hidden)]
pub struct GroupedLists<B: Backing> {
    members: B::Members,
    groups: B::Groups,
    rates: B::Rates,
    /// The groups that give the next keys of each level, the next one first.
    turns: PerLevel<B, Ring>,
    /// A bit for each level with a group in its turn.
    occupied: u32,
    /// The groups that have ready keys and may not start a run, longest first.
    blocked: List<u32>,
    /// Groups that have neither keys nor limits of their own, but a bucket that may not be full, in
    /// the order in which their last keys left.
    leaving: List<u32>,
    /// When the rates of groups allow their next runs.
    resting: Delays<B::Nodes>,
    /// The limits of groups that have none of their own.
    limits: GroupLimits,
    /// How many groups have a rate of their own.
    rated: usize,
    /// Counts changes of these.
    generation: u32,
    /// How many groups have not seen the last of them.
    outdated: usize,
    /// How many blocked groups have still to be looked at, because limits have changed.
    review: usize,
    closed: bool,
    ready_len: usize,
    depths: PerLevel<B, Depth>,
    records: List<B::Index>,
}

/// A group, without its name.
#[doc(hidden)]
#[derive(Debug)]
pub struct Group<L> {
    /// Its ready keys, by level.
    lanes: L,
    ready: u32,
    /// How many slots its keys have.
    members: u32,
    /// How many of them are live for their failures alone.
    records: u32,
    active: u32,
    /// The limits that were set for it by name.
    own: Option<Share>,
    /// The change of the common limits that it has seen.
    generation: u32,
    /// It has a place among the rates,
    has_rate: bool,
    /// and that rate was set for it by name.
    owns_rate: bool,
    /// Its rate does not allow the next run now. It has a deadline while it has ready keys.
    is_resting: bool,
    paused: bool,
    /// It may not start a run.
    is_blocked: bool,
    /// Its place among the blocked groups, if it has ready keys, or among those that leave.
    link: Link<u32>,
}

/// How many keys of a level are ready, and how many dirty.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Depth {
    ready: usize,
    dirty: usize,
}

impl ConstDefault for Depth {
    const DEFAULT: Self = Self { ready: 0, dirty: 0 };
}

impl<L> Group<L> {
    fn new(lanes: L, limits: &GroupLimits, generation: u32, closed: bool) -> Self {
        Self {
            lanes,
            ready: 0,
            members: 0,
            records: 0,
            active: 0,
            own: None,
            generation,
            has_rate: limits.bucket().is_some(),
            owns_rate: false,
            is_resting: false,
            paused: false,
            is_blocked: limits.share().max_active == 0 && !closed,
            link: Link::UNLINKED,
        }
    }

    /// Whether nothing keeps it, except for tokens that it has to earn.
    fn is_unused(&self) -> bool {
        self.members == 0 && self.own.is_none() && !self.paused
    }

    /// Whether it may start a run. Shutdown lifts what would keep a drain from ending.
    fn may_start(&self, limits: &GroupLimits, closed: bool) -> bool {
        !self.is_resting && self.is_within(limits, closed)
    }

    /// Whether it may start a run, but for its rate.
    fn is_within(&self, limits: &GroupLimits, closed: bool) -> bool {
        let share = self.own.unwrap_or(limits.share());
        let most = share.max_active.max(u32::from(closed));
        self.active < most && (closed || !self.paused)
    }
}

impl<B: Backing> GroupedLists<B> {
    pub(super) const fn from_parts(
        members: B::Members,
        groups: B::Groups,
        nodes: B::Nodes,
        turns: PerLevel<B, Ring>,
        depths: PerLevel<B, Depth>,
    ) -> Self {
        Self {
            members,
            groups,
            rates: B::Rates::EMPTY,
            turns,
            occupied: 0,
            blocked: List::new(),
            leaving: List::new(),
            resting: Delays::new(nodes),
            limits: GroupLimits::new(),
            rated: 0,
            generation: 0,
            outdated: 0,
            review: 0,
            closed: false,
            ready_len: 0,
            depths,
            records: List::new(),
        }
    }

    fn group(&self, id: SlotId) -> Option<&Group<B::Lanes>> {
        Some(&self.groups.slot(id)?.meta)
    }

    /// Until when the rate of a group allows no run.
    fn rest_until(&self, group: SlotId) -> Instant {
        let rate = self.rates.rate(group);
        rate.map_or(Instant::EPOCH, |rate| rate.rest_until)
    }

    fn group_mut(&mut self, id: SlotId) -> Option<&mut Group<B::Lanes>> {
        Some(&mut self.groups.slot_mut(id)?.meta)
    }

    /// How many keys of the group of a key are live for their failures alone. Counted only where a
    /// group may have to make way.
    fn records_of_group(&mut self, id: SlotId) -> Option<&mut u32> {
        if !B::FEW_GROUPS {
            return None;
        }
        let group = self.members.group(id);
        self.group_mut(group).map(|own| &mut own.records)
    }

    /// Whether the common limits have changed since the group was looked at.
    fn is_outdated(&self, group: SlotId) -> bool {
        let own = self.group(group);
        own.is_some_and(|own| own.generation != self.generation)
    }

    /// The first key of a group at a level.
    fn first_of(&self, group: SlotId, level: usize) -> Option<SlotId> {
        self.group(group)?.lanes.get(level)?.keys.first()
    }

    /// The highest level at which a group has a ready key.
    fn highest_of(&self, group: SlotId) -> Option<usize> {
        let lanes = &self.group(group)?.lanes;
        let levels = (0..B::LEVELS).rev();
        levels.into_iter().find(|level| {
            let lane = lanes.get(*level);
            lane.is_some_and(|lane| lane.keys.len() > 0)
        })
    }

    /// How many keys there are at a level. Not counted with a single one.
    fn depth_mut(&mut self, level: usize) -> Option<&mut Depth> {
        if B::LEVELS == 1 {
            return None;
        }
        self.depths.get_mut(level)
    }

    /// Takes a key out of its lane. No effect if it is not in it.
    fn take_out(&mut self, id: SlotId, level: usize) {
        let group = self.members.group(id);
        let Some(slot) = self.groups.slot_mut(group) else {
            return;
        };
        let own = &mut slot.meta;
        let Some(lane) = own.lanes.get_mut(level) else {
            return;
        };
        let before = lane.keys.len();
        lane.keys.remove(&mut self.members, id);
        if lane.keys.len() == before {
            return;
        }
        own.ready -= 1;
        self.ready_len -= 1;
        let (is_blocked, ready, emptied) = (own.is_blocked, own.ready, lane.keys.len() == 0);
        if let Some(depth) = self.depth_mut(level) {
            depth.ready -= 1;
        }
        if !is_blocked && emptied {
            self.leave_turn(group, level);
        }
        if ready == 0 {
            let _ = self.resting.remove(group);
            if is_blocked {
                self.leave_blocked(group);
            }
        }
    }

    /// A group that has handed out a key is at its limit, or has a rate: charges it.
    #[inline(never)]
    fn charge(&mut self, group: SlotId, now: Instant) {
        let Some(slot) = self.groups.slot_mut(group) else {
            return;
        };
        let own = &mut slot.meta;
        let rate = self.rates.rate_mut(group).filter(|_| own.has_rate);
        if let Some(rate) = rate {
            let _ = rate.bucket.when(&mut (), now);
            // How long the next run would have to wait.
            let rest = rate.bucket.clone().when(&mut (), now);
            own.is_resting = !rest.is_zero();
            rate.rest_until = now + rest;
            if own.is_resting && own.ready > 0 {
                let _ = self.resting.schedule(group, rate.rest_until);
            }
        }
        self.refresh(group);
    }
}

impl<B: Backing> fmt::Debug for GroupedLists<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupedLists")
            .field("groups", &self.groups.len())
            .field("blocked", &self.blocked.len())
            .field("ready", &self.ready_len)
            .finish_non_exhaustive()
    }
}
