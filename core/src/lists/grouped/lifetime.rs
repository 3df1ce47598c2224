//! Groups come and go with their keys.

use crate::Instant;
use crate::id::SlotId;
use crate::storage::{Located, Phase, Slots};

use super::turns::GroupLinks;
use super::{Backing, Group, GroupedLists, LevelArray};

impl<B: Backing> GroupedLists<B> {
    /// Forgets a group that has neither keys nor limits of its own, or keeps it among those that
    /// leave, if it still has to earn tokens.
    pub(super) fn retire(&mut self, group: SlotId) {
        let Some(own) = self.group(group).filter(|own| own.is_unused()) else {
            return;
        };
        if own.bucket.is_some() {
            let groups = &mut self.groups;
            self.leaving
                .push_back(&mut GroupLinks::<B> { groups }, group);
        } else {
            self.forget(group);
        }
    }

    fn forget(&mut self, group: SlotId) {
        self.outdated -= usize::from(self.is_outdated(group));
        if !self.resting.is_empty() {
            let _ = self.resting.remove(group);
        }
        self.groups.release(group);
    }

    /// Forgets groups that have left and have earned their tokens: at most two, for one that comes.
    pub(super) fn forget_some(&mut self, now: Instant) {
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

    /// Forgets the group that has left longest, although it has tokens to earn: as with failure
    /// records, what is remembered makes way for what is to be done.
    pub(super) fn forget_longest_gone(&mut self) {
        if let Some(group) = self.leaving.first() {
            self.stay(group);
            self.forget(group);
        }
    }

    /// A group that was leaving is needed again.
    pub(super) fn stay(&mut self, group: SlotId) {
        let groups = &mut self.groups;
        self.leaving.remove(&mut GroupLinks::<B> { groups }, group);
    }

    /// Gives a group the bucket of its limits, full, unless it has had one like it.
    pub(super) fn fill_bucket(&mut self, group: SlotId) {
        let Some(slot) = self.groups.slot_mut(group) else {
            return;
        };
        let own = &mut slot.meta;
        if own.generation != self.generation {
            own.generation = self.generation;
            self.outdated -= 1;
        }
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

    /// Adds a group, if it is not there. `None` if there is no room for one more.
    pub(super) fn enter(&mut self, name: B::Name, seat: Located) -> Option<SlotId> {
        match seat {
            Located::Found(group) => {
                if self.group(group).is_some_and(Group::is_unused) {
                    self.stay(group);
                }
                Some(group)
            }
            Located::Absent(hash) => {
                let vacancy = self.groups.vacancy()?;
                let own = Group::new(B::Lanes::EMPTY, &self.limits, self.generation, self.closed);
                self.groups.claim(vacancy, hash, name, own, Phase::Idle);
                Some(vacancy)
            }
        }
    }
}
