//! The ready keys of groups, as the lists of a queue.

use crate::Instant;
use crate::id::SlotId;
use crate::lists::{List, Lists};
use crate::storage::{Located, Slots};

use super::{Backing, GroupedLists, LevelArray, Members};

impl<B: Backing> Lists for GroupedLists<B> {
    type Group = B::Name;
    type Seat = Located;
    type Index = B::Index;
    type Links = B::Links;

    const BLOCKS: bool = true;

    fn seat(&mut self, name: &B::Name, now: Instant) -> Option<Located> {
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

    fn admit(&mut self, id: SlotId, name: B::Name, seat: Located) {
        let seat = match seat {
            Located::Found(group) => match self.groups.slot(group) {
                Some(slot) if slot.key == name => seat,
                // It has gone with the last of its keys.
                _ => self.groups.locate(&name),
            },
            Located::Absent(_) => seat,
        };
        let Some(group) = self.enter(name, seat) else {
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

    fn pop_ready(&mut self, level: u8, now: Instant) -> Option<SlotId> {
        let level = usize::from(level);
        let group = self.turns.get(level)?.first()?;
        let id = self.first_of(group, level)?;
        self.take_out(id, level);
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

    fn records(&self) -> (&List<B::Index>, &B::Links) {
        (&self.records, &self.links)
    }

    fn records_mut(&mut self) -> (&mut List<B::Index>, &mut B::Links) {
        (&mut self.records, &mut self.links)
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
