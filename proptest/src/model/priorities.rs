//! What controller-runtime's priority queue has beyond client-go: priorityqueue.go, AddWithOpts.

use requeue_core::{AddOptions, Added, Instant, Merge, Rejected};

use super::slack::Window;
use super::{Model, Rules, is_after, remove};
use crate::subject::{Key, Scheduled};

impl Model {
    pub(super) fn add_as(
        &mut self,
        key: Key,
        options: AddOptions,
    ) -> Result<Scheduled, Rejected<Key>> {
        if self.is_shutting_down {
            return Err(Rejected::Closed(key));
        }
        if options.priority.is_some_and(|level| level >= self.levels) {
            return Err(Rejected::UnknownPriority(key));
        }
        self.arrive_at(key);
        self.make_room(key)?;
        let limit = options.rate_limited.then(|| self.charge(key));
        let delay = match (options.after, limit) {
            (Some(after), Some(limit)) => Some(after.min(limit)),
            (after, limit) => after.or(limit),
        };
        let level = match options.priority {
            Some(level) => level,
            None if options.rate_limited => self.retry_level(key),
            None => 0,
        };
        let window = delay.map(|delay| self.window_after(delay, options.slack));
        let mut added = match options.merge {
            Merge::Earliest => self.add_now_or_at(key, window, level),
            Merge::Once => self.expedite(key, window, level),
            rule => self.merge(key, rule, window, level),
        };
        if let Some(limit) = limit {
            let backoff = window.filter(|_| delay == Some(limit));
            let due = backoff.map_or(self.now + limit, |window| window.due);
            self.note_backoff(key, due);
            added = self.hold_back(key, added);
        }
        let delay = delay.unwrap_or_default();
        Ok(Scheduled { delay, added })
    }

    /// There is one place for a key, at the sooner of two times and the higher of two levels.
    ///
    /// > The key runs once, at the earliest time for which it was added. An add without a delay
    /// > removes the deadline.
    fn expedite(&mut self, key: Key, window: Option<Window>, level: u8) -> Added {
        self.figures.retries += u64::from(window.is_some());
        let at_once = Window::exact(Instant::EPOCH);
        let asked = self.window_of_add(key, window.unwrap_or(at_once));
        if is_after(asked.opens, self.now) && !self.runs_anyway(key) {
            return self.schedule(key, asked, level);
        }
        let pending = self.waiting.iter().find(|entry| entry.key == key).copied();
        let place = pending.filter(|entry| entry.level >= level);
        let place = place.map(|_| self.counter(key));
        let level = pending.map_or(level, |entry| level.max(entry.level));
        self.stop_waiting(key);
        let added = self.mark(key, self.now, level);
        if let Some(counter) = place.filter(|_| self.rules == Rules::ControllerRuntime) {
            self.keep_place(key, counter);
        }
        added
    }

    /// controller-runtime: a key whose delay is ended by an add that does not raise it stands among
    /// the ready keys as if it had been ready since its own add.
    fn keep_place(&mut self, key: Key, counter: u64) {
        remove(&mut self.counters, key);
        self.counters.push((key, counter));
        self.queue.retain(|other| *other != key);
        let later = |other: &Key| self.counter(*other) > counter;
        let place = self.queue.iter().position(later);
        self.has_kept_place |= place.is_some();
        self.queue.insert(place.unwrap_or(self.queue.len()), key);
    }

    /// A key takes a new place among the others.
    pub(super) fn count(&mut self, key: Key) {
        let next = self.counters.iter().map(|(_, counter)| counter + 1).max();
        remove(&mut self.counters, key);
        self.counters.push((key, next.unwrap_or(0)));
    }

    pub(super) fn counter(&self, key: Key) -> u64 {
        let entry = self.counters.iter().find(|(other, _)| *other == key);
        entry.map_or(0, |(_, counter)| *counter)
    }

    /// Returns whether a key whose delay was ended by an add ever kept a place before another key:
    /// from then on controller-runtime's order may be another than ours.
    pub fn has_kept_place(&self) -> bool {
        self.has_kept_place
    }

    /// A dirty key goes to the end of a higher level, and never to a lower one.
    pub(super) fn raise(&mut self, key: Key, level: u8, at: Instant) -> Added {
        if level <= self.queued_level(key) {
            return Added::Coalesced;
        }
        remove(&mut self.queued_at, key);
        self.queued_at.push((key, level));
        if self.queue.contains(&key) {
            self.queue.retain(|other| *other != key);
            self.take_places();
            self.queue_at(key, at);
        }
        self.count(key);
        Added::Raised
    }

    /// The first key of the highest level.
    pub(super) fn peek_first(&self) -> Option<Key> {
        if let Some(first) = self.first_of_groups() {
            return first;
        }
        let waits = self.rules == Rules::ControllerRuntime;
        let is_free = |key: &&Key| !waits || !self.processing.contains(key);
        let mut free = self.queue.iter().filter(is_free);
        let highest = free.clone().map(|key| self.queued_level(*key)).max()?;
        free.find(|key| self.queued_level(**key) == highest)
            .copied()
    }

    /// A key that fails comes back at the level of its run.
    pub(super) fn retry_level(&self, key: Key) -> u8 {
        if self.processing.contains(&key) {
            self.running_level(key)
        } else {
            0
        }
    }

    pub(super) fn queued_level(&self, key: Key) -> u8 {
        level(&self.queued_at, key)
    }

    pub(super) fn running_level(&self, key: Key) -> u8 {
        level(&self.running_at, key)
    }

    /// How many keys are dirty at each level, where levels differ.
    pub(super) fn depths(&self) -> std::collections::BTreeMap<u8, usize> {
        let mut depths = std::collections::BTreeMap::new();
        if self.levels > 1 {
            for key in &self.dirty {
                *depths.entry(self.queued_level(*key)).or_default() += 1;
            }
        }
        depths
    }
}

fn level(list: &[(Key, u8)], key: Key) -> u8 {
    let entry = list.iter().find(|(other, _)| *other == key);
    entry.map_or(0, |(_, level)| *level)
}
