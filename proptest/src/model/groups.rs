//! Groups and levels: whose turn it is.

use std::time::Duration;

use requeue_core::{Instant, Why};

use super::{Model, is_after};
use crate::operation::Key;
use crate::subject::{Cap, GroupFigures, GroupOrder, Rate, group_of};

/// The groups of a queue that has them.
#[derive(Clone, Debug, Default)]
pub(super) struct Turns {
    /// The limits of groups that have none of their own.
    cap: Cap,
    own: Vec<(u8, Cap)>,
    paused: Vec<u8>,
    /// The rate that each group has had last, as far as that has been noticed.
    rates: Vec<(u8, Option<Rate>)>,
    /// What is left of the rates.
    buckets: Vec<(u8, Bucket)>,
    /// Groups without a token, and when they get one, in the order in which they ran out.
    resting: Vec<(u8, Instant)>,
    /// Groups that may not start a run, as far as that has been noticed.
    blocked: Vec<u8>,
    /// Those of them that have ready keys, longest first.
    waiting: Vec<u8>,
    /// Whose turn it is at each level, and how many keys they have given in it.
    turns: Vec<(Place, u16)>,
}

/// A level and a group.
type Place = (u8, u8);

/// What is left of a rate, in parts of a nanosecond: a token is as many as there are between two of
/// them.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    token: i128,
    full: i128,
    left: i128,
    at: Instant,
}

/// Parts of a nanosecond.
const PARTS: i128 = 1 << 32;

impl Bucket {
    /// > The rate is exact over time: rounding errors do not add up.
    fn full(rate: Rate) -> Self {
        let token = (1e9 / rate.per_second.0 * PARTS as f64) as i128;
        let full = token * i128::from(rate.burst);
        Self {
            token,
            full,
            left: full,
            at: Instant::EPOCH,
        }
    }

    /// Takes a token. Returns how long there is none then, to the nearest nanosecond: being late by
    /// less than one loses nothing.
    fn take(&mut self, now: Instant) -> Duration {
        let earned = now.saturating_since(self.at).as_nanos() as i128 * PARTS;
        self.left += earned;
        if self.left - self.full > PARTS / 2 {
            self.left = self.full;
        }
        self.left -= self.token;
        self.at = now;
        let lacks = (self.token - self.left + PARTS / 2) / PARTS;
        Duration::from_nanos(u64::try_from(lacks.max(0)).unwrap_or(u64::MAX))
    }
}

impl Turns {
    fn cap_of(&self, group: u8) -> Cap {
        let own = self.own.iter().find(|(name, _)| *name == group);
        own.map_or(self.cap, |(_, cap)| *cap)
    }

    /// When a group without a token gets one.
    fn rests_until(&self, group: u8) -> Option<Instant> {
        let mut resting = self.resting.iter();
        resting
            .find(|(name, _)| *name == group)
            .map(|(_, until)| *until)
    }

    /// A rate that has changed begins with a full bucket.
    fn fill_bucket(&mut self, group: u8) {
        let rate = self.cap_of(group).rate.filter(Rate::is_valid);
        let has_bucket = self.buckets.iter().any(|(name, _)| *name == group);
        let is_same = match rate {
            Some(_) => has_bucket && self.rates.contains(&(group, rate)),
            None => !has_bucket,
        };
        if !is_same {
            self.buckets.retain(|(name, _)| *name != group);
            self.resting.retain(|(name, _)| *name != group);
            self.buckets
                .extend(rate.map(|rate| (group, Bucket::full(rate))));
            self.rates.retain(|(name, _)| *name != group);
            self.rates.push((group, rate));
        }
    }
}

impl Model {
    pub(super) fn change_groups(&mut self, order: &GroupOrder) {
        self.arrive();
        let is_closed = self.is_closed();
        let Some(turns) = &mut self.groups else {
            return;
        };
        match *order {
            GroupOrder::Pause(_) if is_closed => return,
            GroupOrder::LimitAll(cap) => {
                turns.cap = cap;
                let mut places: Vec<Place> = turns.turns.iter().map(|turn| turn.0).collect();
                places.sort_by_key(|(level, _)| std::cmp::Reverse(*level));
                for (_, group) in places {
                    self.refresh(group);
                }
                return self.review();
            }
            GroupOrder::Limit(group, cap) => {
                turns.own.retain(|(name, _)| *name != group);
                turns.own.extend(cap.map(|cap| (group, cap)));
            }
            GroupOrder::Pause(group) => {
                turns.paused.retain(|name| *name != group);
                turns.paused.push(group);
            }
            GroupOrder::Unpause(group) => turns.paused.retain(|name| *name != group),
        }
        self.refresh(order.group());
    }

    /// A key becomes ready.
    pub(super) fn queue_at(&mut self, key: Key, at: Instant) {
        let group = group_of(&key);
        if self.groups.is_some() && !self.has_ready(group) {
            if let Some(turns) = &mut self.groups {
                let is_over = |(name, until): &(u8, Instant)| *name == group && *until <= at;
                turns.resting.retain(|resting| !is_over(resting));
                // Of equal times, that of the group is first that has had a ready key for longer.
                turns.resting.sort_by_key(|(name, _)| *name == group);
            }
            self.refresh(group);
        }
        self.entry_mut(key).ready = Some(self.next_number());
        self.take_places();
    }

    /// Looks at the blocked groups again.
    pub(super) fn review(&mut self) {
        let waiting = self.groups.iter().flat_map(|turns| turns.waiting.clone());
        for group in waiting.collect::<Vec<u8>>() {
            self.refresh(group);
        }
    }

    /// Why a group may not start a run, whatever the time.
    ///
    /// > A group at its limit is not looked at until one of its runs ends or its rate allows the
    /// > next one.
    ///
    /// > Shutdown lifts what would keep a drain from ending: pauses, and limits of no active key
    /// > at all.
    fn blocked_by(&self, group: u8) -> Option<Why> {
        let turns = self.groups.as_ref()?;
        let is_own = |key: &Key| group_of(key) == group;
        let active = self.keys_that(|entry| entry.active).filter(is_own).count();
        let most = turns.cap_of(group).most_active();
        if turns.paused.contains(&group) && !self.is_closed() {
            Some(Why::GroupPaused)
        } else if active >= most.max(usize::from(self.is_closed())) {
            Some(Why::GroupAtLimit)
        } else {
            let until = turns.rests_until(group)?;
            Some(Why::GroupNoToken { until })
        }
    }

    /// The same of one that has a ready key.
    pub(super) fn why_blocked(&self, group: u8) -> Option<Why> {
        let is_past = |why: &Why| match why {
            Why::GroupNoToken { until } => !is_after(*until, self.now),
            _ => false,
        };
        self.blocked_by(group).filter(|why| !is_past(why))
    }

    pub(super) fn group_figures(&self, group: u8) -> Option<GroupFigures> {
        let turns = self.groups.as_ref()?;
        let is_own = |key: &Key| group_of(key) == group;
        let held = self.keys_that(super::Entry::is_held).filter(is_own).count();
        let ready = self.ready().into_iter().filter(is_own).count();
        let blocked = match self.blocked_by(group) {
            Some(Why::GroupNoToken { .. }) => ready > 0,
            blocked => blocked.is_some(),
        };
        (held > 0).then_some(GroupFigures {
            ready,
            active: self.keys_that(|entry| entry.active).filter(is_own).count(),
            held,
            blocked,
            paused: turns.paused.contains(&group) && !self.is_closed(),
        })
    }

    /// Notices whether a group may start a run.
    pub(super) fn refresh(&mut self, group: u8) {
        let Some(turns) = &mut self.groups else {
            return;
        };
        turns.fill_bucket(group);
        let is_blocked = self.blocked_by(group).is_some();
        if let Some(turns) = &mut self.groups {
            turns.blocked.retain(|name| *name != group);
            turns.blocked.extend(is_blocked.then_some(group));
        }
        self.take_places();
    }

    fn place_of(&self, key: Key) -> Place {
        (self.entry(key).level(), group_of(&key))
    }

    /// Every group takes the places that it should have, and leaves the others.
    pub(super) fn take_places(&mut self) {
        if self.groups.is_none() {
            return;
        }
        let places: Vec<Place> = self
            .ready()
            .into_iter()
            .map(|key| self.place_of(key))
            .collect();
        let Some(turns) = &mut self.groups else {
            return;
        };
        let blocked = &turns.blocked;
        let is_ready = |group: &u8| places.iter().any(|(_, name)| name == group);
        turns
            .turns
            .retain(|(place, _)| places.contains(place) && !blocked.contains(&place.1));
        turns
            .waiting
            .retain(|group| is_ready(group) && blocked.contains(group));
        for place in places.iter().copied() {
            if blocked.contains(&place.1) {
                if !turns.waiting.contains(&place.1) {
                    turns.waiting.push(place.1);
                }
            } else if turns.turns.iter().all(|(other, _)| *other != place) {
                turns.turns.push((place, 0));
            }
        }
    }

    /// Whether the next group may start a run again, before any key is due.
    ///
    /// > Groups whose [rate](crate::GroupLimits::rate) allows a run again are not part of the
    /// > backlog. Each operation looks at this many of them, too.
    pub(super) fn group_comes_first(&self, key_due: Option<Instant>) -> bool {
        let due = self.group_deadline().filter(|due| *due <= self.now);
        due.is_some_and(|due| key_due.is_none_or(|key_due| due <= key_due))
    }

    fn has_ready(&self, group: u8) -> bool {
        let mut ready = self.keys_that(|entry| entry.ready.is_some());
        ready.any(|key| group_of(&key) == group)
    }

    pub(super) fn group_deadline(&self) -> Option<Instant> {
        let resting = self.groups.iter().flat_map(|turns| &turns.resting);
        let dues = resting.filter(|(group, at)| !at.is_never() && self.has_ready(*group));
        dues.map(|(_, at)| *at).min()
    }

    /// The rate of that group allows a run.
    pub(super) fn group_comes_due(&mut self) {
        let due = self.group_deadline();
        let resting = self.groups.iter().flat_map(|turns| &turns.resting);
        let mut resting = resting.filter(|(_, at)| Some(*at) == due);
        let group = resting
            .find(|(group, _)| self.has_ready(*group))
            .map(|(group, _)| *group);
        if let (Some(group), Some(turns)) = (group, &mut self.groups) {
            turns.resting.retain(|(name, _)| *name != group);
            self.refresh(group);
        }
    }

    /// The rates of all groups whose time has come allow a run. Shutdown does not stop their time.
    pub(super) fn groups_come_due(&mut self) {
        while self.is_closed() && self.group_comes_first(None) {
            self.group_comes_due();
        }
    }

    /// What a get begins with: limits that have changed.
    pub(super) fn settle_turns(&mut self) {
        while let Some((_, group)) = self.first_place() {
            self.refresh(group);
            if self.first_place().is_none_or(|(_, first)| first == group) {
                break;
            }
        }
    }

    /// The level and the group that give the next key.
    ///
    /// > The highest level that has a key to hand out is served first, and its groups in turn.
    fn first_place(&self) -> Option<Place> {
        let turns = || {
            self.groups
                .iter()
                .flat_map(|turns| &turns.turns)
                .map(|turn| turn.0)
        };
        let highest = turns().map(|(level, _)| level).max()?;
        turns().find(|(level, _)| *level == highest)
    }

    /// Whether a group with ready keys may start a run; `None` if there are no groups.
    pub(super) fn has_a_turn(&self) -> Option<bool> {
        Some(!self.groups.as_ref()?.turns.is_empty())
    }

    fn first_at(&self, place: Place) -> Option<Key> {
        self.ready()
            .into_iter()
            .find(|key| self.place_of(*key) == place)
    }

    /// The first of these keys that has the highest level among them.
    fn highest(&self, keys: impl Iterator<Item = Key> + Clone) -> Option<Key> {
        let level = |key: &Key| self.entry(*key).level();
        let highest = keys.clone().map(|key| level(&key)).max()?;
        keys.into_iter().find(|key| level(key) == highest)
    }

    /// The key that is handed out next, but for those that have aged.
    pub(super) fn first(&self) -> Option<Key> {
        match &self.groups {
            Some(_) => self.first_at(self.first_place()?),
            None => self.highest(self.ready().into_iter()),
        }
    }

    /// The first key that is left over, whatever its group may do.
    pub(super) fn first_left(&self) -> Option<Key> {
        let waiting = self.groups.as_ref().and_then(|turns| turns.waiting.first());
        self.first().or_else(|| {
            let own = self
                .ready()
                .into_iter()
                .filter(|key| Some(&group_of(key)) == waiting);
            self.highest(own.collect::<Vec<_>>().into_iter())
        })
    }

    /// Of the keys that are next at their levels and have waited for too long, the oldest; of two,
    /// that of the higher level.
    ///
    /// > Of each level, the key that is next there is looked at. Of those that have waited for
    /// > longer than the time, the one that has waited longest is served; if there is none, the
    /// > highest level is, as without aging.
    ///
    /// > A key waits from the add that made it ready, or dirty, or from its deadline. A key that
    /// > is raised to a higher level keeps its age.
    pub(super) fn first_aged(&self) -> Option<Key> {
        let after = self.age_limit?;
        let next = |level: u8| match &self.groups {
            Some(turns) => {
                let mut places = turns.turns.iter().map(|turn| turn.0);
                self.first_at(places.find(|place| place.0 == level)?)
            }
            None => {
                let mut ready = self.ready().into_iter();
                ready.find(|key| self.entry(*key).level() == level)
            }
        };
        let since = |key: &Key| {
            self.entry(*key)
                .queued
                .map_or(self.now, |queued| queued.added)
        };
        let firsts = (0..self.abilities.levels).rev().filter_map(next);
        let aged = firsts.filter(|key| self.now.saturating_since(since(key)) > after);
        aged.min_by_key(since)
    }

    /// The newest key of the lowest level, if it is below another.
    pub(super) fn newest_below(&self, level: u8) -> Option<Key> {
        let places: Vec<Place> = match &self.groups {
            Some(turns) => turns.turns.iter().map(|turn| turn.0).collect(),
            None => self
                .ready()
                .into_iter()
                .map(|key| self.place_of(key))
                .collect(),
        };
        let lowest = places
            .iter()
            .map(|place| place.0)
            .min()
            .filter(|lowest| *lowest < level)?;
        let last = places.into_iter().rev().find(|place| place.0 == lowest)?;
        let mut newest = self.ready().into_iter().rev();
        newest.find(|key| match self.groups {
            Some(_) => self.place_of(*key) == last,
            None => self.entry(*key).level() == lowest,
        })
    }

    /// The key of a group was handed out: it is active now.
    ///
    /// > The groups that have ready keys are served in turn, one key each, or as many as the
    /// > [weight](GroupLimits::weight) of the group says.
    pub(super) fn charge_group(&mut self, key: Key, level: u8) {
        let (group, now) = (group_of(&key), self.now);
        self.take_places();
        let Some(turns) = &mut self.groups else {
            return;
        };
        let weight = turns.cap_of(group).weight.max(1);
        let mut places = turns.turns.iter();
        if let Some(at) = places.position(|(place, _)| *place == (level, group)) {
            let (place, served) = turns.turns[at];
            if served + 1 >= weight {
                turns.turns.remove(at);
                turns.turns.push((place, 0));
            } else {
                turns.turns[at].1 = served + 1;
            }
        }
        if let Some((_, bucket)) = turns.buckets.iter_mut().find(|(name, _)| *name == group) {
            let rest = bucket.take(now);
            if !rest.is_zero() {
                turns.resting.push((group, now + rest));
            }
        }
        self.refresh(group);
    }
}
