//! Why a key does not run, which client-go does not tell.

use requeue_core::{Instant, Why};

use super::{Model, is_after};
use crate::subject::{Key, group_of};

impl Model {
    /// What stands in the way of a key: its run, its delay, and once it is ready, the queue and its
    /// group.
    pub(super) fn reason(&self, key: Key) -> Why {
        if self.processing.contains(&key) {
            return Why::Running {
                since: self.active_since(key),
                again: self.dirty.contains(&key),
            };
        }
        let entry = self.waiting.iter().find(|entry| entry.key == key);
        match entry {
            _ if self.queue.contains(&key) => self.reason_of_ready(key),
            _ if self.is_shutting_down => Why::Closed,
            _ if self.is_suspended(key) => self.reason_of_suspended(key),
            Some(entry) => self.reason_of_delayed(key, entry.due, entry.backs_off),
            None => Why::Idle,
        }
    }

    fn reason_of_delayed(&self, key: Key, until: Instant, backs_off: bool) -> Why {
        let failures = self.failures_of(key);
        // One that begins at the end of time is none: a clock does not show that.
        let bursts = self.present_bursts().into_iter();
        let mut debounced = bursts.filter(|(_, first)| !first.is_never());
        if is_after(self.held_until(key), self.now) && self.held_until(key) >= until {
            Why::Held { until, failures }
        } else if debounced.any(|(other, _)| other == key) {
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
        match self.why_blocked(group_of(&key)) {
            Some(Why::GroupNoToken { until }) if until >= start => Why::GroupNoToken { until },
            Some(Why::GroupNoToken { .. }) | None => no_token.unwrap_or(Why::Ready),
            Some(blocked) => blocked,
        }
    }

    /// The limiter asks for a deadline of a key, which may wait for another.
    pub(super) fn note_backoff(&mut self, key: Key, due: Instant) {
        let mut waiting = self.waiting.iter_mut();
        if let Some(entry) = waiting.find(|entry| entry.key == key && entry.due == due) {
            entry.backs_off = true;
        }
    }
}
