//! Adds, and what each does to a key that the queue has already.

use std::time::Duration;

use requeue_core::limiter::RateLimiter;
use requeue_core::{AddOptions, Added, AddedMany, Instant, Merge, Rejected};

use super::deadlines::{Deadline, Window};
use super::{Model, Queued, entry_in, is_after};
use crate::operation::{Answer, Displaced, Key, Left, left_over};
use crate::subject::Scheduled;

impl Model {
    /// queue.go, Add.
    pub(super) fn add(&mut self, key: Key) -> Result<Added, Rejected<Key>> {
        self.enter(key)?;
        Ok(self.mark(key, self.now, 0))
    }

    /// delaying_queue.go, AddAfter.
    pub(super) fn add_later(&mut self, key: Key, window: Window) -> Result<Added, Rejected<Key>> {
        self.enter(key)?;
        Ok(self.retry_at(key, window, 0))
    }

    /// rate_limiting_queue.go, AddRateLimited.
    pub(super) fn add_rate_limited(&mut self, key: Key) -> Result<Scheduled, Rejected<Key>> {
        self.enter(key)?;
        let delay = self.charge(key);
        let due = self.now + delay;
        let added = self.retry_at(key, Window::exact(due), self.entry(key).running);
        self.note_backoff(key, due);
        let added = self.hold_back(key, added);
        Ok(Scheduled { delay, added })
    }

    pub(super) fn add_with(
        &mut self,
        key: Key,
        options: AddOptions,
    ) -> Result<Scheduled, Rejected<Key>> {
        if !self.is_closed()
            && options
                .priority
                .is_some_and(|level| level >= self.abilities.levels)
        {
            return Err(Rejected::UnknownPriority(key));
        }
        self.enter(key)?;
        let limit = options.rate_limited.then(|| self.charge(key));
        let delay = match (options.after, limit) {
            (Some(after), Some(limit)) => Some(after.min(limit)),
            (after, limit) => after.or(limit),
        };
        let level = match options.priority {
            Some(level) => level,
            None if options.rate_limited => self.entry(key).running,
            None => 0,
        };
        let window = delay.map(|delay| self.window_after(delay, options.slack));
        let mut added = match options.merge {
            Merge::Earliest => self.add_now_or_at(key, window, level),
            Merge::Once => self.add_once(key, window, level),
            rule => self.merge(key, rule, window, level),
        };
        if options.rate_limited {
            // With a shorter `after`, the limiter does not set the deadline.
            if let Some(window) = window.filter(|_| delay == limit) {
                self.note_backoff(key, window.due);
            }
            added = self.hold_back(key, added);
        }
        let delay = delay.unwrap_or_default();
        Ok(Scheduled { delay, added })
    }

    /// As an add, but if there is no room, the last of the keys at the lowest level makes way.
    pub(super) fn add_displacing(&mut self, key: Key, options: AddOptions) -> Displaced {
        let full = match self.add_with(key, options) {
            Err(Rejected::Full(key)) => key,
            other => return other.map(|scheduled| (scheduled, None)),
        };
        // If more keys are held than fit, one that made way would make no room.
        let newest = self.newest_below(options.priority.unwrap_or(0));
        let helps = self.surplus() == 0 && self.make_place(self.group_of(key));
        let Some(newest) = newest.filter(|_| helps) else {
            return Err(Rejected::Full(full));
        };
        let left = self.take_out_ready(newest);
        let scheduled = self.add_with(key, options)?;
        Ok((scheduled, Some(left)))
    }

    pub(super) fn add_many(&mut self, keys: &[Key]) -> Answer {
        let (mut many, mut rejected) = (AddedMany::default(), Vec::new());
        for &key in keys {
            match self.add(key) {
                Ok(Added::Ready) => many.ready += 1,
                Ok(Added::Dirty) => many.dirty += 1,
                Ok(Added::Delayed | Added::Sooner) => many.delayed += 1,
                Ok(_) => many.coalesced += 1,
                Err(refused) => {
                    many.rejected += 1;
                    rejected.push(refused);
                }
            }
        }
        Answer::AddedMany(many, rejected)
    }

    /// An add as another queue would have made it, with the failures that the key had there.
    pub(super) fn restore(&mut self, left: Left) -> Result<Added, Rejected<Left>> {
        let key = left.key;
        if !self.is_closed() && left.priority >= self.abilities.levels {
            return Err(Rejected::UnknownPriority(left));
        }
        self.enter(key).map_err(|refused| match refused {
            Rejected::Closed(_) => Rejected::Closed(left),
            _ => Rejected::Full(left),
        })?;
        if self.failures_of(key) < left.failures {
            let record = &mut entry_in(&mut self.keys, key).record;
            self.limiter.set_failures(record, left.failures);
        }
        let is_delayed = !left.left.is_zero();
        let window = is_delayed.then(|| Window::exact(self.now + left.left));
        Ok(self.add_now_or_at(key, window, left.priority))
    }

    /// Each add of a burst moves its deadline to `quiet` after it, and no further than `max` after
    /// the first.
    ///
    /// > Adds a key once no such add of it has come for as long as `quiet`, or `max` after the
    /// > first of them, if that is sooner.
    ///
    /// > The first add of a series sets a deadline, and each further one moves it.
    ///
    /// > Only a deadline that `add_debounced` alone has asked for is made later. If another call
    /// > has asked for one, the earlier counts. A key that is ready or dirty runs after this add
    /// > in any case, and stays as it is. With a `quiet` of zero the key is added now.
    ///
    /// > A debounced add asks for the lowest priority level, and a deadline keeps the highest
    /// > level that an add has given it.
    pub(super) fn add_debounced(
        &mut self,
        key: Key,
        quiet: Duration,
        max: Duration,
    ) -> Result<Added, Rejected<Key>> {
        self.enter(key)?;
        if self.entry(key).runs_anyway() {
            self.figures.retries += 1;
            return Ok(Added::Coalesced);
        }
        let before = self.entry(key).deadline;
        let burst = before.and_then(|before| before.burst);
        let first = burst.unwrap_or(self.now);
        let window = Window::exact((self.now + quiet).min(first + max));
        let window = self.window_of_add(key, window);
        let due = window.due;
        let Some(before) = before.filter(|_| burst.is_some()) else {
            let added = self.retry_at(key, window, 0);
            if matches!(added, Added::Delayed | Added::Sooner) {
                self.note_burst(key, Some(first), due);
            }
            return Ok(added);
        };
        self.figures.retries += 1;
        if !is_after(due, self.now) {
            self.entry_mut(key).deadline = None;
            return Ok(self.mark(key, self.now, before.level));
        }
        if due != before.due {
            self.move_deadline(key, window);
        }
        self.note_burst(key, Some(first), due);
        Ok(match due.cmp(&before.due) {
            std::cmp::Ordering::Less => Added::Sooner,
            std::cmp::Ordering::Equal => Added::Coalesced,
            std::cmp::Ordering::Greater => Added::Later,
        })
    }

    fn note_burst(&mut self, key: Key, first: Option<Instant>, due: Instant) {
        if let Some(deadline) = self.deadline_at(key, due) {
            deadline.burst = first;
        }
    }

    /// What every add begins with.
    fn enter(&mut self, key: Key) -> Result<(), Rejected<Key>> {
        if self.is_closed() {
            return Err(Rejected::Closed(key));
        }
        self.arrive_at(key);
        self.make_room(key)
    }

    /// The part of Add that a due key shares.
    pub(super) fn mark(&mut self, key: Key, at: Instant, level: u8) -> Added {
        let entry = self.entry(key);
        let active = entry.active;
        if entry.queued.is_some() {
            return self.raise(key, level, at);
        }
        if entry.suspended.is_some() {
            return self.add_suspended(key, level);
        }
        let held = self.held_until(key);
        if is_after(held, at) && !active {
            return self.schedule(key, Window::exact(held), level);
        }
        self.figures.adds += 1;
        let entry = self.entry_mut(key);
        entry.queued = Some(Queued { level, added: at });
        entry.first_added.get_or_insert(at);
        if active {
            return Added::Dirty;
        }
        entry.end_pause();
        self.queue_at(key, at);
        self.settle();
        Added::Ready
    }

    /// A dirty key goes to the end of a higher level, and never to a lower one.
    fn raise(&mut self, key: Key, level: u8, at: Instant) -> Added {
        let entry = self.entry_mut(key);
        let Some(queued) = entry.queued.as_mut().filter(|queued| queued.level < level) else {
            return Added::Coalesced;
        };
        queued.level = level;
        if entry.ready.take().is_some() {
            self.take_places();
            self.queue_at(key, at);
        }
        Added::Raised
    }

    pub(super) fn retry_at(&mut self, key: Key, window: Window, level: u8) -> Added {
        self.figures.retries += 1;
        let window = self.window_of_add(key, window);
        if !is_after(window.opens, self.now) {
            return self.mark(key, self.now, level);
        }
        self.schedule(key, window, level)
    }

    /// delaying_queue.go, insert. A deadline that moves is numbered again, so that keys with equal
    /// deadlines leave in the order in which they got them.
    ///
    /// Of two windows the earlier beginning and the earlier end count.
    pub(super) fn schedule(&mut self, key: Key, window: Window, level: u8) -> Added {
        let number = self.next_number();
        let entry = self.entry_mut(key);
        let Window { mut opens, due } = window;
        if entry.suspended.is_some() {
            opens = due;
        }
        let has_slack = opens != due;
        let mut deadline = Deadline::new(Window { opens, due }, number, level);
        let mut added = Added::Delayed;
        if let Some(known) = entry.deadline {
            added = match () {
                () if due < known.due => Added::Sooner,
                () if level > known.level => Added::Raised,
                () => Added::Coalesced,
            };
            if due >= known.due {
                deadline = known;
                // Another call asks for this deadline too, so the burst no longer moves it.
                deadline.burst = known.burst.filter(|_| due > known.due);
            }
            deadline.opens = opens.min(known.opens);
            deadline.level = level.max(known.level);
        }
        entry.deadline = Some(deadline);
        self.has_windows |= has_slack;
        self.settle();
        added
    }

    /// A deadline that moves is numbered again.
    pub(super) fn move_deadline(&mut self, key: Key, window: Window) {
        let number = self.next_number();
        let entry = self.entry_mut(key);
        if let Some(known) = &mut entry.deadline {
            *known = Deadline::new(window, number, known.level);
        }
    }

    fn add_now_or_at(&mut self, key: Key, window: Option<Window>, level: u8) -> Added {
        match window {
            Some(window) => self.retry_at(key, window, level),
            None => self.mark(key, self.now, level),
        }
    }

    /// What an add asks for: `None` is at once.
    fn asked(&self, key: Key, window: Option<Window>) -> Window {
        self.window_of_add(key, window.unwrap_or(Window::exact(Instant::EPOCH)))
    }

    /// There is one place for a key, at the sooner of two times and the higher of two levels.
    ///
    /// > The key runs once, at the earliest time for which it was added. An add without a delay
    /// > removes the deadline.
    fn add_once(&mut self, key: Key, window: Option<Window>, level: u8) -> Added {
        self.figures.retries += u64::from(window.is_some());
        let asked = self.asked(key, window);
        if is_after(asked.opens, self.now) && !self.entry(key).runs_anyway() {
            return self.schedule(key, asked, level);
        }
        let pending = self.entry_mut(key).deadline.take();
        let level = pending.map_or(level, |pending| pending.level.max(level));
        self.mark(key, self.now, level)
    }

    /// An add that may move the deadline of a key back, or leave it.
    ///
    /// > The later deadline wins. An add without a delay changes nothing.
    ///
    /// > The deadline of this add wins, earlier or later
    ///
    /// > The pending deadline wins, with any delay of this add
    fn merge(&mut self, key: Key, rule: Merge, window: Option<Window>, level: u8) -> Added {
        let Some(before) = self.entry(key).deadline else {
            return self.add_now_or_at(key, window, level);
        };
        let asked = self.asked(key, window);
        let is_later = is_after(asked.opens, self.now);
        let asked = match is_later {
            true => asked,
            false => Window::exact(self.now),
        };
        let (opens, due) = match rule {
            Merge::Latest => (before.opens.max(asked.opens), asked.due.max(before.due)),
            Merge::Replace => (asked.opens, asked.due),
            _ => (before.opens, before.due),
        };
        if due == before.due {
            // As if it were asked for once more, but that the order of ties stays.
            self.figures.retries += u64::from(window.is_some());
            let added = self.schedule(key, Window::exact(due), level);
            self.open_at(key, opens);
            if rule == Merge::Keep || asked.due != due {
                self.note_burst(key, before.burst, due);
            }
            return added;
        }
        self.entry_mut(key).deadline = None;
        let level = level.max(before.level);
        let added = if is_later {
            self.figures.retries += u64::from(window.is_some());
            self.schedule(key, Window { opens, due }, level)
        } else {
            self.add_now_or_at(key, window, level)
        };
        match added {
            // Of a suspended key, its end is no deadline that was moved.
            Added::Delayed if !is_later => Added::Delayed,
            Added::Delayed if due < before.due => Added::Sooner,
            Added::Delayed => Added::Later,
            ready => ready,
        }
    }

    /// A ready key leaves the queue with all that waits for it.
    pub(super) fn take_out_ready(&mut self, key: Key) -> Left {
        let entry = self.entry(key);
        let pending = entry.deadline.map_or(0, |pending| pending.level);
        let priority = pending.max(entry.level());
        let left = left_over(key, Duration::ZERO, self.failures_of(key), priority);
        self.drop_work(key);
        left
    }
}
