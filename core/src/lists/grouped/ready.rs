//! The ready keys of groups, as the lists of a queue.

use crate::Instant;
use crate::id::SlotId;
use crate::lists::leveled::LevelArray;
use crate::lists::{List, Lists};
use crate::storage::{Located, Slots};

use super::{Backing, GroupedLists, Members, Ring, Seat};

impl<B: Backing> Lists for GroupedLists<B> {
    type Group = B::Name;
    type Seat = Seat<B>;
    type Index = B::Index;
    type Links = B::Members;

    const BLOCKS: bool = true;
    const FEW_GROUPS: bool = B::FEW_GROUPS;

    fn seat(&mut self, name: &B::Name, now: Instant) -> Option<Seat<B>> {
        let seat = self.groups.locate(name);
        if let Located::Found(_) = seat {
            return Some(seat);
        }
        self.forget_some(now);
        if self.groups.vacancy().is_none() {
            self.forget_longest_gone();
        }
        self.groups.vacancy().map(|_| seat)
    }

    fn has_seat(&self) -> bool {
        !B::FEW_GROUPS || self.groups.vacancy().is_some() || self.leaving.len() > 0
    }

    fn admit(&mut self, id: SlotId, name: B::Name, seat: Seat<B>) {
        let seat = match seat {
            Located::Found(group) => match self.groups.slot_mut(group) {
                Some(slot) if slot.key == name => {
                    if slot.meta.members > 0 {
                        slot.meta.members += 1;
                        return self.members.set_group(id, group);
                    }
                    seat
                }
                // It has gone with the last of its keys.
                _ => self.groups.locate(&name),
            },
            Located::Absent(_) => seat,
        };
        let group = self.enter(name, seat).unwrap_or(SlotId::NONE);
        self.members.set_group(id, group);
        if let Some(own) = self.group_mut(group) {
            own.members += 1;
        }
    }

    fn dismiss(&mut self, id: SlotId) {
        let group = self.members.group(id);
        if let Some(own) = self.group_mut(group) {
            own.members -= 1;
            if own.members == 0 {
                self.retire(group);
            }
        }
    }

    #[inline]
    fn push_ready(&mut self, id: SlotId, level: u8, at: Instant) {
        let (group, level) = (self.members.group(id), usize::from(level));
        let Some(slot) = self.groups.slot_mut(group) else {
            return;
        };
        let mut own = &mut slot.meta;
        let only = own.ready == 0;
        if only && (own.is_blocked || own.generation != self.generation) {
            let rests = own.is_resting && self.rest_until(group) > at;
            if let Some(own) = self.group_mut(group) {
                own.is_resting = rests;
            }
            self.refresh(group);
            let Some(slot) = self.groups.slot_mut(group) else {
                return;
            };
            own = &mut slot.meta;
        }
        let Some(lane) = own.lanes.get_mut(level) else {
            return;
        };
        lane.keys.push_back(&mut self.members, id);
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
        let own = &mut self.groups.slot_mut(group)?.meta;
        let share = own.own.unwrap_or(self.limits.share());
        let lane = own.lanes.get_mut(level)?;
        let id = lane.keys.pop_front(&mut self.members)?;
        own.ready -= 1;
        own.active += 1;
        let is_limited =
            own.active >= share.max_active || own.has_rate || own.generation != self.generation;
        let is_empty = lane.keys.len() == 0;
        lane.served = lane.served.saturating_add(1);
        if !is_empty && lane.served >= share.weight.get() {
            // The end of the turn is before the next group.
            lane.served = 0;
            *self.turns.get_mut(level)? = Ring(lane.turn.next);
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
        let group = self.members.group(id);
        if let Some(own) = self.group_mut(group) {
            own.active -= 1;
            if own.is_blocked || self.outdated > 0 {
                self.refresh(group);
            }
        }
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

    #[inline]
    fn catch_up(&mut self, most: u8) -> bool {
        (self.review > 0 || self.outdated > 0) && self.review_some(most)
    }

    fn needs_time(&self) -> bool {
        self.limits.bucket().is_some() || !self.resting.is_empty() || self.rated > 0
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
        let depth = self.depths.get(usize::from(level));
        depth.map_or(0, |depth| depth.ready + depth.dirty)
    }

    fn records(&self) -> (&List<B::Index>, &B::Members) {
        (&self.records, &self.members)
    }

    fn records_mut(&mut self) -> (&mut List<B::Index>, &mut B::Members) {
        (&mut self.records, &mut self.members)
    }

    fn retain_record(&mut self, id: SlotId) {
        self.records.push_back(&mut self.members, id);
        if let Some(records) = self.records_of_group(id) {
            *records += 1;
        }
    }

    fn discard_record(&mut self, id: SlotId) {
        let before = self.records.len();
        self.records.remove(&mut self.members, id);
        if self.records.len() == before {
            return;
        }
        if let Some(records) = self.records_of_group(id) {
            *records -= 1;
        }
    }

    fn group_of_records(&self, id: SlotId) -> Option<SlotId> {
        let group = self.members.group(id);
        let own = self.group(group)?;
        let leaves = own.records == own.members && own.own.is_none() && !own.paused;
        leaves.then_some(group)
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
                    id = lane.keys.after(&self.members, id)?;
                }
                return Some(id);
            }
        }
        None
    }
}
