//! What is remembered of keys that have failed, and how much room that takes.

use std::time::Duration;

use requeue_core::limiter::RateLimiter;
use requeue_core::{Instant, Rejected};

use super::{Model, remove};
use crate::limiter::AnyRecord;
use crate::subject::Key;

/// What is remembered of a key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Memory {
    pub(super) record: AnyRecord,
    /// Until when the key may not run; a time that has passed if it may.
    pub(super) held_until: Instant,
}

impl Model {
    /// A new key takes the place of the oldest memory if there is no other.
    pub(super) fn make_room(&mut self, key: Key) -> Result<(), Rejected<Key>> {
        if self.holds(key) || self.capacity.is_none_or(|capacity| self.held() < capacity) {
            return Ok(());
        }
        match self.records.first() {
            Some(&oldest) => {
                remove(&mut self.failures, oldest);
                self.settle();
                Ok(())
            }
            None => Err(Rejected::Full(key)),
        }
    }

    pub(super) fn remember(&mut self, key: Key, memory: Memory) {
        if memory != Memory::default() {
            self.failures.push((key, memory));
        }
    }

    /// default_rate_limiters.go, When.
    pub(super) fn charge(&mut self, key: Key) -> Duration {
        let mut memory = remove(&mut self.failures, key).unwrap_or_default();
        let delay = self.limiter.when(&mut memory.record, self.now);
        let held = self.policy.held_after_failure(delay, self.now);
        memory.held_until = memory.held_until.max(held);
        self.remember(key, memory);
        delay
    }

    /// default_rate_limiters.go, Forget.
    pub(super) fn forget_key(&mut self, key: Key) -> u32 {
        let count = self.failures_of(key);
        remove(&mut self.failures, key);
        self.settle();
        count
    }

    /// default_rate_limiters.go, NumRequeues.
    pub(super) fn failures_of(&self, key: Key) -> u32 {
        let memory = self.failures.iter().find(|(failed, _)| *failed == key);
        memory.map_or(0, |(_, memory)| self.limiter.failures(&memory.record))
    }

    /// Keeps the list of keys with a failure record alone up to date: at most one key comes to rest
    /// at a time.
    pub(super) fn settle(&mut self) {
        let failed: Vec<Key> = self.failures.iter().map(|(key, _)| *key).collect();
        let at_rest = |key: &Key| failed.contains(key) && !self.has_work(*key);
        let mut records = self.records.clone();
        records.retain(at_rest);
        for key in failed.iter().copied().filter(at_rest) {
            if !records.contains(&key) {
                records.push(key);
            }
        }
        self.records = records;
        let too_many = self.records.len().saturating_sub(self.failure_records_max);
        let surplus = too_many.max(self.surplus()).min(self.records.len());
        for oldest in self.records.drain(..surplus) {
            remove(&mut self.failures, oldest);
        }
        self.drop_bursts();
        let mut timed_out = std::mem::take(&mut self.timed_out);
        timed_out.retain(|key| self.has_work(*key));
        self.timed_out = timed_out;
        let mut first_added = std::mem::take(&mut self.first_added);
        first_added.retain(|(key, _)| self.has_work(*key));
        self.first_added = first_added;
        let (queue, processing) = (&self.queue, &self.processing);
        self.began_by_pause
            .retain(|(key, _)| queue.contains(key) || processing.contains(key));
    }

    /// How many more keys there are than fit, because fewer fit than did.
    pub(super) fn surplus(&self) -> usize {
        self.held()
            .saturating_sub(self.capacity.unwrap_or(usize::MAX))
    }

    pub(super) fn has_record(&self, key: Key) -> bool {
        self.failures.iter().any(|(failed, _)| *failed == key)
    }

    pub(super) fn has_work(&self, key: Key) -> bool {
        self.dirty.contains(&key)
            || self.processing.contains(&key)
            || self.is_suspended(key)
            || self.waiting.iter().any(|entry| entry.key == key)
    }

    pub(super) fn holds(&self, key: Key) -> bool {
        self.has_work(key) || self.has_record(key)
    }

    pub(super) fn held(&self) -> usize {
        self.held_keys().len()
    }

    pub(super) fn held_keys(&self) -> Vec<Key> {
        let mut keys = [&self.dirty[..], &self.processing[..]].concat();
        keys.extend(self.waiting.iter().map(|entry| entry.key));
        keys.extend(self.suspended.iter().map(|suspended| suspended.key));
        keys.extend(self.failures.iter().map(|(key, _)| *key));
        keys.sort_unstable();
        keys.dedup();
        keys
    }
}
