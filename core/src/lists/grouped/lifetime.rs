//! Adds groups with their first keys, and forgets them after their last. Owns when a group is
//! added, kept and forgotten; never blocks a group.

use crate::Instant;
use crate::array::{ConstDefault, Optional};
use crate::id::SlotId;
use crate::lists::Link;
use crate::store::{Phase, Slots};

use super::rates::KeepRates;
use super::turns::GroupLinks;
use super::{Backing, Group, GroupLimits, GroupedLists, Place};

impl<B: Backing> Group<B> {
    fn new(limits: &GroupLimits<B::Limit>, generation: u32, closed: bool) -> Self {
        let mut rate = <B::Rates as KeepRates>::OfGroup::default();
        rate.set(|rate| rate.exists = limits.rate_limit().is_some());
        Self {
            lanes: ConstDefault::DEFAULT,
            ready: 0,
            total: 0,
            records: 0,
            active: 0,
            own: None,
            generation,
            rate,
            paused: false,
            is_blocked: limits.share().max_active == 0 && !closed,
            link: Link::UNLINKED,
        }
    }

    /// Whether nothing but missing tokens keeps it.
    pub(super) fn is_unused(&self) -> bool {
        self.total == 0 && self.own.is_none() && !self.paused
    }
}

impl<B: Backing> GroupedLists<B> {
    /// Forgets a group that has neither keys nor limits of its own. If it has a rate, it becomes a
    /// leaving group first.
    pub(super) fn retire(&mut self, group: SlotId) {
        let Some(own) = self.group(group).filter(|own| own.is_unused()) else {
            return;
        };
        if own.rate.get().exists {
            if let Some(leaving) = self.rates.leaving() {
                let groups = &mut self.groups;
                leaving.push_back(&mut GroupLinks::<B> { groups }, group);
            }
        } else {
            self.forget(group);
        }
    }

    /// Whether there is room for another group. Evicts leaving groups if necessary.
    pub(super) fn has_room_for_one(&mut self, now: Instant) -> bool {
        self.forget_some(now);
        if self.groups.vacancy().is_none() {
            self.forget_longest_gone();
        }
        self.groups.vacancy().is_some()
    }

    fn forget(&mut self, group: SlotId) {
        self.outdated -= usize::from(self.is_outdated(group));
        self.rates.wake(group);
        self.groups.free(group);
    }

    /// Forgets leaving groups whose bucket is full: at most two for each new group.
    fn forget_some(&mut self, now: Instant) {
        for _ in 0..2 {
            let Some(group) = self.rates.first_leaving() else {
                return;
            };
            self.see_limits(group);
            let rate = self.rate_of(group);
            if rate.is_some_and(|rate| !rate.is_earned(now)) {
                return;
            }
            self.stay(group);
            self.forget(group);
        }
    }

    /// Forgets the oldest leaving group, even if its bucket is not full. New work matters more than
    /// records, as with failure records.
    fn forget_longest_gone(&mut self) {
        if let Some(group) = self.rates.first_leaving() {
            self.stay(group);
            self.forget(group);
        }
    }

    /// Stops the leaving of a group, if it was leaving.
    pub(super) fn stay(&mut self, group: SlotId) {
        if let Some(leaving) = self.rates.leaving() {
            let groups = &mut self.groups;
            leaving.remove(&mut GroupLinks::<B> { groups }, group);
        }
    }

    /// Adds a group with so many keys. `None` if there is no room.
    #[inline]
    pub(super) fn add(&mut self, name: B::Name, place: Place<B>, keys: u32) -> Option<SlotId> {
        let vacancy = self.groups.vacancy()?;
        let mut own = Group::new(&self.limits, self.generation, self.closed);
        own.total = keys;
        self.groups.claim(vacancy, place, name, own, Phase::Idle);
        self.begin_rate(vacancy, self.limits.rate_limit());
        Some(vacancy)
    }
}
