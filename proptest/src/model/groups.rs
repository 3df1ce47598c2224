//! Groups: whose turn it is, in lists.

use std::time::Duration;

use requeue_core::{Instant, Why};

use super::{Model, is_after};
use crate::subject::{Cap, GroupFigures, GroupOrder, Key, Rate, group_of};

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
    turns: Vec<(u8, u8, u16)>,
}

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

    /// A rate that has changed begins with a full bucket.
    fn fill_bucket(&mut self, group: u8) {
        let rate = self.cap_of(group).rate.filter(Rate::is_valid);
        let bucket = self.buckets.iter().position(|(name, _)| *name == group);
        let before = bucket.map(|place| self.buckets[place].1);
        let same = match (&rate, &before) {
            (Some(_), Some(_)) => self.rates.contains(&(group, rate)),
            (rate, before) => rate.is_none() && before.is_none(),
        };
        if !same {
            self.buckets.retain(|(name, _)| *name != group);
            self.resting.retain(|(name, _)| *name != group);
            let bucket = rate.map(|rate| (group, Bucket::full(rate)));
            self.buckets.extend(bucket);
            self.rates.retain(|(name, _)| *name != group);
            self.rates.push((group, rate));
        }
    }
}

impl Model {
    /// Adds groups.
    pub fn with_groups(mut self, groups: bool) -> Self {
        self.groups = groups.then(Turns::default);
        self
    }

    pub(super) fn change_groups(&mut self, order: &GroupOrder) {
        self.arrive();
        let Some(turns) = &mut self.groups else {
            return;
        };
        match *order {
            GroupOrder::Pause(_) if self.is_shutting_down => return,
            GroupOrder::LimitAll(cap) => {
                turns.cap = cap;
                let mut places = turns.turns.clone();
                places.sort_by_key(|(level, ..)| std::cmp::Reverse(*level));
                for (_, group, _) in places {
                    self.refresh(group);
                }
                self.review();
                return;
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

    /// A key is about to be queued, which is ready from then on.
    pub(super) fn queue_at(&mut self, key: Key, at: Instant) {
        let group = group_of(&key);
        if !self.queue.iter().any(|other| group_of(other) == group) {
            if let Some(turns) = &mut self.groups {
                turns
                    .resting
                    .retain(|(name, until)| *name != group || *until > at);
                // Of equal times, that of the group is first that has had a ready key for longer.
                turns.resting.sort_by_key(|(name, _)| *name == group);
            }
            self.refresh(group);
        }
        self.queue.push(key);
        self.take_places();
    }

    /// Looks at the blocked groups again.
    pub(super) fn review(&mut self) {
        let waiting = self.groups.iter().flat_map(|turns| turns.waiting.clone());
        for group in waiting.collect::<Vec<u8>>() {
            self.refresh(group);
        }
    }

    /// Whether a group may start a run.
    ///
    /// > A group at its limit is not looked at until one of its runs ends or its rate allows the
    /// > next one.
    ///
    /// > Shutdown lifts what would keep a drain from ending: pauses, and limits of no active key
    /// > at all.
    fn may_start(&self, group: u8) -> bool {
        let Some(turns) = &self.groups else {
            return true;
        };
        let cap = turns.cap_of(group);
        let active = self.processing.iter().filter(|key| group_of(key) == group);
        let most = cap.most_active().max(usize::from(self.is_shutting_down));
        let rests = turns.resting.iter().any(|(name, _)| *name == group);
        let paused = turns.paused.contains(&group) && !self.is_shutting_down;
        active.count() < most && !rests && !paused
    }

    pub(super) fn group_figures(&self, group: u8) -> Option<GroupFigures> {
        let turns = self.groups.as_ref()?;
        let of_group = |key: &&Key| group_of(key) == group;
        let keys = self.held_keys();
        let held = keys.iter().filter(of_group).count();
        let ready = self.queue.iter().filter(of_group).count();
        let active = self.processing.iter().filter(of_group).count();
        let paused = turns.paused.contains(&group) && !self.is_shutting_down;
        let most = turns.cap_of(group).most_active();
        let most = most.max(usize::from(self.is_shutting_down));
        let rests = turns.resting.iter().any(|(name, _)| *name == group);
        (held > 0).then_some(GroupFigures {
            ready,
            active,
            held,
            blocked: paused || active >= most || (rests && ready > 0),
            paused,
        })
    }

    /// Why a group may not start a run.
    pub(super) fn why_blocked(&self, group: u8) -> Option<Why> {
        let turns = self.groups.as_ref()?;
        if turns.paused.contains(&group) && !self.is_shutting_down {
            return Some(Why::GroupPaused);
        }
        let active = self.processing.iter().filter(|key| group_of(key) == group);
        let most = turns.cap_of(group).most_active();
        if active.count() >= most.max(usize::from(self.is_shutting_down)) {
            return Some(Why::GroupAtLimit);
        }
        let mut resting = turns.resting.iter();
        let (_, until) = *resting.find(|(name, _)| *name == group)?;
        is_after(until, self.now).then_some(Why::GroupNoToken { until })
    }

    /// Notices whether a group may start a run.
    pub(super) fn refresh(&mut self, group: u8) {
        let Some(turns) = &mut self.groups else {
            return;
        };
        turns.fill_bucket(group);
        let may_start = self.may_start(group);
        if let Some(turns) = &mut self.groups {
            turns.blocked.retain(|name| *name != group);
            if !may_start {
                turns.blocked.push(group);
            }
        }
        self.take_places();
    }

    /// Every group takes the places that it should have, and leaves the others.
    pub(super) fn take_places(&mut self) {
        let Some(mut turns) = self.groups.take() else {
            return;
        };
        let place = |key: &Key| (self.queued_level(*key), group_of(key));
        let places: Vec<(u8, u8)> = self.queue.iter().map(place).collect();
        let is_blocked = |turns: &Turns, group: u8| turns.blocked.contains(&group);
        let blocked = turns.blocked.clone();
        turns.turns.retain(|(level, group, _)| {
            places.contains(&(*level, *group)) && !blocked.contains(group)
        });
        let ready = |group: u8| places.iter().any(|(_, name)| *name == group);
        turns
            .waiting
            .retain(|group| ready(*group) && blocked.contains(group));
        for (level, group) in places.iter().copied() {
            let here = |it: &(u8, u8, u16)| (it.0, it.1) == (level, group);
            if is_blocked(&turns, group) {
                if !turns.waiting.contains(&group) {
                    turns.waiting.push(group);
                }
            } else if !turns.turns.iter().any(here) {
                turns.turns.push((level, group, 0));
            }
        }
        self.groups = Some(turns);
    }

    /// When the next group may start a run again, if that is before any key is due.
    ///
    /// > Groups whose [rate](crate::GroupLimits::rate) allows a run again are not part of the
    /// > backlog. Each operation looks at this many of them, too.
    pub(super) fn group_comes_first(&self, key_due: Option<Instant>) -> bool {
        let due = self.group_deadline().filter(|due| *due <= self.now);
        due.is_some_and(|due| key_due.is_none_or(|key_due| due <= key_due))
    }

    /// The rate of that group allows a run.
    pub(super) fn group_comes_due(&mut self) {
        let due = self.group_deadline();
        let has_keys = |group: u8| self.queue.iter().any(|key| group_of(key) == group);
        let Some(turns) = &mut self.groups else {
            return;
        };
        let mut resting = turns.resting.iter();
        let place = resting.position(|(group, at)| Some(*at) == due && has_keys(*group));
        if let Some(place) = place {
            let (group, _) = turns.resting.remove(place);
            self.refresh(group);
        }
    }

    /// The rates of all groups whose time has come allow a run. Shutdown does not stop their time.
    pub(super) fn groups_come_due(&mut self) {
        while self.is_shutting_down && self.group_comes_first(None) {
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
    fn first_place(&self) -> Option<(u8, u8)> {
        let turns = &self.groups.as_ref()?.turns;
        let highest = turns.iter().map(|(level, ..)| *level).max()?;
        let first = turns.iter().find(|(level, ..)| *level == highest)?;
        Some((first.0, first.1))
    }

    /// Whether a group with ready keys may start a run; `None` if there are no groups.
    pub(super) fn has_a_turn(&self) -> Option<bool> {
        Some(!self.groups.as_ref()?.turns.is_empty())
    }

    /// The key that is handed out next; `None` if there are no groups.
    pub(super) fn first_of_groups(&self) -> Option<Option<Key>> {
        self.groups.as_ref()?;
        let place = self.first_place();
        Some(place.and_then(|place| self.first_at(place)))
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
                let place = turns.turns.iter().find(|(at, ..)| *at == level)?;
                self.first_at((level, place.1))
            }
            None => {
                let mut queue = self.queue.iter();
                queue.find(|key| self.queued_level(**key) == level).copied()
            }
        };
        let since = |key: &Key| {
            let added = self.added.iter().find(|(added, _)| added == key);
            added.map_or(self.now, |(_, at)| *at)
        };
        let firsts = (0..self.levels).rev().filter_map(next);
        let aged = firsts.filter(|key| self.now.saturating_since(since(key)) > after);
        aged.min_by_key(since)
    }

    /// The level and the group whose newest key makes way first.
    fn last_place(&self) -> Option<(u8, u8)> {
        let turns = &self.groups.as_ref()?.turns;
        let lowest = turns.iter().map(|(level, ..)| *level).min()?;
        let last = turns.iter().rev().find(|(level, ..)| *level == lowest)?;
        Some((last.0, last.1))
    }

    /// The newest key of the lowest level, if it is below another.
    pub(super) fn newest_below(&self, level: u8) -> Option<Key> {
        let newest_first = self.queue.iter().rev();
        let mut at = newest_first.map(|key| (*key, self.queued_level(*key)));
        if self.groups.is_some() {
            let place = self.last_place().filter(|(lowest, _)| *lowest < level)?;
            return at
                .find(|(key, at)| (*at, group_of(key)) == place)
                .map(|(key, _)| key);
        }
        let levels = self.queue.iter().map(|key| self.queued_level(*key));
        let lowest = levels.min().filter(|lowest| *lowest < level)?;
        at.find(|(_, at)| *at == lowest).map(|(key, _)| key)
    }

    fn first_at(&self, (level, group): (u8, u8)) -> Option<Key> {
        let is_there = |key: &&Key| (self.queued_level(**key), group_of(key)) == (level, group);
        self.queue.iter().find(is_there).copied()
    }

    /// The first key that is left over, whatever its group may do.
    pub(super) fn first_left(&self) -> Option<Key> {
        let Some(turns) = &self.groups else {
            return self.peek_first();
        };
        if let Some(place) = self.first_place() {
            return self.first_at(place);
        }
        let group = *turns.waiting.first()?;
        let own = self.queue.iter().filter(|key| group_of(key) == group);
        let level = own.map(|key| self.queued_level(*key)).max()?;
        self.first_at((level, group))
    }

    /// The key of a group was handed out: it is in `processing` now.
    ///
    /// > The groups that have ready keys are served in turn, one key each, or as many as the
    /// > [weight](GroupLimits::weight) of the group says.
    pub(super) fn charge_group(&mut self, key: Key, level: u8) {
        let group = group_of(&key);
        let now = self.now;
        self.take_places();
        let Some(turns) = &mut self.groups else {
            return;
        };
        let weight = turns.cap_of(group).weight.max(1);
        let here = |it: &(u8, u8, u16)| (it.0, it.1) == (level, group);
        if let Some(place) = turns.turns.iter().position(here) {
            let (.., served) = turns.turns[place];
            if served + 1 >= weight {
                turns.turns.remove(place);
                turns.turns.push((level, group, 0));
            } else {
                turns.turns[place].2 = served + 1;
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

    pub(super) fn group_deadline(&self) -> Option<Instant> {
        let has_keys = |group: u8| self.queue.iter().any(|key| group_of(key) == group);
        let resting = self.groups.iter().flat_map(|turns| &turns.resting);
        let dues = resting.filter(|(group, at)| !at.is_never() && has_keys(*group));
        dues.map(|(_, at)| *at).min()
    }
}
