//! Groups and levels: whose turn it is.

use std::cmp::Reverse;
use std::time::Duration;

use requeue_core::{Instant, Why};

use super::{Entry, Model, is_after};
use crate::operation::{Answer, Key};
use crate::subject::{Cap, GroupFigures, GroupOrder, Rate, group_of};

/// The groups, and whose turn it is.
#[derive(Clone, Debug, Default)]
pub(super) struct Turns {
    /// The limits of groups that have none of their own.
    cap: Cap,
    /// All that [`group_of`] knows, by number.
    groups: [Group; GROUPS as usize],
    /// Groups that keep their places for their buckets alone, longest gone first.
    leaving: Vec<u8>,
    /// Groups without a token, and when they get one, in the order in which they ran out.
    resting: Vec<(u8, Instant)>,
    /// Blocked groups that have ready keys, longest first.
    waiting: Vec<u8>,
    /// Whose turn it is at each level, and how many keys they have given in it.
    turns: Vec<(Place, u16)>,
}

/// How many groups [`group_of`] knows.
const GROUPS: u8 = 3;

#[derive(Clone, Debug, Default)]
struct Group {
    cap: Option<Cap>,
    is_paused: bool,
    /// It has one of the places, where there are fewer of them than groups.
    has_place: bool,
    /// What is left of its rate, as far as that has been noticed.
    bucket: Option<Bucket>,
    /// It may not start a run, as far as that has been noticed.
    is_blocked: bool,
}

/// A level and a group.
type Place = (u8, u8);

/// What is used up of a rate, in parts of a nanosecond.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    rate: Rate,
    used: i128,
    at: Instant,
}

/// Parts of a nanosecond.
const PARTS: i128 = 1 << 32;

impl Bucket {
    fn full(rate: Rate) -> Self {
        let (used, at) = (0, Instant::EPOCH);
        Self { rate, used, at }
    }

    /// Takes a token. Returns how long there is none then, to the nearest nanosecond: being late by
    /// less than one loses nothing.
    ///
    /// > The rate is exact over time: rounding errors do not add up.
    fn take(&mut self, now: Instant) -> Duration {
        // A token is as many parts as there are between two of them.
        let token = (1e9 / self.rate.per_second.0 * PARTS as f64) as i128;
        let earned = now.saturating_since(self.at).as_nanos() as i128 * PARTS;
        self.used -= earned;
        if self.used < -PARTS / 2 {
            self.used = 0;
        }
        self.used += token;
        self.at = now;
        let left = token * i128::from(self.rate.burst) - self.used;
        let lacks = (token - left + PARTS / 2) / PARTS;
        Duration::from_nanos(u64::try_from(lacks.max(0)).unwrap_or(u64::MAX))
    }

    fn is_full(&self, now: Instant) -> bool {
        let earned = now.saturating_since(self.at).as_nanos() as i128 * PARTS;
        self.used - earned < PARTS / 2
    }
}

impl Group {
    /// It stays although it may have no keys.
    fn is_named(&self) -> bool {
        self.cap.is_some() || self.is_paused
    }
}

impl Turns {
    fn group(&mut self, group: u8) -> &mut Group {
        &mut self.groups[usize::from(group)]
    }

    fn known(&self, group: u8) -> &Group {
        &self.groups[usize::from(group)]
    }

    fn cap_of(&self, group: u8) -> Cap {
        self.known(group).cap.unwrap_or(self.cap)
    }

    fn forget(&mut self, group: u8) {
        *self.group(group) = Group::default();
        self.leaving.retain(|other| *other != group);
        self.resting.retain(|(other, _)| *other != group);
    }

    /// A rate that has changed begins with a full bucket.
    fn fill_bucket(&mut self, group: u8) {
        let rate = self.cap_of(group).rate.filter(Rate::is_valid);
        let bucket = &mut self.group(group).bucket;
        if bucket.map(|bucket| bucket.rate) != rate {
            *bucket = rate.map(Bucket::full);
            self.resting.retain(|(name, _)| *name != group);
        }
    }
}

impl Model {
    pub(super) fn change_groups(&mut self, order: &GroupOrder) -> Answer {
        self.arrive();
        let is_closed = self.is_closed();
        match *order {
            _ if self.abilities.groups == 0 => return Answer::Done,
            GroupOrder::Pause(_) if is_closed => return Answer::Done,
            GroupOrder::Limit(group, Some(_)) | GroupOrder::Pause(group)
                if !self.make_place(group) =>
            {
                return Answer::NoPlace;
            }
            _ => {}
        }
        let group = match *order {
            GroupOrder::LimitAll(cap) => {
                self.turns.cap = cap;
                let mut places = self.places();
                places.sort_by_key(|(level, _)| Reverse(*level));
                for (_, group) in places {
                    self.refresh(group);
                }
                self.review();
                return Answer::Done;
            }
            GroupOrder::Limit(group, _) | GroupOrder::Pause(group) | GroupOrder::Unpause(group) => {
                group
            }
        };
        let own = self.turns.group(group);
        match *order {
            GroupOrder::Limit(_, cap) => own.cap = cap,
            _ => own.is_paused = matches!(order, GroupOrder::Pause(_)),
        }
        self.refresh(group);
        self.leave_places();
        Answer::Done
    }

    /// Makes a place for a group that has none. Returns whether it has one now.
    ///
    /// > Failure records alone keep no other group out: where all `MAX` are taken, those of a group
    /// > that has nothing else are discarded
    pub(super) fn make_place(&mut self, group: u8) -> bool {
        self.leave_places();
        if self.free_place(group) {
            return true;
        }
        let records = self.records();
        let alone = records.iter().map(|key| self.group_of(*key));
        let alone = alone.clone().find(|own| {
            let of_records = alone.clone().filter(|other| other == own).count();
            self.count_in(*own, Entry::is_held) == of_records && !self.turns.known(*own).is_named()
        });
        let Some(alone) = alone else {
            return false;
        };
        for key in records {
            if self.group_of(key) == alone {
                self.entry_mut(key).forget();
            }
        }
        self.settle();
        self.free_place(group)
    }

    /// Forgets groups that are leaving, as far as their places are needed. Returns whether the group
    /// has a place, or can have one.
    ///
    /// > Once its last key has left, one with a rate stays until the tokens it has used are earned
    /// > again, or until its room is needed.
    fn free_place(&mut self, group: u8) -> bool {
        if self.turns.known(group).has_place || !self.has_few_places() {
            return true;
        }
        for is_needed in [false, false, true] {
            let Some(first) = self.turns.leaving.first().copied() else {
                break;
            };
            self.turns.fill_bucket(first);
            let bucket = self.turns.known(first).bucket;
            let is_full = bucket.is_none_or(|bucket| bucket.is_full(self.now));
            if is_full || is_needed && self.places_taken() == self.abilities.groups {
                self.turns.forget(first);
            }
        }
        self.places_taken() < self.abilities.groups
    }

    fn has_few_places(&self) -> bool {
        (1..GROUPS.into()).contains(&self.abilities.groups)
    }

    fn places_taken(&self) -> usize {
        let taken = self.turns.groups.iter().filter(|group| group.has_place);
        taken.count()
    }

    /// Notices which groups have got their first key, and which have lost their last.
    ///
    /// > A group comes and goes with its keys, or stays while limits are set for it by name.
    pub(super) fn leave_places(&mut self) {
        if !self.has_few_places() {
            return;
        }
        for group in 0..GROUPS {
            let own = self.turns.known(group);
            let (is_named, had_place) = (own.is_named(), own.has_place);
            let is_leaving = self.turns.leaving.contains(&group);
            if is_named || self.count_in(group, Entry::is_held) > 0 {
                self.turns.group(group).has_place = true;
                self.turns.leaving.retain(|other| *other != group);
            } else if had_place && !is_leaving {
                match self.turns.cap_of(group).rate.filter(Rate::is_valid) {
                    Some(_) => self.turns.leaving.push(group),
                    None => self.turns.forget(group),
                }
            }
        }
    }

    /// A key becomes ready.
    pub(super) fn queue_at(&mut self, key: Key, at: Instant) {
        let group = self.group_of(key);
        if !self.has_ready(group) {
            let is_over = |(name, until): &(u8, Instant)| *name == group && *until <= at;
            self.turns.resting.retain(|resting| !is_over(resting));
            // Of equal times, the group that has had a ready key for longer comes first.
            self.turns.resting.sort_by_key(|(name, _)| *name == group);
            self.refresh(group);
        }
        self.entry_mut(key).ready = Some(self.next_number());
        self.take_places();
    }

    /// Looks at the blocked groups again.
    pub(super) fn review(&mut self) {
        for group in self.turns.waiting.clone() {
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
        let turns = &self.turns;
        let active = self.count_in(group, |entry| entry.active);
        let most = turns.cap_of(group).most_active();
        if turns.known(group).is_paused && !self.is_closed() {
            Some(Why::GroupPaused)
        } else if active >= most.max(usize::from(self.is_closed())) {
            Some(Why::GroupAtLimit)
        } else {
            let (_, until) = *turns.resting.iter().find(|(name, _)| *name == group)?;
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
        let held = self.count_in(group, Entry::is_held);
        let ready = self.count_in(group, |entry| entry.ready.is_some());
        let blocked = match self.blocked_by(group) {
            Some(Why::GroupNoToken { .. }) => ready > 0,
            blocked => blocked.is_some(),
        };
        (held > 0 && self.abilities.groups > 0).then_some(GroupFigures {
            ready,
            active: self.count_in(group, |entry| entry.active),
            held,
            blocked,
            paused: self.turns.known(group).is_paused && !self.is_closed(),
        })
    }

    fn count_in(&self, group: u8, is: impl Fn(&Entry) -> bool) -> usize {
        self.keys_that(is)
            .filter(|key| self.group_of(*key) == group)
            .count()
    }

    /// Notices whether a group may start a run.
    pub(super) fn refresh(&mut self, group: u8) {
        self.turns.fill_bucket(group);
        self.turns.group(group).is_blocked = self.blocked_by(group).is_some();
        self.take_places();
    }

    /// Without groups all keys belong to one.
    pub(super) fn group_of(&self, key: Key) -> u8 {
        match self.abilities.groups {
            0 => 0,
            _ => group_of(&key),
        }
    }

    fn place_of(&self, key: Key) -> Place {
        (self.entry(key).level(), self.group_of(key))
    }

    /// The places that may give the next key, in turn.
    pub(super) fn places(&self) -> Vec<Place> {
        self.turns.turns.iter().map(|turn| turn.0).collect()
    }

    /// Every group takes the places that it should have, and leaves the others.
    pub(super) fn take_places(&mut self) {
        let ready = self.ready().into_iter();
        let places: Vec<Place> = ready.map(|key| self.place_of(key)).collect();
        let turns = &mut self.turns;
        let (blocked, open): (Vec<Place>, Vec<Place>) = places
            .into_iter()
            .partition(|(_, group)| turns.known(*group).is_blocked);
        turns.turns.retain(|(place, _)| open.contains(place));
        for place in open {
            if turns.turns.iter().all(|(other, _)| *other != place) {
                turns.turns.push((place, 0));
            }
        }
        let blocked: Vec<u8> = blocked.into_iter().map(|place| place.1).collect();
        turns.waiting.retain(|group| blocked.contains(group));
        for group in blocked {
            if !turns.waiting.contains(&group) {
                turns.waiting.push(group);
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
        self.count_in(group, |entry| entry.ready.is_some()) > 0
    }

    /// The group that gets a token next of those that have ready keys, and when.
    fn next_token(&self) -> Option<(u8, Instant)> {
        let resting = self.turns.resting.iter();
        let dues = resting.filter(|(group, at)| !at.is_never() && self.has_ready(*group));
        dues.min_by_key(|(_, at)| *at).copied()
    }

    pub(super) fn group_deadline(&self) -> Option<Instant> {
        self.next_token().map(|(_, at)| at)
    }

    /// The rate of the next group allows a run.
    pub(super) fn group_comes_due(&mut self) {
        if let Some((group, _)) = self.next_token() {
            self.turns.resting.retain(|(name, _)| *name != group);
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
        let places = self.places().into_iter();
        places.min_by_key(|(level, _)| Reverse(*level))
    }

    fn first_at(&self, place: Place) -> Option<Key> {
        let mut ready = self.ready().into_iter();
        ready.find(|key| self.place_of(*key) == place)
    }

    /// The key that is handed out next, but for those that have aged.
    pub(super) fn first(&self) -> Option<Key> {
        self.first_at(self.first_place()?)
    }

    /// The first key that is left over, whatever its group may do.
    pub(super) fn first_left(&self) -> Option<Key> {
        self.first().or_else(|| {
            let waiting = *self.turns.waiting.first()?;
            let own = self.ready().into_iter();
            own.filter(|key| self.group_of(*key) == waiting)
                .min_by_key(|key| Reverse(self.entry(*key).level()))
        })
    }

    /// The key that is next at each level, the highest first.
    pub(super) fn firsts(&self) -> impl Iterator<Item = Key> {
        let places = self.places();
        let first = move |level| {
            let place = places.iter().find(|place| place.0 == level)?;
            self.first_at(*place)
        };
        (0..self.abilities.levels).rev().filter_map(first)
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
        let since = |key: &Key| {
            let queued = self.entry(*key).queued;
            queued.map_or(self.now, |queued| queued.added)
        };
        let waited = |key: &Key| self.now.saturating_since(since(key));
        let aged = self.firsts().filter(|key| waited(key) > after);
        aged.min_by_key(since)
    }

    /// The newest key of the lowest level, if it is below another.
    pub(super) fn newest_below(&self, level: u8) -> Option<Key> {
        let places = self.places().into_iter().rev();
        let last = places.min_by_key(|(level, _)| *level)?;
        let mut newest = self.ready().into_iter().rev();
        newest.find(|key| last.0 < level && self.place_of(*key) == last)
    }

    /// The key of a group was handed out: it is active now.
    ///
    /// > The groups that have ready keys are served in turn, one key each, or as many as the
    /// > [weight](GroupLimits::weight) of the group says.
    pub(super) fn charge_group(&mut self, key: Key, level: u8) {
        let (group, now) = (self.group_of(key), self.now);
        self.take_places();
        let turns = &mut self.turns;
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
        if let Some(bucket) = &mut turns.group(group).bucket {
            let rest = bucket.take(now);
            if !rest.is_zero() {
                turns.resting.push((group, now + rest));
            }
        }
        self.refresh(group);
    }
}
