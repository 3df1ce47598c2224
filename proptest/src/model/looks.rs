//! Looks: what can be seen of the queue and of a key, and why the key does not run.

use std::time::Duration;

use requeue_core::{Instant, KeyState, Stats, Why};

use super::{Entry, Model, is_after};
use crate::operation::Key;

impl Model {
    pub(super) fn know(&self, key: Key) -> Option<KeyState> {
        let entry = self.entry(key);
        let mut known = KeyState::default();
        known.ready = entry.ready.is_some();
        known.active = entry.active;
        known.dirty = entry.is_dirty();
        known.cancelled = entry.cancelled;
        known.due = entry.deadline.map(|deadline| deadline.due);
        known.suspended = entry.suspended.map(|suspended| suspended.end.due);
        known.failures = self.failures_of(key);
        known.priority = match entry.deadline {
            _ if entry.suspended.is_some() => entry.level_of_end(),
            _ if entry.queued.is_some() => entry.level(),
            _ if entry.active => entry.running,
            Some(deadline) => deadline.level,
            None => 0,
        };
        known.active_since = self.active_since(key);
        entry.is_held().then_some(known)
    }

    /// When the run of an active key began, if the queue knows it.
    fn active_since(&self, key: Key) -> Option<Instant> {
        self.entry(key).started.filter(|_| self.keeps_times)
    }

    pub(super) fn snapshot(&self) -> Vec<(Key, KeyState)> {
        // It shows what is due as ready, and changes nothing.
        let mut seen = self.clone();
        while seen.release(usize::MAX, None) {}
        let keys: Vec<Key> = seen.keys_that(Entry::is_held).collect();
        for key in &keys {
            // "A snapshot shows a key with an open window as ready."
            while seen.release_own(*key) {}
        }
        let keys = keys.into_iter();
        keys.filter_map(|key| Some((key, seen.know(key)?)))
            .collect()
    }

    pub(super) fn stats(&self) -> Stats {
        let mut stats = Stats::default();
        stats.total = self.count(Entry::is_held);
        stats.ready = self.count(|entry| entry.ready.is_some());
        stats.active = self.count(|entry| entry.active);
        stats.dirty = self.count(Entry::is_dirty);
        stats.delayed = self.count(|entry| entry.deadline.is_some() && entry.suspended.is_none());
        stats.suspended = self.count(|entry| entry.suspended.is_some());
        stats.failure_records = self.count(|entry| entry.rests.is_some());
        stats.max_keys = self.capacity;
        stats.next_deadline = self.next_deadline();
        stats.paused = self.paused;
        stats.shutting_down = self.is_closed();
        stats
    }

    pub(super) fn is_within(&mut self, ready_max: Duration, run_max: Duration) -> bool {
        self.arrive();
        let since = |at: Instant| self.now.saturating_since(at);
        let mut firsts = self.firsts().filter_map(|key| self.entry(key).queued);
        let mut runs = self.keys.iter().filter_map(|entry| entry.started);
        let mut overdue = self.deadlines().filter(|_| !self.is_closed());
        self.keeps_times
            && firsts.all(|queued| since(queued.added) <= ready_max)
            && runs.all(|began| since(began) <= run_max)
            && overdue.all(|(_, deadline)| since(deadline.due) <= ready_max)
    }

    /// metrics.go, updateUnfinishedWork: not while shutting down.
    pub(super) fn report_running(&mut self) {
        if self.is_closed() {
            return;
        }
        self.arrive();
        let began = self.keys.iter().filter_map(|entry| entry.started);
        let lasted = began.map(|began| self.now.saturating_since(began));
        let sum = lasted
            .clone()
            .fold(Duration::ZERO, Duration::saturating_add);
        let longest = lasted.max().unwrap_or_default();
        (self.figures.unfinished, self.figures.longest) = (sum, longest);
        self.figures.reports += 1;
    }

    /// What stands in the way of a key: its run, its delay, and once it is ready, the queue and its
    /// group.
    pub(super) fn reason(&self, key: Key) -> Why {
        let entry = self.entry(key);
        if entry.active {
            return Why::Running {
                since: self.active_since(key),
                again: entry.queued.is_some(),
            };
        }
        match (entry.suspended, entry.deadline) {
            _ if entry.ready.is_some() => self.reason_of_ready(key),
            _ if self.is_closed() => Why::Closed,
            (Some(suspended), _) => Why::Suspended {
                until: suspended.end.due,
                again: entry.runs_anyway(),
            },
            (None, Some(deadline)) => self.reason_of_delayed(key, deadline.due, deadline.backs_off),
            (None, None) => Why::Idle,
        }
    }

    fn reason_of_delayed(&self, key: Key, until: Instant, backs_off: bool) -> Why {
        let failures = self.failures_of(key);
        // A burst that begins at the end of time is none: a clock does not show that.
        let burst = self.entry(key).deadline.and_then(|own| own.burst);
        let debounced = burst.is_some_and(|first| !first.is_never());
        let held = self.held_until(key);
        if is_after(held, self.now) && held >= until {
            Why::Held { until, failures }
        } else if debounced {
            Why::Debounced { until }
        } else if backs_off {
            Why::BackingOff { until, failures }
        } else {
            Why::Delayed { until }
        }
    }

    fn reason_of_ready(&self, key: Key) -> Why {
        if self.paused {
            return Why::Paused;
        }
        let start = self.policy.next_start();
        let no_token = is_after(start, self.now).then_some(Why::NoToken { until: start });
        match self.why_blocked(self.group_of(key)) {
            Some(Why::GroupNoToken { until }) if until >= start => Why::GroupNoToken { until },
            Some(Why::GroupNoToken { .. }) | None => no_token.unwrap_or(Why::Ready),
            Some(blocked) => blocked,
        }
    }
}
