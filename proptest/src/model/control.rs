//! What neither client-go nor controller-runtime has: work that is taken back, hurried or restored.

use std::collections::BTreeSet;
use std::time::Duration;

use requeue_core::limiter::RateLimiter;
use requeue_core::{Added, Instant, KeyState, Merge, Rejected};

use super::slack::Window;
use super::{Model, is_after, remove};
use crate::subject::{Key, Left};

impl Model {
    /// The key leaves the queue, the dirty set and the waiting entries. Its failures stay.
    pub(super) fn take_back(&mut self, key: Key) -> Option<KeyState> {
        self.arrive_at(key);
        let was = self.know(key).filter(|_| self.has_work(key))?;
        if self.is_shutting_down && self.has_suspended {
            // A drain does not end before the keys that are due behind this one.
            self.arrive();
        }
        self.drop_work(key);
        Some(was)
    }

    pub(super) fn take_delay_back(&mut self, key: Key) -> Option<Instant> {
        self.arrive_at(key);
        let entry = self.waiting.iter().find(|entry| entry.key == key);
        let due = entry.map(|entry| entry.due)?;
        self.stop_waiting(key);
        self.settle();
        Some(due)
    }

    /// A deadline comes before its time, unless time has stopped.
    pub(super) fn end_delay(&mut self, key: Key) -> bool {
        if self.is_shutting_down {
            return false;
        }
        self.arrive_at(key);
        let entry = self.waiting.iter().find(|entry| entry.key == key).copied();
        let held = self.held_until(key);
        match entry {
            Some(entry) if is_after(held, self.now) && entry.due > held => {
                self.move_deadline(key, Window::exact(held));
            }
            Some(_) if is_after(held, self.now) => {}
            Some(entry) => {
                self.stop_waiting(key);
                self.mark(key, self.now, entry.level);
            }
            None => {}
        }
        entry.is_some()
    }

    pub(super) fn end_all_delays(&mut self) {
        if self.is_shutting_down {
            return;
        }
        self.release_all();
        if self.has_held || self.has_suspended {
            let keys: Vec<Key> = self.waiting.iter().map(|entry| entry.key).collect();
            for key in keys {
                self.end_delay(key);
            }
            return;
        }
        while let Some(entry) = self.first_waiting() {
            self.stop_waiting(entry.key);
            self.mark(entry.key, self.now, entry.level);
        }
    }

    /// Takes back the work of each key but those below one.
    pub(super) fn take_back_from(&mut self, key: Key) -> usize {
        self.release_all();
        let keys = self.with_work_from(key);
        keys.iter().for_each(|key| self.drop_work(*key));
        keys.len()
    }

    /// Whether it is specified which failure records are left of keys whose work is taken back
    /// together. Their order is not, nor which of the keys still take room that a record needs.
    pub(crate) fn cancels_in_order(&self, key: Key) -> bool {
        let keys = self.with_work_from(key);
        // A window that is open behind a closed one counts once that one is gone.
        let entries = self.deadlines();
        let is_hidden = |entry: &super::Waiting| entry.opens < entry.due && self.is_due(entry);
        if entries.iter().any(is_hidden) {
            return false;
        }
        let rests = |key: &&Key| self.has_record(**key) && !self.processing.contains(key);
        match keys.iter().filter(rests).count() {
            0 => true,
            1 => self.surplus() == 0,
            _ => false,
        }
    }

    pub(super) fn add_now_or_at(&mut self, key: Key, window: Option<Window>, level: u8) -> Added {
        match window {
            Some(window) => self.retry_at(key, window, level),
            None => self.mark(key, self.now, level),
        }
    }

    /// An add that may move the deadline of a key back, or leave it. client-go's rule and
    /// controller-runtime's are elsewhere.
    ///
    /// > The later deadline wins. An add without a delay changes nothing.
    ///
    /// > The deadline of this add wins, earlier or later
    ///
    /// > The pending deadline wins, with any delay of this add
    pub(super) fn merge(
        &mut self,
        key: Key,
        rule: Merge,
        window: Option<Window>,
        level: u8,
    ) -> Added {
        let entry = self.waiting.iter().find(|entry| entry.key == key).copied();
        let Some(entry) = entry else {
            return self.add_now_or_at(key, window, level);
        };
        let at_once = Window::exact(Instant::EPOCH);
        let asked = self.window_of_add(key, window.unwrap_or(at_once));
        let is_later = is_after(asked.opens, self.now);
        let asked = if is_later {
            asked
        } else {
            Window::exact(self.now)
        };
        let opens = Self::opens_merged(rule, entry.opens, asked.opens);
        let asked = asked.due;
        let chosen = match rule {
            Merge::Latest => asked.max(entry.due),
            Merge::Replace => asked,
            _ => entry.due,
        };
        if chosen == entry.due {
            // As if it were asked for once more, but that the order of ties stays.
            self.figures.retries += u64::from(window.is_some());
            let bursts = self.bursts.clone();
            let added = self.schedule(key, Window::exact(chosen), level);
            self.open_at(key, opens);
            if rule == Merge::Keep || asked != chosen {
                self.bursts = bursts;
            }
            return added;
        }
        self.stop_waiting(key);
        let level = level.max(entry.level);
        let added = if is_later {
            self.figures.retries += u64::from(window.is_some());
            self.schedule(key, Window { opens, due: chosen }, level)
        } else {
            self.add_now_or_at(key, window, level)
        };
        match added {
            // Of a suspended key, its end is no deadline that was moved.
            Added::Delayed if !is_later => Added::Delayed,
            Added::Delayed if chosen < entry.due => Added::Sooner,
            Added::Delayed => Added::Later,
            ready => ready,
        }
    }

    /// An add as another queue would have made it, with the failures that the key had there.
    pub(super) fn take_over(&mut self, left: Left) -> Result<Added, Rejected<Left>> {
        if self.is_shutting_down {
            return Err(Rejected::Closed(left));
        }
        if left.priority >= self.levels {
            return Err(Rejected::UnknownPriority(left));
        }
        let key = left.key;
        self.arrive_at(key);
        if self.make_room(key).is_err() {
            return Err(Rejected::Full(left));
        }
        if self.failures_of(key) < left.failures {
            let mut memory = remove(&mut self.failures, key).unwrap_or_default();
            let record = &mut memory.record;
            self.limiter.set_failures(record, left.failures);
            self.remember(key, memory);
        }
        Ok(match left.left {
            Duration::ZERO => self.mark(key, self.now, left.priority),
            delay => self.retry_at(key, Window::exact(self.now + delay), left.priority),
        })
    }

    /// Whether the order is specified in which delays end that are ended together.
    pub(crate) fn ends_delays_in_order(&self) -> bool {
        self.waiting.len() < 2 || !(self.has_held || self.has_suspended)
    }

    fn with_work_from(&self, key: Key) -> Vec<Key> {
        let waiting = self.waiting.iter().map(|entry| entry.key);
        let active = self.processing.iter().copied();
        let suspended = self.suspended.iter().map(|suspended| suspended.key);
        let keys = self.dirty.iter().copied().chain(active).chain(waiting);
        let keys = keys.chain(suspended);
        let keys: BTreeSet<Key> = keys.filter(|other| *other >= key).collect();
        keys.into_iter().collect()
    }

    fn drop_work(&mut self, key: Key) {
        if self.dirty.contains(&key) {
            self.figures.depth -= 1;
            remove(&mut self.added, key);
        }
        self.queue.retain(|other| *other != key);
        self.dirty.retain(|other| *other != key);
        if self.processing.contains(&key) && !self.cancelled.contains(&key) {
            self.cancelled.push(key);
        }
        self.note_flushes_of(key);
        self.cancel_suspension(key);
        self.stop_waiting(key);
        self.take_places();
        self.settle();
    }
}
