//! The ready keys of groups: each level serves its groups in turn.
//!
//! Round robin: each group that has ready keys, and may start a run, is in the turn of each level at
//! which it has them. The first of the highest level gives its first key, and goes to
//! the end once it has given as many as its weight. So a key that is first in its group waits for
//! one turn of the others, however long their backlogs are (J. Nagle, "On packet switches with
//! infinite storage", 1985).
//!
//! A group that may not start a run, because of its limits, is *blocked*: it leaves every turn, and
//! nothing looks at it until one of its runs ends, its rate allows the next run, or its limits
//! change.

use core::fmt;
use core::time::Duration;

use crate::Instant;
use crate::delay::Delays;
use crate::group::GroupLimits;
use crate::id::SlotId;
use crate::limiter::{Bucket, RateLimiter};
use crate::storage::{Located, Phase, Slots};

use super::{Link, Links, List, Lists};

mod backing;
mod control;
mod turns;

pub(crate) use backing::FixedGroups;
#[cfg(feature = "alloc")]
pub(crate) use backing::GrowableGroups;
pub(crate) use backing::{Backing, ConstDefault, LevelArray, Members, PerLevel};
pub(crate) use control::GroupControl;
use turns::GroupLinks;

/// The lists of a queue with groups. A group is a slot of `groups`, found by its name.
#[doc(hidden)]
pub struct GroupedLists<B: Backing> {
    links: B::Links,
    /// The group of each slot that a key has.
    members: B::Members,
    groups: B::Groups,
    /// The groups that give the next keys of each level, the next one first.
    turns: PerLevel<B, List<u32>>,
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
    /// How many blocked groups have still to be looked at, because limits have changed.
    review: usize,
    closed: bool,
    ready_len: usize,
    depths: PerLevel<B, Depth>,
    records: List<B::Index>,
}

/// A group, besides its name.
#[doc(hidden)]
#[derive(Debug)]
pub struct Group<L> {
    /// Its ready keys, by level.
    lanes: L,
    ready: usize,
    /// How many slots its keys have.
    members: usize,
    active: usize,
    /// The limits that were set for it by name.
    own: Option<GroupLimits>,
    /// The change of the common limits that it has seen.
    generation: u32,
    bucket: Option<Bucket>,
    /// Its rate does not allow the next run before `rest_until`. It has a deadline there, while it
    /// has ready keys.
    is_resting: bool,
    rest_until: Instant,
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
    fn new(lanes: L, limits: &GroupLimits, generation: u32) -> Self {
        Self {
            lanes,
            ready: 0,
            members: 0,
            active: 0,
            own: None,
            generation,
            bucket: limits.bucket().cloned(),
            is_resting: false,
            rest_until: Instant::EPOCH,
            paused: false,
            is_blocked: false,
            link: Link::UNLINKED,
        }
    }

    /// Whether it may start a run. Shutdown lifts what would keep a drain from ending.
    fn may_start(&self, limits: &GroupLimits, closed: bool) -> bool {
        let limits = self.own.as_ref().unwrap_or(limits);
        let most = limits.most_active().max(usize::from(closed));
        self.active < most && !self.is_resting && (closed || !self.paused)
    }
}

impl<B: Backing> GroupedLists<B> {
    pub(super) const fn from_parts(
        links: B::Links,
        members: B::Members,
        groups: B::Groups,
        nodes: B::Nodes,
        turns: PerLevel<B, List<u32>>,
        depths: PerLevel<B, Depth>,
    ) -> Self {
        Self {
            links,
            members,
            groups,
            turns,
            occupied: 0,
            blocked: List::new(),
            leaving: List::new(),
            resting: Delays::new(nodes),
            limits: GroupLimits::new(),
            rated: 0,
            generation: 0,
            review: 0,
            closed: false,
            ready_len: 0,
            depths,
            records: List::new(),
        }
    }

    fn group_of(&self, id: SlotId) -> SlotId {
        self.members.get(id)
    }

    fn group(&self, id: SlotId) -> Option<&Group<B::Lanes>> {
        Some(&self.groups.slot(id)?.meta)
    }

    fn group_mut(&mut self, id: SlotId) -> Option<&mut Group<B::Lanes>> {
        Some(&mut self.groups.slot_mut(id)?.meta)
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

    /// Takes a key out of its lane. Returns false if it was not in it.
    fn take_out(&mut self, id: SlotId, level: usize) -> bool {
        let group = self.group_of(id);
        let Some(slot) = self.groups.slot_mut(group) else {
            return false;
        };
        let own = &mut slot.meta;
        let Some(lane) = own.lanes.get_mut(level) else {
            return false;
        };
        let before = lane.keys.len();
        lane.keys.remove(&mut self.links, id);
        if lane.keys.len() == before {
            return false;
        }
        own.ready -= 1;
        self.ready_len -= 1;
        if let Some(depth) = self.depths.get_mut(level) {
            depth.ready -= 1;
        }
        let (is_blocked, ready, emptied) = (own.is_blocked, own.ready, lane.keys.len() == 0);
        if emptied {
            lane.served = 0;
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
        true
    }

    /// A key of the group has been handed out: counts it, and charges the rate.
    fn start(&mut self, group: SlotId, level: usize, now: Instant) {
        let Some(slot) = self.groups.slot_mut(group) else {
            return;
        };
        let own = &mut slot.meta;
        own.active += 1;
        let weight = own.own.as_ref().unwrap_or(&self.limits).keys_per_turn();
        let rest = own.bucket.as_mut().map_or(Duration::ZERO, |bucket| {
            let _ = bucket.when(&mut (), now);
            // How long the next run would have to wait.
            bucket.clone().when(&mut (), now)
        });
        own.is_resting = !rest.is_zero();
        // A group that has given its last key has left the turn.
        let lane = own.lanes.get_mut(level).filter(|lane| lane.keys.len() > 0);
        let turn_ends = lane.is_some_and(|lane| {
            lane.served = lane.served.saturating_add(1);
            lane.served >= weight
        });
        own.rest_until = now + rest;
        if own.is_resting && own.ready > 0 {
            let _ = self.resting.schedule(group, own.rest_until);
        }
        if turn_ends {
            self.end_turn(group, level);
        }
        self.refresh(group);
    }

    /// Forgets a group that has neither keys nor limits of its own, or keeps it among those that
    /// leave, if it still has to earn tokens.
    fn retire(&mut self, group: SlotId) {
        let Some(own) = self.group(group) else {
            return;
        };
        if own.members > 0 || own.own.is_some() || own.paused {
            return;
        }
        if own.bucket.is_some() {
            let groups = &mut self.groups;
            self.leaving
                .push_back(&mut GroupLinks::<B> { groups }, group);
        } else {
            self.forget(group);
        }
    }

    fn forget(&mut self, group: SlotId) {
        let _ = self.resting.remove(group);
        self.groups.release(group);
    }

    /// Forgets groups that have left and have earned their tokens: at most two, for one that comes.
    fn forget_some(&mut self, now: Instant) {
        for _ in 0..2 {
            let Some(group) = self.leaving.first() else {
                return;
            };
            self.fill_bucket(group);
            let own = self.group(group);
            let bucket = own.and_then(|own| own.bucket.as_ref());
            if bucket.is_some_and(|bucket| !bucket.is_full(now)) {
                return;
            }
            self.stay(group);
            self.forget(group);
        }
    }

    /// A group that was leaving is needed again.
    fn stay(&mut self, group: SlotId) {
        let groups = &mut self.groups;
        self.leaving.remove(&mut GroupLinks::<B> { groups }, group);
    }

    /// Gives a group the bucket of its limits, full, unless it has had one like it.
    fn fill_bucket(&mut self, group: SlotId) {
        let Some(slot) = self.groups.slot_mut(group) else {
            return;
        };
        let own = &mut slot.meta;
        own.generation = self.generation;
        let limits = own.own.as_ref().unwrap_or(&self.limits);
        let same = match (limits.bucket(), &own.bucket) {
            (Some(new), Some(old)) => new.has_rate_of(old),
            (new, old) => new.is_none() && old.is_none(),
        };
        if !same {
            own.bucket = limits.bucket().cloned();
            own.is_resting = false;
            let _ = self.resting.remove(group);
        }
    }

    /// Finds a group, or adds one. `None` if there is no room for one more.
    fn enter(&mut self, name: B::Name) -> Option<SlotId> {
        match self.groups.locate(&name) {
            Located::Found(group) => {
                let own = self.group(group);
                if own.is_some_and(|own| own.members == 0 && own.own.is_none() && !own.paused) {
                    self.stay(group);
                }
                Some(group)
            }
            Located::Absent(hash) => {
                let vacancy = self.groups.vacancy()?;
                let own = Group::new(B::Lanes::EMPTY, &self.limits, self.generation);
                self.groups.claim(vacancy, hash, name, own, Phase::Idle);
                self.refresh(vacancy);
                Some(vacancy)
            }
        }
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

impl<B: Backing> Lists for GroupedLists<B> {
    type Group = B::Name;

    const BLOCKS: bool = true;

    fn has_room(&mut self, name: &B::Name, now: Instant) -> bool {
        if let Located::Found(_) = self.groups.locate(name) {
            return true;
        }
        self.forget_some(now);
        self.groups.vacancy().is_some()
    }

    fn admit(&mut self, id: SlotId, name: B::Name) {
        let Some(group) = self.enter(name) else {
            return;
        };
        self.members.set(id, group);
        if let Some(own) = self.group_mut(group) {
            own.members += 1;
        }
    }

    fn dismiss(&mut self, id: SlotId) {
        let group = self.group_of(id);
        self.members.set(id, SlotId::NONE);
        if let Some(own) = self.group_mut(group) {
            own.members -= 1;
        }
        self.retire(group);
    }

    fn push_ready(&mut self, id: SlotId, level: u8, at: Instant) {
        let (group, level) = (self.group_of(id), usize::from(level));
        if let Some(own) = self.group_mut(group).filter(|own| own.ready == 0) {
            own.is_resting &= own.rest_until > at;
            self.refresh(group);
        }
        let Some(slot) = self.groups.slot_mut(group) else {
            return;
        };
        let own = &mut slot.meta;
        let Some(lane) = own.lanes.get_mut(level) else {
            return;
        };
        lane.keys.push_back(&mut self.links, id);
        own.ready += 1;
        self.ready_len += 1;
        if let Some(depth) = self.depths.get_mut(level) {
            depth.ready += 1;
        }
        let (first, only) = (lane.keys.len() == 1, own.ready == 1);
        if own.is_resting && only {
            let _ = self.resting.schedule(group, own.rest_until);
        }
        if own.is_blocked && only {
            self.join_blocked(group);
        } else if !own.is_blocked && first {
            self.join_turn(group, level);
        }
    }

    fn first_ready(&self) -> Option<SlotId> {
        let level = self.occupied.checked_ilog2()? as usize;
        self.first_of(self.turns.get(level)?.first()?, level)
    }

    fn pop_ready(&mut self, now: Instant) -> Option<SlotId> {
        let level = self.occupied.checked_ilog2()? as usize;
        let group = self.turns.get(level)?.first()?;
        let id = self.first_of(group, level)?;
        let _ = self.take_out(id, level);
        self.start(group, level, now);
        Some(id)
    }

    fn first_ready_at(&self, level: u8) -> Option<SlotId> {
        let level = usize::from(level);
        self.first_of(self.turns.get(level)?.first()?, level)
    }

    fn newest_below(&self, level: u8) -> Option<SlotId> {
        let lowest = self.occupied.trailing_zeros();
        if lowest >= u32::from(level) {
            return None;
        }
        let group = self.turns.get(lowest as usize)?.last()?;
        self.group(group)?.lanes.get(lowest as usize)?.keys.last()
    }

    fn first_held(&self) -> Option<SlotId> {
        self.first_ready().or_else(|| {
            let group = self.blocked.first()?;
            self.first_of(group, self.highest_of(group)?)
        })
    }

    fn remove_ready(&mut self, id: SlotId, level: u8) {
        let _ = self.take_out(id, usize::from(level));
    }

    fn ready_len(&self) -> usize {
        self.ready_len
    }

    fn may_start(&self) -> bool {
        self.occupied != 0 || self.review > 0
    }

    fn end_run(&mut self, id: SlotId) {
        let group = self.group_of(id);
        if let Some(own) = self.group_mut(group) {
            own.active -= 1;
        }
        self.refresh(group);
    }

    fn earliest(&self) -> Option<Instant> {
        self.resting.earliest()
    }

    fn is_due(&self, now: Instant) -> bool {
        self.resting.is_due(now)
    }

    fn come_due(&mut self, now: Instant) {
        if let Some((group, _)) = self.resting.take_due(SlotId::NONE, now) {
            if let Some(own) = self.group_mut(group) {
                own.is_resting = false;
            }
            self.refresh(group);
        }
    }

    fn catch_up(&mut self, most: u8) -> bool {
        self.review_blocked(most);
        let stale = self.review_first(most);
        stale || (self.review > 0 && self.occupied == 0)
    }

    fn needs_time(&self) -> bool {
        self.limits.bucket().is_some() || !self.resting.is_empty() || self.rated > 0
    }

    fn close(&mut self) {
        self.closed = true;
        self.review_all();
    }

    fn note_dirty(&mut self, level: u8) {
        if let Some(depth) = self.depths.get_mut(usize::from(level)) {
            depth.dirty += 1;
        }
    }

    fn note_clean(&mut self, level: u8) {
        if let Some(depth) = self.depths.get_mut(usize::from(level)) {
            depth.dirty -= 1;
        }
    }

    fn depth_at(&self, level: u8) -> usize {
        let depth = self.depths.get(usize::from(level));
        depth.map_or(0, |depth| depth.ready + depth.dirty)
    }

    fn retain_record(&mut self, id: SlotId) {
        self.records.push_back(&mut self.links, id);
    }

    fn discard_record(&mut self, id: SlotId) {
        self.records.remove(&mut self.links, id);
    }

    fn oldest_record(&self) -> Option<SlotId> {
        self.records.first()
    }

    fn records_len(&self) -> usize {
        self.records.len()
    }

    fn record_after(&self, id: SlotId) -> Option<SlotId> {
        self.records.after(&self.links, id)
    }

    fn link(&self, id: SlotId) -> Link<u32> {
        self.links.link(id).convert()
    }

    fn set_link(&mut self, id: SlotId, link: Link<u32>) {
        self.links.set_link(id, link.convert());
    }

    fn ready_at(&self, mut place: usize) -> Option<SlotId> {
        for level in (0..B::LEVELS).rev() {
            for group in 0..self.groups.bound() {
                let own = self.group(SlotId::from_index(group));
                let Some(lane) = own.and_then(|own| own.lanes.get(level)) else {
                    continue;
                };
                if place >= lane.keys.len() {
                    place -= lane.keys.len();
                    continue;
                }
                let mut id = lane.keys.first()?;
                for _ in 0..place {
                    id = lane.keys.after(&self.links, id)?;
                }
                return Some(id);
            }
        }
        None
    }
}
