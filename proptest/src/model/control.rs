//! What neither client-go nor controller-runtime has: work that is taken back or hurried.

use std::collections::BTreeSet;

use requeue_core::Instant;

use super::{Model, remove};
use crate::subject::{Key, Known};

impl Model {
    /// The key leaves the queue, the dirty set and the waiting entries. Its failures stay.
    pub(super) fn take_back(&mut self, key: Key) -> Option<Known> {
        self.arrive_at(key);
        let was = self.know(key).filter(|_| self.has_work(key))?;
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
        if self.shutting_down {
            return false;
        }
        self.arrive_at(key);
        let entry = self.waiting.iter().find(|entry| entry.key == key).copied();
        if let Some(entry) = entry {
            self.stop_waiting(key);
            self.mark(key, self.now, entry.level);
        }
        entry.is_some()
    }

    pub(super) fn end_all_delays(&mut self) {
        while let Some(entry) = self.first_waiting().filter(|_| !self.shutting_down) {
            self.stop_waiting(entry.key);
            self.mark(entry.key, entry.due.min(self.now), entry.level);
        }
    }

    /// Takes back the work of each key but those below one.
    pub(super) fn take_back_from(&mut self, key: Key) -> usize {
        while self.release(usize::MAX) {}
        let keys = self.with_work_from(key);
        keys.iter().for_each(|key| self.drop_work(*key));
        keys.len()
    }

    /// How many failure records would be left of keys whose work is taken back together. The order
    /// of more than one is not specified.
    pub(crate) fn records_left_from(&self, key: Key) -> usize {
        let keys = self.with_work_from(key);
        let rests = |key: &&Key| self.failures_of(**key) > 0 && !self.processing.contains(key);
        keys.iter().filter(rests).count()
    }

    fn with_work_from(&self, key: Key) -> Vec<Key> {
        let waiting = self.waiting.iter().map(|entry| entry.key);
        let active = self.processing.iter().copied();
        let keys = self.dirty.iter().copied().chain(active).chain(waiting);
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
        self.stop_waiting(key);
        self.take_places();
        self.settle();
    }
}
