//! Keys that wait for an event: `Session::suspend` and `resume`.

use std::fmt;
use std::time::Duration;

use requeue_core::{Added, Instant};

use super::deadlines::{Deadline, Window};
use super::{Model, is_after};
use crate::operation::Key;

/// A key that is not handed out before it is resumed, or its timeout ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Suspended {
    /// > The timeout of `suspend(key, timeout)` has no slack. That of `Action::Suspend` may have some
    pub(super) end: Deadline,
    /// The level of the run that was asked for since.
    pub(super) queued: Option<u8>,
}

/// How a key will be suspended when its run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Plan {
    pub(super) window: Window,
    /// The action asks for a run after that.
    asks: bool,
}

impl fmt::Display for Suspended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let added = self.queued.map_or("", |_| " (added)");
        write!(f, "until {}{added}", self.end.due)
    }
}

impl Model {
    pub(super) fn suspend(&mut self, key: Key, until: Instant) -> bool {
        if self.is_closed() {
            return false;
        }
        self.arrive_at(key);
        let window = Window::exact(until);
        let entry = self.entry_mut(key);
        if let Some(before) = entry.suspended {
            self.begin_suspension(key, window, before.queued);
        } else if entry.active {
            let asks = false;
            (entry.resumed, entry.plan) = (false, Some(Plan { window, asks }));
            self.has_suspended = true;
        } else if entry.ready.is_some() {
            let level = entry.level();
            self.leave_queue(key);
            self.begin_suspension(key, window, Some(level));
        } else if entry.deadline.is_some() {
            self.begin_suspension(key, window, None);
        } else {
            return false;
        }
        true
    }

    /// What an action asks for. Returns how long the key waits if it is not to be suspended: it was
    /// resumed since, or it cannot be.
    pub(super) fn plan_suspension(
        &mut self,
        key: Key,
        timeout: Duration,
        window: Window,
    ) -> Option<Duration> {
        if !self.abilities.suspends {
            return Some(timeout);
        }
        if self.entry(key).resumed {
            return Some(Duration::ZERO);
        }
        self.has_suspended = true;
        let asks = true;
        self.entry_mut(key).plan = Some(Plan { window, asks });
        None
    }

    pub(super) fn suspend_after_run(&mut self, key: Key, plan: Plan) {
        let entry = self.entry(key);
        let dirty = entry.queued.map(|queued| queued.level);
        let asked = plan.asks.then_some(entry.running);
        if dirty.is_some() {
            self.leave_queue(key);
        }
        let window = plan.window.not_before(self.stopped_at());
        self.begin_suspension(key, window, dirty.max(asked));
        self.put_off(key, self.held_until(key));
        if dirty.is_some() && self.is_closed() {
            // Others take the place of a key that was to be ready.
            self.arrive();
        }
    }

    fn begin_suspension(&mut self, key: Key, window: Window, queued: Option<u8>) {
        let number = self.next_number();
        let entry = self.entry_mut(key);
        entry.timed_out = false;
        entry.end_pause();
        let end = Deadline::new(window, number, 0);
        entry.suspended = Some(Suspended { end, queued });
        self.has_suspended = true;
        self.has_windows |= window.opens != window.due;
        // Its own deadline has no slack any more.
        self.open_at(key, window.opens);
        self.settle();
    }

    /// A deadline that has passed is an add that has happened, also of a suspended key: nothing is
    /// left of it that could be moved or taken back.
    pub(super) fn let_own_deadline_pass(&mut self, key: Key) {
        let now = self.now;
        let is_closed = self.is_closed();
        let entry = self.entry_mut(key);
        let (Some(own), Some(suspended)) = (entry.deadline, &mut entry.suspended) else {
            return;
        };
        if !is_closed && !is_after(own.due, now) {
            suspended.queued = suspended.queued.max(Some(own.level));
            entry.deadline = None;
            self.settle();
        }
    }

    /// An add runs the key when it is suspended no longer.
    pub(super) fn add_suspended(&mut self, key: Key, level: u8) -> Added {
        let Some(suspended) = &mut self.entry_mut(key).suspended else {
            return Added::Coalesced;
        };
        let before = suspended.queued;
        suspended.queued = before.max(Some(level));
        self.settle();
        match before {
            None => Added::Delayed,
            Some(before) if level > before => Added::Raised,
            Some(_) => Added::Coalesced,
        }
    }

    pub(super) fn resume(&mut self, key: Key) -> bool {
        if self.is_closed() {
            return false;
        }
        self.arrive_at(key);
        let entry = self.entry_mut(key);
        if entry.active {
            entry.resumed = true;
            let planned = entry.plan.take();
            self.has_suspended = true;
            return planned.is_some();
        }
        let is_suspended = entry.suspended.is_some();
        if is_suspended {
            self.end_suspension(key, self.now, false);
        }
        is_suspended
    }

    /// The key runs if anything asks for it, and by its timeout in any case. Its own deadline may
    /// have passed meanwhile, or is set anew.
    pub(super) fn end_suspension(&mut self, key: Key, at: Instant, timed_out: bool) {
        let number = self.next_number();
        let entry = self.entry_mut(key);
        let suspended = entry.suspended.take();
        let mut level = suspended.and_then(|suspended| suspended.queued);
        if timed_out {
            entry.timed_out = true;
            level = level.or(Some(0));
        }
        if let Some(own) = &mut entry.deadline {
            if is_after(own.due, at) {
                own.number = number;
            } else {
                level = level.max(Some(own.level));
                entry.deadline = None;
            }
        }
        if let Some(level) = level {
            self.mark(key, at, level);
        }
        self.settle();
    }
}
