//! What client-go's queues do not know: how many pauses of `Action::poll` there were in a row, and
//! how long a key took to succeed.

use std::time::Duration;

use requeue_core::Instant;

use super::{Model, remove};
use crate::subject::Key;

impl Model {
    /// How many pauses there were in a row before the run of a key began because one had ended.
    pub(super) fn pauses(&self, key: Key) -> u8 {
        let began = self.began_by_pause.iter().find(|(other, _)| *other == key);
        began.map_or(0, |(_, pauses)| *pauses)
    }

    /// How long the pause is that follows so many others.
    pub(super) fn poll(&mut self, first: Duration, times: u32, pauses: u8) -> Duration {
        self.has_suspended |= self.may_suspend;
        let mut pause = first;
        for _ in 0..pauses {
            pause = pause.saturating_mul(2);
        }
        pause.min(first.saturating_mul(times.max(1)))
    }

    /// The run of a key has ended with a pause until then, if its deadline is that.
    pub(super) fn pause_until(&mut self, key: Key, until: Instant, pauses: u8) {
        let entry = self.waiting.iter().find(|entry| entry.key == key);
        let is_pause = entry.is_some_and(|entry| entry.due == until);
        let counts = self.may_suspend && !self.is_shutting_down && !self.is_suspended(key);
        if is_pause && counts {
            self.begin_pause(key, pauses.saturating_add(1));
        }
    }

    pub(super) fn begin_pause(&mut self, key: Key, pauses: u8) {
        if let Some(entry) = self.waiting.iter_mut().find(|entry| entry.key == key) {
            entry.pauses = pauses;
        }
    }

    /// The deadline of a key is no longer the end of a pause: the key is ready, or is suspended.
    pub(super) fn end_pause(&mut self, key: Key) {
        self.begin_pause(key, 0);
    }

    /// The run of a key ends, and its failures will be forgotten. An add during the run is the first
    /// one for its next success.
    pub(super) fn note_end(&mut self, key: Key, succeeds: bool) {
        let first = remove(&mut self.first_added, key);
        // At the end of time there is none left.
        if let Some(first) = first.filter(|first| succeeds && !first.is_never()) {
            let time = self.now.saturating_since(first);
            self.figures.times_to_success.push(time);
            let attempts = self.failures_of(key).saturating_add(1);
            self.figures.attempts_at_success.push(attempts);
        }
        let added = self.added.iter().find(|(added, _)| *added == key);
        let dirty = added.filter(|_| self.dirty.contains(&key)).copied();
        self.first_added.extend(dirty);
    }
}
