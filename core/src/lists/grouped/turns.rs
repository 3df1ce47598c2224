//! Which groups are served, in which order.

use crate::id::SlotId;
use crate::lists::{Link, Links, List};
use crate::storage::Slots;

use super::{Backing, GroupedLists, LevelArray};

impl<B: Backing> GroupedLists<B> {
    /// Blocks a group, or lets it take part again, after something that it depends on has changed.
    /// O(levels).
    pub(super) fn refresh(&mut self, group: SlotId) {
        if self.is_outdated(group) {
            self.fill_bucket(group);
        }
        let Some(slot) = self.groups.slot_mut(group) else {
            return;
        };
        let own = &mut slot.meta;
        let is_blocked = !own.may_start(&self.limits, self.closed);
        if is_blocked == core::mem::replace(&mut own.is_blocked, is_blocked) {
            return;
        }
        if own.ready == 0 {
            return;
        }
        if is_blocked {
            self.join_blocked(group);
        } else {
            self.leave_blocked(group);
        }
        for level in 0..B::LEVELS {
            if self.first_of(group, level).is_none() {
                continue;
            }
            if is_blocked {
                self.leave_turn(group, level);
            } else {
                self.join_turn(group, level);
            }
        }
    }

    /// Looks at a few of the groups in their turns again, because limits have changed. The others
    /// are looked at before they give a key.
    pub(super) fn review_turns(&mut self) {
        let mut left = REVIEWS_MAX;
        for level in (0..B::LEVELS).rev() {
            let mut next = self.turns.get(level).and_then(List::first);
            while let Some(group) = next.filter(|_| left > 0) {
                left -= 1;
                let groups = &mut self.groups;
                let turn = self.turns.get(level);
                next = turn.and_then(|turn| turn.after(&Turn::<B> { groups, level }, group));
                self.refresh(group);
            }
        }
    }

    /// Looks at every blocked group again, because limits have changed: at a few of them now, and
    /// at the rest with the operations that follow.
    pub(super) fn review_all(&mut self) {
        self.review = self.blocked.len();
        self.review_blocked(REVIEWS_MAX);
    }

    /// Looks at so many of the blocked groups again, longest first.
    pub(super) fn review_blocked(&mut self, most: u8) {
        for _ in 0..most {
            let Some(group) = self.blocked.first().filter(|_| self.review > 0) else {
                self.review = 0;
                return;
            };
            self.review -= 1;
            self.leave_blocked(group);
            self.join_blocked(group);
            self.refresh(group);
        }
    }

    /// Blocks the groups that come first and may not start a run, because the limits have changed:
    /// at most so many. Returns whether there may be more.
    pub(super) fn review_first(&mut self, most: u8) -> bool {
        for _ in 0..most {
            let level = self.occupied.checked_ilog2().unwrap_or(0) as usize;
            let first = self.turns.get(level).and_then(|turn| turn.first());
            let stale = first.filter(|group| {
                self.group(*group).is_some_and(|own| {
                    own.generation != self.generation || !own.may_start(&self.limits, self.closed)
                })
            });
            match stale {
                Some(group) => self.refresh(group),
                None => return false,
            }
        }
        true
    }

    /// The group has given as many keys as its weight: it goes to the end.
    pub(super) fn end_turn(&mut self, group: SlotId, level: usize) {
        self.leave_turn(group, level);
        self.join_turn(group, level);
    }

    pub(super) fn join_turn(&mut self, group: SlotId, level: usize) {
        let groups = &mut self.groups;
        if let Some(turn) = self.turns.get_mut(level) {
            turn.push_back(&mut Turn::<B> { groups, level }, group);
            self.occupied |= 1 << level;
        }
    }

    pub(super) fn leave_turn(&mut self, group: SlotId, level: usize) {
        let groups = &mut self.groups;
        if let Some(turn) = self.turns.get_mut(level) {
            turn.remove(&mut Turn::<B> { groups, level }, group);
            if turn.len() == 0 {
                self.occupied &= !(1 << level);
            }
        }
        let own = self.group_mut(group);
        if let Some(lane) = own.and_then(|own| own.lanes.get_mut(level)) {
            lane.served = 0;
        }
    }

    pub(super) fn join_blocked(&mut self, group: SlotId) {
        let groups = &mut self.groups;
        self.blocked
            .push_back(&mut GroupLinks::<B> { groups }, group);
    }

    pub(super) fn leave_blocked(&mut self, group: SlotId) {
        let groups = &mut self.groups;
        self.blocked.remove(&mut GroupLinks::<B> { groups }, group);
    }
}

/// How many blocked groups a change of limits looks at.
const REVIEWS_MAX: u8 = 8;

/// The links of the groups in the turn of a level.
struct Turn<'a, B: Backing> {
    groups: &'a mut B::Groups,
    level: usize,
}

impl<B: Backing> Links<u32> for Turn<'_, B> {
    fn link(&self, id: SlotId) -> Link<u32> {
        let group = self.groups.slot(id);
        let lane = group.and_then(|group| group.meta.lanes.get(self.level));
        lane.map_or(Link::UNLINKED, |lane| lane.turn)
    }

    fn set_link(&mut self, id: SlotId, link: Link<u32>) {
        let group = self.groups.slot_mut(id);
        if let Some(lane) = group.and_then(|group| group.meta.lanes.get_mut(self.level)) {
            lane.turn = link;
        }
    }
}

/// The links of the blocked groups, and of those that leave.
pub(super) struct GroupLinks<'a, B: Backing> {
    pub(super) groups: &'a mut B::Groups,
}

impl<B: Backing> Links<u32> for GroupLinks<'_, B> {
    fn link(&self, id: SlotId) -> Link<u32> {
        let group = self.groups.slot(id);
        group.map_or(Link::UNLINKED, |group| group.meta.link)
    }

    fn set_link(&mut self, id: SlotId, link: Link<u32>) {
        if let Some(group) = self.groups.slot_mut(id) {
            group.meta.link = link;
        }
    }
}
