//! The order in which groups are served. Owns the turns of the levels and the list of blocked
//! groups; the limits of a group decide whether it may start a run.

use crate::array::{Array, Optional};
use crate::id::{Index, SlotId};
use crate::lists::{Link, Links};
use crate::store::Slots;

use super::rates::KeepRates;
use super::{Backing, GroupedLists, Level, group_in};

impl<B: Backing> GroupedLists<B> {
    /// Blocks or unblocks a group, after a change of its limits, its rate, its pause or its active
    /// runs. O(levels).
    pub(super) fn refresh(&mut self, group: SlotId) {
        if self.is_outdated(group) {
            self.see_limits(group);
        }
        let Some(own) = group_in::<B>(&mut self.groups, group) else {
            return;
        };
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

    /// Checks a few of the groups in the turns, because limits have changed. The others are checked
    /// before they give a key.
    pub(super) fn review_turns(&mut self) {
        let mut left = REVIEWS_MAX;
        for level in (0..B::LEVELS).rev() {
            let Some(last) = self.last_of_turn(level) else {
                continue;
            };
            let mut next = self.turn_of(level);
            while let Some(group) = next.filter(|_| left > 0) {
                left -= 1;
                let after = self.turn_link(group, level).next.get();
                next = after.filter(|_| group != last);
                self.refresh(group);
            }
        }
    }

    /// Checks every blocked group, because limits have changed: a few of them now, the rest with
    /// the next operations.
    pub(super) fn review_all(&mut self) {
        self.review = self.blocked.len();
        self.review_blocked(REVIEWS_MAX);
    }

    /// Checks groups whose limits have changed. Returns whether more have to be checked before a
    /// key is handed out.
    #[cold]
    pub(super) fn review_some(&mut self, most: u8) -> bool {
        self.review_blocked(most);
        let stale = self.review_first(most);
        stale || (self.review > 0 && self.occupied == 0)
    }

    /// Checks so many of the blocked groups, longest blocked first.
    fn review_blocked(&mut self, most: u8) {
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

    /// Checks at most so many groups that are first in a turn and have not seen the present limits.
    /// Returns whether there may be more. Checks every level, because an aged key is handed out
    /// before keys of higher levels.
    fn review_first(&mut self, most: u8) -> bool {
        let mut left = most;
        for level in (0..B::LEVELS).rev() {
            while let Some(group) = self.turn_of(level).filter(|group| self.is_outdated(*group)) {
                let Some(less) = left.checked_sub(1) else {
                    return true;
                };
                left = less;
                self.refresh(group);
            }
        }
        false
    }

    /// The group that gives the next key of a level.
    #[inline]
    pub(super) fn turn_of(&self, level: usize) -> Option<SlotId> {
        self.levels.get(level)?.next.get()
    }

    pub(super) fn last_of_turn(&self, level: usize) -> Option<SlotId> {
        self.turn_link(self.turn_of(level)?, level).previous.get()
    }

    #[inline]
    fn turn_link(&self, group: SlotId, level: usize) -> Link<u32> {
        let lane = self.group(group).and_then(|own| own.lanes.get(level));
        lane.map_or(Link::UNLINKED, |lane| lane.turn)
    }

    #[inline]
    fn turn_mut(&mut self, group: SlotId, level: usize) -> Option<&mut Link<u32>> {
        let lane = self.group_mut(group)?.lanes.get_mut(level)?;
        Some(&mut lane.turn)
    }

    /// Adds a group at the end, which is before the first.
    #[inline]
    pub(super) fn join_turn(&mut self, group: SlotId, level: usize) {
        let own = u32::new(group);
        let Some(Level { next: first, .. }) = self.levels.get_mut(level) else {
            return;
        };
        let (mut next, mut previous) = (*first, own);
        match next.get() {
            Some(first) => {
                if let Some(link) = self.turn_mut(first, level) {
                    previous = core::mem::replace(&mut link.previous, own);
                }
                if let Some(link) = self.turn_mut(previous.slot(), level) {
                    link.next = own;
                }
            }
            None => {
                next = own;
                *first = own;
                self.occupied |= 1 << level;
            }
        }
        if let Some(link) = self.turn_mut(group, level) {
            *link = Link { next, previous };
        }
    }

    #[inline]
    pub(super) fn leave_turn(&mut self, group: SlotId, level: usize) {
        let own = self.group_mut(group);
        let Some(lane) = own.and_then(|own| own.lanes.get_mut(level)) else {
            return;
        };
        lane.served = 0;
        let Link { next, previous } = core::mem::replace(&mut lane.turn, Link::UNLINKED);
        let Some(Level { next: first, .. }) = self.levels.get_mut(level) else {
            return;
        };
        if next == u32::new(group) {
            *first = u32::NONE;
            self.occupied &= !(1 << level);
            return;
        }
        if *first == u32::new(group) {
            *first = next;
        }
        if let Some(link) = self.turn_mut(previous.slot(), level) {
            link.next = next;
        }
        if let Some(link) = self.turn_mut(next.slot(), level) {
            link.previous = previous;
        }
    }

    /// Adds a blocked group that has got its first ready key to the waiting ones.
    #[inline(never)]
    pub(super) fn wait(&mut self, group: SlotId) {
        if self
            .group(group)
            .is_some_and(|own| own.rate.get().is_resting)
        {
            let until = self.rest_until(group);
            self.rates.rest(group, until);
        }
        self.join_blocked(group);
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

/// How many groups a change of limits checks at once.
const REVIEWS_MAX: u8 = 8;

/// The links of the blocked and of the leaving groups.
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

    fn set_next(&mut self, id: SlotId, next: u32) {
        if let Some(group) = self.groups.slot_mut(id) {
            group.meta.link.next = next;
        }
    }

    fn set_previous(&mut self, id: SlotId, previous: u32) {
        if let Some(group) = self.groups.slot_mut(id) {
            group.meta.link.previous = previous;
        }
    }
}
