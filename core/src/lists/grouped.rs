//! The ready keys of groups. Each level serves its groups in turn. Owns the groups of keys, and the
//! order of groups; never looks at a key or its deadline.
//!
//! Round robin: a group that may start a run is in the turn of each level at which it has ready
//! keys. The first group of the highest level gives its first key, and goes to the end once it has
//! given as many keys as its weight. So the first key of a group waits for one turn of the others,
//! however long their backlogs are (J. Nagle, "On packet switches with infinite storage", 1985).
//!
//! A group is *blocked* if its limits do not allow a run. It leaves every turn, and is not checked
//! again until one of its runs ends, its rate allows the next run, or its limits change.

use core::fmt;
use core::hash::Hash;

use crate::Instant;
use crate::array::{Array, ConstDefault, Optional};
use crate::id::{Index, SlotId};
use crate::outcome::Why;
use crate::store::fixed::FixedSlots;
use crate::store::{Located, Slots};

use super::{Link, Linked, List, Lists};

mod lifetime;
mod limits;
pub(crate) mod rates;
mod turns;

use limits::Share;
pub use limits::{GroupLimits, GroupState};
use rates::{GroupRates, KeepRates};

/// The storage of the lists of groups.
#[doc(hidden)]
pub trait Backing {
    /// The name of a group.
    type Name: Eq + Hash;
    /// The type of slot numbers of keys.
    type Index: Index;
    /// The type of slot numbers of groups.
    type GroupIndex: Index;
    /// The place of each key's slot.
    type Links: Array<Item = GroupLink<Self::Index, Self::GroupIndex>>;
    type Groups: Slots<Self::Name, Group<Self>>;
    /// Whether groups may have rates.
    type Limit: GroupRates;
    type Rates: KeepRates;
    /// A value for each priority level.
    type PerLevel<T: ConstDefault>: Array<Item = T>;

    const LEVELS: usize;
    /// Whether the number of groups is limited.
    const FEW_GROUPS: bool;
}

/// The groups of a queue without groups, which are never made.
impl Backing for () {
    type Name = ();
    type Index = u8;
    type GroupIndex = u8;
    type Links = [GroupLink<u8, u8>; 1];
    type Groups = FixedSlots<(), Group<Self>, 1, u8>;
    type Limit = ();
    type Rates = ();
    type PerLevel<T: ConstDefault> = [T; 1];

    const LEVELS: usize = 1;
    const FEW_GROUPS: bool = true;
}

/// A slot in its group. These values are adjacent, because they are used together.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct GroupLink<I, G> {
    link: Link<I>,
    group: G,
}

impl<I: Index, G: Index> ConstDefault for GroupLink<I, G> {
    const DEFAULT: Self = Self {
        link: Link::UNLINKED,
        group: G::NONE,
    };
}

impl<I: Index, G> Linked<I> for GroupLink<I, G> {
    #[inline]
    fn link(&self) -> Link<I> {
        self.link
    }

    #[inline]
    fn link_mut(&mut self) -> &mut Link<I> {
        &mut self.link
    }
}

/// Where a group would be found.
type Place<B> = <<B as Backing>::Groups as Slots<<B as Backing>::Name, Group<B>>>::Place;

/// Where a group is, or would be.
type Seat<B> = Located<Place<B>>;

/// The lists of a queue with groups. A group is a slot of `groups`, found by its name.
#[doc(hidden)]
pub struct GroupedLists<B: Backing> {
    links: B::Links,
    groups: B::Groups,
    /// Stored apart, because most groups have no rate.
    rates: B::Rates,
    levels: B::PerLevel<Level>,
    /// A bit for each level with a group in its turn.
    occupied: u32,
    /// The blocked groups with ready keys, longest blocked first.
    blocked: List<u32>,
    /// The common limits, of groups without limits of their own.
    limits: GroupLimits<B::Limit>,
    /// Counts changes of the common limits.
    generation: u32,
    /// How many groups have not seen the last change.
    outdated: usize,
    /// How many blocked groups still have to be checked, because limits have changed.
    review: usize,
    closed: bool,
    ready_len: usize,
    records: List<B::Index>,
}

/// A priority level.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Level {
    /// The group that gives the next key. The groups in a turn are in a circular list, so moving on
    /// by one sends a group to the end.
    next: u32,
    /// How many keys are ready, and how many dirty. Not counted with a single level.
    ready: usize,
    dirty: usize,
}

impl ConstDefault for Level {
    const DEFAULT: Self = Self {
        next: u32::NONE,
        ready: 0,
        dirty: 0,
    };
}

/// A group, without its name.
#[doc(hidden)]
pub struct Group<B: Backing + ?Sized> {
    /// Its ready keys, by level.
    lanes: B::PerLevel<Lane<B::Index>>,
    ready: u32,
    /// How many keys it has, including keys that are kept only for their failures.
    total: u32,
    /// How many of its keys are kept only for their failures.
    records: u32,
    active: u32,
    /// The limits that were set for it by name.
    own: Option<Share>,
    /// The last change of the common limits that it has seen.
    generation: u32,
    rate: <B::Rates as KeepRates>::OfGroup,
    paused: bool,
    /// It may not start a run.
    is_blocked: bool,
    /// Its place among the blocked groups if it has ready keys, or among the leaving groups.
    link: Link<u32>,
}

/// The ready keys of a group at one level, and its place in the turn of that level.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lane<I> {
    keys: List<I>,
    /// How many keys it has given in this turn.
    served: u16,
    turn: Link<u32>,
}

impl<I: Index> ConstDefault for Lane<I> {
    const DEFAULT: Self = Self {
        keys: List::new(),
        served: 0,
        turn: Link::UNLINKED,
    };
}

impl<B: Backing> GroupedLists<B> {
    pub(crate) const fn new(groups: B::Groups, rates: B::Rates) -> Self {
        Self {
            links: ConstDefault::DEFAULT,
            groups,
            rates,
            levels: ConstDefault::DEFAULT,
            occupied: 0,
            blocked: List::new(),
            limits: GroupLimits::new(),
            generation: 0,
            outdated: 0,
            review: 0,
            closed: false,
            ready_len: 0,
            records: List::new(),
        }
    }

    fn group(&self, id: SlotId) -> Option<&Group<B>> {
        Some(&self.groups.slot(id)?.meta)
    }

    /// The group of the key of a slot.
    #[inline]
    fn group_of(&self, id: SlotId) -> SlotId {
        let link = self.links.get(id.index());
        let group = link.and_then(|link| link.group.get());
        group.unwrap_or(SlotId::NONE)
    }

    fn group_mut(&mut self, id: SlotId) -> Option<&mut Group<B>> {
        group_in::<B>(&mut self.groups, id)
    }

    /// How many keys of a key's group are kept only for their failures. Counted only if the number
    /// of groups is limited.
    fn records_of_group(&mut self, id: SlotId) -> Option<&mut u32> {
        if !B::FEW_GROUPS {
            return None;
        }
        let group = self.group_of(id);
        self.group_mut(group).map(|own| &mut own.records)
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

    /// The counts of a level, if there are several.
    fn depth_mut(&mut self, level: usize) -> Option<&mut Level> {
        if B::LEVELS == 1 {
            return None;
        }
        self.levels.get_mut(level)
    }

    /// Removes a key from its lane. No effect if it is not there.
    fn take_out(&mut self, id: SlotId, level: usize) {
        let group = self.group_of(id);
        let Some(own) = group_in::<B>(&mut self.groups, group) else {
            return;
        };
        let Some(lane) = own.lanes.get_mut(level) else {
            return;
        };
        let before = lane.keys.len();
        lane.keys.remove(&mut self.links, id);
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
            self.rates.wake(group);
            if is_blocked {
                self.leave_blocked(group);
            }
        }
    }
}

impl<B: Backing> Lists for GroupedLists<B> {
    type Group = B::Name;
    type Rates = B::Limit;
    type Backing = B;
    type Seat = Seat<B>;
    type Index = B::Index;
    type Links = B::Links;

    const BLOCKS: bool = true;
    const FEW_GROUPS: bool = B::FEW_GROUPS;

    #[inline]
    fn groups(&self) -> Option<&Self> {
        Some(self)
    }

    #[inline]
    fn groups_mut(&mut self) -> Option<&mut Self> {
        Some(self)
    }

    // Always inlined, because it runs for every new key of a busy queue. Other callers are
    // outlined.
    #[inline(always)]
    fn seat(&mut self, name: &B::Name, now: Instant) -> Option<Seat<B>> {
        let seat = self.groups.locate(name);
        match seat {
            Located::Found(_) => Some(seat),
            Located::Absent(_) => self.has_room_for_one(now).then_some(seat),
        }
    }

    fn has_seat(&self) -> bool {
        !B::FEW_GROUPS || self.groups.vacancy().is_some() || self.rates.first_leaving().is_some()
    }

    fn admit(&mut self, id: SlotId, name: B::Name, seat: Seat<B>) {
        let group = match seat {
            Located::Found(group) => {
                if let Some(own) = self.group_mut(group) {
                    own.total += 1;
                    if own.total == 1 {
                        self.stay(group);
                    }
                }
                group
            }
            Located::Absent(place) => match self.add(name, place, 1) {
                Some(group) => group,
                None => return,
            },
        };
        if let Some(link) = self.links.slot(id.index()) {
            link.group = B::GroupIndex::new(group);
        }
    }

    #[inline]
    fn dismiss(&mut self, id: SlotId) {
        let group = self.group_of(id);
        if let Some(own) = self.group_mut(group) {
            own.total -= 1;
            if own.total == 0 {
                self.retire(group);
            }
        }
    }

    #[inline]
    fn push_ready(&mut self, id: SlotId, level: u8, at: Instant) {
        let (group, level) = (self.group_of(id), usize::from(level));
        let Some(mut own) = group_in::<B>(&mut self.groups, group) else {
            return;
        };
        let only = own.ready == 0;
        if only && (own.is_blocked || own.generation != self.generation) {
            self.look_again(group, at);
            let Some(again) = group_in::<B>(&mut self.groups, group) else {
                return;
            };
            own = again;
        }
        let Some(lane) = own.lanes.get_mut(level) else {
            return;
        };
        lane.keys.push_back(&mut self.links, id);
        own.ready += 1;
        self.ready_len += 1;
        let first = lane.keys.len() == 1;
        let is_blocked = own.is_blocked;
        if let Some(depth) = self.depth_mut(level) {
            depth.ready += 1;
        }
        if !is_blocked {
            if first {
                self.join_turn(group, level);
                // It may give the next key of this level.
                if self.outdated > 0 && self.is_outdated(group) {
                    self.refresh(group);
                }
            }
        } else if only {
            self.wait(group);
        }
    }

    fn first_ready(&self) -> Option<SlotId> {
        let level = self.occupied.checked_ilog2()? as usize;
        self.first_of(self.turn_of(level)?, level)
    }

    #[inline]
    fn pop_ready(&mut self, level: u8, now: Instant) -> Option<SlotId> {
        let level = usize::from(level);
        let group = self.turn_of(level)?;
        let own = group_in::<B>(&mut self.groups, group)?;
        let share = own.own.unwrap_or(self.limits.share());
        let lane = own.lanes.get_mut(level)?;
        let id = lane.keys.pop_front(&mut self.links)?;
        own.ready -= 1;
        own.active += 1;
        let is_limited = own.active >= share.max_active
            || own.rate.get().exists
            || own.generation != self.generation;
        let is_empty = lane.keys.len() == 0;
        lane.served = lane.served.saturating_add(1);
        if !is_empty && lane.served >= share.weight.get() {
            // The end of the turn is before the next group.
            lane.served = 0;
            self.levels.get_mut(level)?.next = lane.turn.next;
        }
        self.ready_len -= 1;
        if let Some(depth) = self.depth_mut(level) {
            depth.ready -= 1;
        }
        if is_empty {
            self.leave_turn(group, level);
        }
        if is_limited {
            self.charge(group, now);
        }
        Some(id)
    }

    fn first_ready_at(&self, level: u8) -> Option<SlotId> {
        let level = usize::from(level);
        self.first_of(self.turn_of(level)?, level)
    }

    fn newest_below(&self, level: u8) -> Option<SlotId> {
        let lowest = self.occupied.trailing_zeros();
        if lowest >= u32::from(level) {
            return None;
        }
        let group = self.last_of_turn(lowest as usize)?;
        self.group(group)?.lanes.get(lowest as usize)?.keys.last()
    }

    fn first_held(&self) -> Option<SlotId> {
        self.first_ready().or_else(|| {
            let group = self.blocked.first()?;
            self.first_of(group, self.highest_of(group)?)
        })
    }

    fn remove_ready(&mut self, id: SlotId, level: u8) {
        self.take_out(id, usize::from(level));
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
            if own.is_blocked || self.outdated > 0 {
                self.refresh(group);
            }
        }
    }

    fn why_blocked(&self, id: SlotId, now: Instant) -> Option<Why> {
        self.why(self.group_of(id), now)
    }

    fn earliest(&self) -> Option<Instant> {
        self.rates.earliest()
    }

    fn is_due(&self, now: Instant) -> bool {
        self.rates.is_due(now)
    }

    fn come_due(&mut self, now: Instant) {
        if let Some(group) = self.rates.take_due(now) {
            if let Some(own) = self.group_mut(group) {
                own.rate.set(|rate| rate.is_resting = false);
            }
            self.refresh(group);
        }
    }

    #[inline]
    fn catch_up(&mut self, most: u8) -> bool {
        (self.review > 0 || self.outdated > 0) && self.review_some(most)
    }

    fn needs_time(&self) -> bool {
        self.limits.rate_limit().is_some() || self.rates.needs_time()
    }

    fn close(&mut self) {
        self.closed = true;
        self.review_all();
    }

    fn note_dirty(&mut self, level: u8) {
        if let Some(depth) = self.depth_mut(usize::from(level)) {
            depth.dirty += 1;
        }
    }

    fn note_clean(&mut self, level: u8) {
        if let Some(depth) = self.depth_mut(usize::from(level)) {
            depth.dirty -= 1;
        }
    }

    fn depth_at(&self, level: u8) -> usize {
        let depth = self.levels.get(usize::from(level));
        depth.map_or(0, |depth| depth.ready + depth.dirty)
    }

    fn records(&self) -> (&List<B::Index>, &B::Links) {
        (&self.records, &self.links)
    }

    fn records_mut(&mut self) -> (&mut List<B::Index>, &mut B::Links) {
        (&mut self.records, &mut self.links)
    }

    fn retain_record(&mut self, id: SlotId) {
        self.records.push_back(&mut self.links, id);
        if let Some(records) = self.records_of_group(id) {
            *records += 1;
        }
    }

    fn discard_record(&mut self, id: SlotId) {
        let before = self.records.len();
        self.records.remove(&mut self.links, id);
        if self.records.len() == before {
            return;
        }
        if let Some(records) = self.records_of_group(id) {
            *records -= 1;
        }
    }

    fn group_of_records(&self, id: SlotId) -> Option<SlotId> {
        let group = self.group_of(id);
        let own = self.group(group)?;
        let leaves = own.records == own.total && own.own.is_none() && !own.paused;
        leaves.then_some(group)
    }

    fn ready_at(&self, mut place: usize) -> Option<SlotId> {
        for level in (0..B::LEVELS).rev() {
            for group in 0..self.groups.bound() {
                let own = self.group(SlotId::from_index(group));
                let Some(lane) = own.and_then(|own| own.lanes.get(level)) else {
                    continue;
                };
                if place < lane.keys.len() {
                    return lane.keys.nth(&self.links, place);
                }
                place -= lane.keys.len();
            }
        }
        None
    }
}

/// A group, while other fields of the lists are in use.
#[inline]
fn group_in<B: Backing>(groups: &mut B::Groups, id: SlotId) -> Option<&mut Group<B>> {
    Some(&mut groups.slot_mut(id)?.meta)
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
