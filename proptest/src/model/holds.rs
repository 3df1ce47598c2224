//! Keys that may not run for a while, which client-go does not have: [`Policy`].
//!
//! [`Policy`]: requeue_core::Policy

use requeue_core::{Added, Instant};

use super::slack::Window;
use super::{Model, is_after, remove};
use crate::limiter::AnyRecord;
use crate::subject::Key;

impl Model {
    /// Until when a key may not run; a time that has passed if it may, as if it runs.
    ///
    /// > During a run its key is not held. Adds, delays and `expedite` act at once, and obey the
    /// > hold after the run.
    pub(super) fn held_until(&self, key: Key) -> Instant {
        if self.processing.contains(&key) {
            return Instant::EPOCH;
        }
        let memory = self.failures.iter().find(|(failed, _)| *failed == key);
        memory.map_or(Instant::EPOCH, |(_, memory)| memory.held_until)
    }

    /// When an add comes that is asked for at a time.
    ///
    /// > it is added, now or for a time before the hold is over | delayed until the hold is over
    ///
    /// > it is added for a time after that | delayed until that time
    ///
    /// A suspended key is added at once all the same, and waits for the end of its hold when it is
    /// resumed.
    pub(super) fn window_of_add(&self, key: Key, window: Window) -> Window {
        if self.is_suspended(key) && !is_after(window.opens, self.now) {
            return window;
        }
        window.not_before(self.held_until(key))
    }

    /// A failure may have begun a hold: the key is no longer ready, nor due before the end of it.
    /// Returns what became of the add.
    ///
    /// > `add_rate_limited` while it is ready | delayed until the hold is over
    pub(super) fn hold_back(&mut self, key: Key, added: Added) -> Added {
        let held = self.held_until(key);
        if !is_after(held, self.now) {
            return added;
        }
        let was_ready = self.queue.contains(&key);
        if was_ready {
            self.queue.retain(|other| *other != key);
            self.take_places();
            self.delay_instead(key, held);
        }
        match self.put_off(key, held) {
            _ if was_ready => Added::Delayed,
            true => Added::Later,
            false => added,
        }
    }

    /// The run of a key has ended, which may begin a hold, and its suspension.
    pub(super) fn end_suspended_run(&mut self, key: Key) {
        let plan = remove(&mut self.suspensions, key);
        self.resumed.retain(|other| *other != key);
        self.timed_out.retain(|other| *other != key);
        remove(&mut self.began_by_pause, key);
        match plan {
            Some(plan) => {
                self.begin_hold(key);
                self.suspend_after_run(key, plan);
            }
            None => self.hold_after_run(key),
        }
    }

    /// The later of two holds counts.
    ///
    /// > If a cool-down and a failure both hold a key, the later end counts.
    fn begin_hold(&mut self, key: Key) {
        let mut memory = remove(&mut self.failures, key).unwrap_or_default();
        let held = self.policy.held_after_run(self.now);
        memory.held_until = memory.held_until.max(held);
        self.remember(key, memory);
    }

    /// The run of a key has ended. If that begins a hold, or one began before, a dirty key waits.
    ///
    /// > its run ends, and it was added meanwhile | delayed until the hold is over
    fn hold_after_run(&mut self, key: Key) {
        self.begin_hold(key);
        let held = self.held_until(key);
        if is_after(held, self.now) && self.dirty.contains(&key) {
            self.delay_instead(key, held);
            if self.is_shutting_down {
                // Others take the place of a key that was to be ready.
                self.arrive();
            }
        }
        self.put_off(key, held);
    }

    /// A dirty key is delayed instead.
    fn delay_instead(&mut self, key: Key, held: Instant) {
        self.dirty.retain(|other| *other != key);
        self.figures.depth -= 1;
        remove(&mut self.added, key);
        let level = self.queued_level(key);
        self.schedule(key, Window::exact(held), level);
        self.note_flushes_of(key);
    }

    pub(super) fn put_off(&mut self, key: Key, held: Instant) -> bool {
        let entry = self.waiting.iter().find(|entry| entry.key == key).copied();
        let before = entry.filter(|entry| entry.due < held);
        if let Some(before) = before {
            self.move_deadline(key, Window::exact(held));
            self.begin_pause(key, before.pauses);
        } else if let Some(entry) = entry {
            self.open_at(key, entry.opens.max(held));
        }
        before.is_some()
    }

    /// An entry that moves is numbered again.
    pub(super) fn move_deadline(&mut self, key: Key, window: Window) {
        self.end_burst_at(key, window.due);
        let number = self.entries;
        self.entries += 1;
        if let Some(entry) = self.waiting.iter_mut().find(|entry| entry.key == key) {
            entry.opens = window.opens;
            entry.due = window.due;
            entry.number = number;
            entry.backs_off = false;
            entry.pauses = 0;
        }
    }

    /// An idle key whose record says nothing any more is gone.
    pub(super) fn drop_if_blank(&mut self, key: Key) {
        if !self.has_work(key) && self.is_blank(key, self.now) {
            remove(&mut self.failures, key);
        }
    }

    /// Of the two oldest records, those whose holds are over are dropped, and those of failures
    /// become the youngest.
    ///
    /// > Runs that end drop the records whose holds are over, two at most each; the order of the
    /// > other records may change by that.
    pub(super) fn drop_passed_holds(&mut self) {
        for _ in 0..2 {
            let Some(&oldest) = self.records.first().filter(|_| self.has_held) else {
                return;
            };
            if self.is_blank(oldest, self.now) {
                remove(&mut self.failures, oldest);
                self.records.remove(0);
                self.drop_bursts();
            } else if is_after(self.held_until(oldest), self.now) {
                return;
            } else {
                self.records.rotate_left(1);
            }
        }
    }

    fn is_blank(&self, key: Key, now: Instant) -> bool {
        let mut known = self.failures.iter();
        let memory = known.find(|(failed, _)| *failed == key);
        memory.is_none_or(|(_, memory)| {
            memory.record == AnyRecord::default() && !is_after(memory.held_until, now)
        })
    }
}
