//! Groups come and go with their keys.

use crate::Instant;
use crate::id::SlotId;
use crate::limiter::Bucket;
use crate::lists::leveled::LevelArray;
use crate::storage::{Located, Phase, Slots};

use super::turns::GroupLinks;
use super::{Backing, Group, GroupedLists, Rate, Rates, Seat};

impl<B: Backing> GroupedLists<B> {
    /// Forgets a group that has neither keys nor limits of its own, or keeps it among those that
    /// leave, if it still has to earn tokens.
    pub(super) fn retire(&mut self, group: SlotId) {
        let Some(own) = self.group(group).filter(|own| own.is_unused()) else {
            return;
        };
        if own.has_rate {
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
            self.see_limits(group);
            let has_rate = self.group(group).is_some_and(|own| own.has_rate);
            let rate = self.rates.rate(group).filter(|_| has_rate);
            if rate.is_some_and(|rate| !rate.bucket.is_full(now)) {
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

    /// Lets a group see the common limits.
    pub(super) fn see_limits(&mut self, group: SlotId) {
        let Some(slot) = self.groups.slot_mut(group) else {
            return;
        };
        let own = &mut slot.meta;
        if own.generation != self.generation {
            own.generation = self.generation;
            self.outdated -= 1;
        }
        if own.own.is_none() {
            self.set_rate(group, self.limits.bucket().cloned());
        }
    }

    /// Gives a group a bucket, full, unless it has had one like it.
    pub(super) fn set_rate(&mut self, group: SlotId, bucket: Option<Bucket>) {
        let Some(slot) = self.groups.slot_mut(group) else {
            return;
        };
        let own = &mut slot.meta;
        let old = self.rates.rate(group).filter(|_| own.has_rate);
        let same = match (&bucket, old) {
            (Some(new), Some(old)) => new.has_rate_of(&old.bucket),
            (new, old) => new.is_none() && old.is_none(),
        };
        if same {
            return;
        }
        own.has_rate = bucket.is_some();
        own.is_resting = false;
        self.begin_rate(group, bucket);
        let _ = self.resting.remove(group);
    }

    fn begin_rate(&mut self, group: SlotId, bucket: Option<Bucket>) {
        if let Some(bucket) = bucket {
            let rest_until = Instant::EPOCH;
            self.rates.set_rate(group, Rate { bucket, rest_until });
        }
    }

    /// Adds a group, if it is not there. `None` if there is no room for one more.
    pub(super) fn enter(&mut self, name: B::Name, seat: Seat<B>) -> Option<SlotId> {
        match seat {
            Located::Found(group) => {
                if self.group(group).is_some_and(Group::is_unused) {
                    self.stay(group);
                }
                Some(group)
            }
            Located::Absent(place) => {
                let vacancy = self.groups.vacancy()?;
                let own = Group::new(B::Lanes::EMPTY, &self.limits, self.generation, self.closed);
                self.groups.claim(vacancy, place, name, own, Phase::Idle);
                self.begin_rate(vacancy, self.limits.bucket().cloned());
                Some(vacancy)
            }
        }
    }
}
