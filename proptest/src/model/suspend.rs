//! Keys that wait for an event, which client-go does not have: `Session::suspend` and `resume`.

use std::fmt;
use std::time::Duration;

use requeue_core::{Added, Instant, Why};

use super::slack::Window;
use super::{Model, Waiting, is_after, remove};
use crate::subject::Key;

/// A key that is not handed out before it is resumed, or its timeout ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Suspended {
    pub(super) key: Key,
    /// > The timeout of `suspend(key, timeout)` has no slack. That of `Action::Suspend` may have some
    pub(super) opens: Instant,
    pub(super) until: Instant,
    /// That of its entry among the deadlines.
    number: u64,
    /// The level of the run that was asked for since.
    queued: Option<u8>,
}

/// How a key will be suspended when its run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    window: Window,
    /// The action asks for a run after that.
    asks: bool,
}

impl fmt::Display for Suspended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} until {}", self.key, self.until)?;
        f.write_str(if self.queued.is_some() {
            " (added)"
        } else {
            ""
        })
    }
}

impl Model {
    /// Lets keys be suspended, or not: then to suspend one is to delay it.
    pub(crate) fn with_suspensions(mut self, suspends: bool) -> Self {
        self.may_suspend = suspends;
        self
    }

    pub(super) fn suspension(&self, key: Key) -> Option<Suspended> {
        let mut suspended = self.suspended.iter();
        suspended.find(|suspended| suspended.key == key).copied()
    }

    pub(super) fn is_suspended(&self, key: Key) -> bool {
        self.suspension(key).is_some()
    }

    /// The deadlines that may come: of a suspended key the end of its timeout, and not its own.
    pub(super) fn deadlines(&self) -> Vec<Waiting> {
        let waiting = self.waiting.iter().copied();
        let own = waiting.filter(|entry| !self.is_suspended(entry.key));
        let ends = self.suspended.iter().map(|suspended| Waiting {
            opens: suspended.opens,
            due: suspended.until,
            number: suspended.number,
            key: suspended.key,
            level: self.level_of_end(suspended.key),
            backs_off: false,
            pauses: 0,
        });
        own.chain(ends).collect()
    }

    /// The level of the run that the end of the timeout begins.
    pub(super) fn level_of_end(&self, key: Key) -> u8 {
        let Some(suspended) = self.suspension(key) else {
            return 0;
        };
        let entry = self.waiting.iter().find(|entry| entry.key == key);
        let entry = entry.filter(|entry| entry.due <= suspended.until);
        let delayed = entry.map_or(0, |entry| entry.level);
        suspended.queued.unwrap_or(0).max(delayed)
    }

    /// A key that runs without another add and another deadline.
    pub(super) fn runs_anyway(&self, key: Key) -> bool {
        let suspended = self.suspension(key);
        self.dirty.contains(&key) || suspended.is_some_and(|key| key.queued.is_some())
    }

    pub(super) fn suspend_key(&mut self, key: Key, until: Instant) -> bool {
        if self.is_shutting_down {
            return false;
        }
        self.arrive_at(key);
        let window = Window::exact(until);
        if let Some(before) = self.suspension(key) {
            self.suspended.retain(|suspended| suspended.key != key);
            self.begin_suspension(key, window, before.queued);
        } else if self.processing.contains(&key) {
            self.has_suspended = true;
            self.resumed.retain(|other| *other != key);
            remove(&mut self.suspensions, key);
            let asks = false;
            let plan = Plan { window, asks };
            self.suspensions.push((key, plan));
        } else if self.queue.contains(&key) {
            let level = self.queued_level(key);
            self.leave_the_queue(key);
            self.begin_suspension(key, window, Some(level));
        } else if self.waiting.iter().any(|entry| entry.key == key) {
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
        if !self.may_suspend {
            return Some(timeout);
        }
        if self.resumed.contains(&key) {
            return Some(Duration::ZERO);
        }
        self.has_suspended = true;
        remove(&mut self.suspensions, key);
        let asks = true;
        self.suspensions.push((key, Plan { window, asks }));
        None
    }

    pub(super) fn suspend_after_run(&mut self, key: Key, plan: Plan) {
        let was_dirty = self.dirty.contains(&key);
        let dirty = was_dirty.then(|| self.queued_level(key));
        let asked = plan.asks.then(|| self.running_level(key));
        if was_dirty {
            self.leave_the_queue(key);
        }
        let mut window = plan.window;
        if self.is_shutting_down {
            window = window.not_before(self.closed_at.0);
        }
        self.begin_suspension(key, window, dirty.max(asked));
        let held = self.held_until(key);
        self.put_off(key, held);
        if was_dirty && self.is_shutting_down {
            // Others take the place of a key that was to be ready.
            self.arrive();
        }
    }

    fn leave_the_queue(&mut self, key: Key) {
        self.queue.retain(|other| *other != key);
        self.dirty.retain(|other| *other != key);
        self.take_places();
        self.figures.depth -= 1;
        remove(&mut self.added, key);
        self.note_flushes_of(key);
    }

    fn begin_suspension(&mut self, key: Key, window: Window, queued: Option<u8>) {
        self.has_suspended = true;
        self.timed_out.retain(|other| *other != key);
        self.end_pause(key);
        let number = self.entries;
        self.entries += 1;
        self.has_windows |= window.opens != window.due;
        self.suspended.push(Suspended {
            key,
            opens: window.opens,
            until: window.due,
            number,
            queued,
        });
        // Its own deadline has no slack any more.
        self.open_at(key, window.opens);
        self.settle();
    }

    /// A deadline that has passed is an add that has happened, also of a suspended key: nothing is
    /// left of it that could be moved or taken back.
    pub(super) fn let_own_deadline_pass(&mut self, key: Key) {
        let entry = self.waiting.iter().find(|entry| entry.key == key).copied();
        let is_open = !self.is_shutting_down;
        let passed = entry.filter(|entry| is_open && self.is_suspended(key) && self.is_due(entry));
        if let Some(entry) = passed {
            self.waiting.retain(|entry| entry.key != key);
            let suspended = self.suspended.iter_mut();
            for suspended in suspended.filter(|suspended| suspended.key == key) {
                suspended.queued = suspended.queued.max(Some(entry.level));
            }
            self.settle();
        }
    }

    /// An add runs the key when it is suspended no longer.
    pub(super) fn add_suspended(&mut self, key: Key, level: u8) -> Added {
        let mut suspended = self.suspended.iter_mut();
        let Some(suspended) = suspended.find(|suspended| suspended.key == key) else {
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

    pub(super) fn resume_key(&mut self, key: Key) -> bool {
        if self.is_shutting_down {
            return false;
        }
        self.arrive_at(key);
        if self.processing.contains(&key) {
            self.has_suspended = true;
            self.resumed.retain(|other| *other != key);
            self.resumed.push(key);
            return remove(&mut self.suspensions, key).is_some();
        }
        let is_suspended = self.is_suspended(key);
        if is_suspended {
            self.end_suspension(key, self.now, false);
        }
        is_suspended
    }

    /// The key runs if anything asks for it, and by its timeout in any case. Its own deadline may
    /// have passed meanwhile, or is set anew.
    pub(super) fn end_suspension(&mut self, key: Key, at: Instant, timed_out: bool) {
        let mut level = self.suspension(key).and_then(|suspended| suspended.queued);
        self.suspended.retain(|suspended| suspended.key != key);
        if timed_out {
            self.timed_out.push(key);
            level = level.or(Some(0));
        }
        let entry = self.waiting.iter().find(|entry| entry.key == key).copied();
        if let Some(entry) = entry {
            self.stop_waiting(key);
            if is_after(entry.due, at) {
                let number = self.entries;
                self.entries += 1;
                self.waiting.push(Waiting { number, ..entry });
            } else {
                level = level.max(Some(entry.level));
            }
        }
        if let Some(level) = level {
            self.mark(key, at, level);
        }
        self.settle();
    }

    /// The work of a key is taken back.
    pub(super) fn cancel_suspension(&mut self, key: Key) {
        remove(&mut self.suspensions, key);
        self.suspended.retain(|suspended| suspended.key != key);
    }

    /// How long a key is suspended, without slack.
    pub(super) fn suspension_left(&self, key: Key) -> Option<Duration> {
        let until = self.suspension(key)?.opens;
        Some(match until.saturating_since(self.now) {
            _ if until.is_never() => Duration::MAX,
            left => left,
        })
    }

    pub(super) fn reason_of_suspended(&self, key: Key) -> Why {
        let suspended = self.suspension(key);
        let until = suspended.map_or(Instant::NEVER, |suspended| suspended.until);
        let again = self.runs_anyway(key);
        Why::Suspended { until, again }
    }
}
