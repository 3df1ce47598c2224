//! What client-go has not: runs that are completed by ticket, and keys that are handed back.

use std::time::Duration;

use requeue_core::{Action, AddOptions, Finished, Rejected};

use super::{Model, Rules, Waiting, remove};
use crate::subject::{Displaced, Key, Left, Ticket, left_over};

impl Model {
    pub(super) fn is_current(&self, ticket: Ticket) -> bool {
        self.processing.contains(&ticket.key) && self.last_run.contains(&(ticket.key, ticket.run))
    }

    /// Done, and what a caller of client-go would write around it. A key that wants to come back
    /// after shutdown is kept among the waiting, unless it will be worked on in any case.
    pub(super) fn complete_run(&mut self, ticket: Ticket, action: Action) -> Finished {
        if !self.is_current(ticket) {
            return Finished::Stale;
        }
        self.complete(ticket.key, action)
    }

    /// The same, by name. Only client-go takes any key for active.
    pub(super) fn complete_by_name(&mut self, key: Key) -> Finished {
        if self.processing.contains(&key) || self.rules == Rules::ClientGo {
            self.complete(key, Action::Release)
        } else {
            Finished::Stale
        }
    }

    fn complete(&mut self, key: Key, action: Action) -> Finished {
        self.arrive_at(key);
        let slack = action.slack();
        let (action, priority) = action.into_parts();
        if let Some(level) = priority {
            remove(&mut self.running_at, key);
            self.running_at.push((key, level.min(self.levels - 1)));
        }
        let pauses = self.pauses(key);
        let delay = match action {
            Action::Success | Action::GiveUp => {
                self.note_end(key, action == Action::Success);
                self.forget_key(key);
                None
            }
            Action::RequeueAfter(delay) => {
                self.note_end(key, true);
                self.forget_key(key);
                Some(delay)
            }
            Action::Retry => Some(self.charge(key)),
            Action::Snooze(delay) => Some(delay),
            Action::Suspend(timeout) => {
                let window = self.window_after(timeout, slack);
                self.plan_suspension(key, timeout, window)
            }
            Action::Poll(first, times) => Some(self.poll(first, times, pauses)),
            _ => None,
        };
        // "`Finished` [has] the delay without the slack."
        let window = delay.map(|delay| self.window_after(delay, slack));
        if let Some(window) = window {
            let level = self.running_level(key);
            if !self.is_shutting_down {
                self.retry_at(key, window, level);
                if action == Action::Retry {
                    self.note_backoff(key, window.due);
                }
            } else if !self.dirty.contains(&key) {
                self.schedule(key, window, level);
            }
        }
        let was_dirty = self.dirty.contains(&key);
        let ready = self.end_run(key);
        let held = self.held_until(key);
        let left = match held.saturating_since(self.now) {
            _ if held.is_never() => Duration::MAX,
            left => left,
        };
        if let (Action::Poll(..), Some(window), false) = (action, window, was_dirty) {
            self.pause_until(key, window.due.max(held), pauses);
        }
        let is_held = was_dirty && !ready;
        let delay = delay.map(|delay| delay.max(left));
        let delay = if is_held { Some(left) } else { delay };
        let suspended = self.suspension_left(key);
        match suspended.or(delay) {
            _ if ready => Finished::Ready,
            None => Finished::Idle,
            Some(delay) if self.is_shutting_down => Finished::Leftover(delay),
            Some(delay) if suspended.is_some() => Finished::Suspended(delay),
            Some(delay) => Finished::Delayed(delay),
        }
    }

    /// What is left over after shutdown: client-go drops it.
    pub(super) fn pop_delayed(&mut self) -> Option<Left> {
        if !self.is_shutting_down {
            return None;
        }
        if self.due_keys_max.is_none() {
            // Behind a lock, what is due is released first, and the time of groups goes on.
            self.groups_come_due();
        }
        self.without_time(Self::release_all);
        let Waiting {
            due, key, level, ..
        } = self.first_waiting()?;
        let failures = self.failures_of(key);
        self.stop_waiting(key);
        if !self.processing.contains(&key) && !self.queue.contains(&key) {
            self.cancel_suspension(key);
        }
        self.settle();
        let left = if due.is_never() {
            Duration::MAX
        } else {
            due.saturating_since(self.now)
        };
        Some(left_over(key, left, failures, level))
    }

    pub(super) fn pop_ready(&mut self) -> Option<Left> {
        if !self.is_shutting_down {
            return None;
        }
        self.without_time(|model| {
            model.arrive();
            model.arrive_at_first(Self::first_left);
            // None of those that are left is forgotten.
            while model.first_left().is_none() && model.has_backlog() {
                model.arrive();
            }
        });
        let key = self.first_left()?;
        self.queue.retain(|other| *other != key);
        Some(self.leave_ready(key))
    }

    /// Taking leftovers needs no time: it is that of the shutdown.
    fn without_time(&mut self, work: impl FnOnce(&mut Self)) {
        let now = std::mem::replace(&mut self.now, self.closed_at.0);
        work(self);
        self.now = now;
    }

    /// As an add, but if there is no room, the last of the keys at the lowest level makes way.
    pub(super) fn add_instead(&mut self, key: Key, options: AddOptions) -> Displaced {
        let full = match self.add_as(key, options) {
            Err(Rejected::Full(key)) => key,
            other => return other.map(|scheduled| (scheduled, None)),
        };
        // If more keys are held than fit, one that made way would make no room.
        let newest = self.newest_below(options.priority.unwrap_or(0));
        let Some(newest) = newest.filter(|_| self.surplus() == 0) else {
            return Err(Rejected::Full(full));
        };
        self.queue.retain(|other| *other != newest);
        let left = self.leave_ready(newest);
        let scheduled = self.add_as(key, options)?;
        Ok((scheduled, Some(left)))
    }

    /// A key that has left the queue leaves all the rest, too.
    fn leave_ready(&mut self, key: Key) -> Left {
        self.take_places();
        let pending = self.waiting.iter().find(|entry| entry.key == key);
        let priority = pending.map_or(0, |entry| entry.level);
        let priority = priority.max(self.queued_level(key));
        let failures = self.failures_of(key);
        self.figures.depth -= 1;
        remove(&mut self.added, key);
        self.dirty.retain(|other| *other != key);
        self.note_flushes_of(key);
        self.cancel_suspension(key);
        self.stop_waiting(key);
        self.settle();
        left_over(key, Duration::ZERO, failures, priority)
    }
}
