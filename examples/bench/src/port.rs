//! client-go's layout, written straight in Rust: the queue is measured against this port.
//!
//! It has a queue, a set of dirty keys, a set of active keys, a heap of waiting entries, a map that
//! finds them, and a map of failures. A key can be in all six. The port does the work of client-go,
//! without its costs for goroutines, channels, interfaces and garbage, because a needlessly slow
//! port would prove nothing. So a key is cloned only once per add: the copy in the dirty set moves
//! on to the set of active keys.

mod shared;
mod waiting;

use core::hash::{BuildHasher, Hash};
use std::collections::{HashMap, HashSet, VecDeque};

pub use shared::SharedPort;
use waiting::Waiting;

/// client-go's `DefaultItemBasedRateLimiter`: a millisecond, doubling, up to 1000 s.
const BASE_NANOS: u64 = 1_000_000;
const MAX_NANOS: u64 = 1_000_000_000_000;

/// A work queue in client-go's layout, as plain data.
#[derive(Debug)]
pub struct Port<K, H> {
    queue: VecDeque<K>,
    dirty: HashSet<K, H>,
    processing: HashSet<K, H>,
    waiting: Waiting<K, H>,
    failures: HashMap<K, u32, H>,
}

impl<K, H: Default> Default for Port<K, H> {
    fn default() -> Self {
        Self {
            queue: VecDeque::new(),
            dirty: HashSet::default(),
            processing: HashSet::default(),
            waiting: Waiting::default(),
            failures: HashMap::default(),
        }
    }
}

impl<K: Eq + Hash + Clone, H: BuildHasher> Port<K, H> {
    /// `Add`. Returns whether client-go would signal.
    pub fn add(&mut self, key: K) -> bool {
        if self.dirty.contains(&key) {
            return false;
        }
        self.dirty.insert(key.clone());
        let at_rest = !self.processing.contains(&key);
        if at_rest {
            self.queue.push_back(key);
        }
        at_rest
    }

    /// `Get`, where client-go would not wait.
    pub fn get(&mut self) -> Option<K> {
        let key = self.queue.pop_front()?;
        if let Some(kept) = self.dirty.take(&key) {
            self.processing.insert(kept);
        }
        Some(key)
    }

    /// `Done`. Returns whether client-go would signal.
    pub fn done(&mut self, key: &K) -> bool {
        self.processing.remove(key);
        let again = self.dirty.contains(key);
        if again {
            self.queue.push_back(key.clone());
        }
        again || self.processing.is_empty()
    }

    /// `AddAfter`, with a point in time instead of a duration.
    pub fn add_at(&mut self, key: K, due: u64, now: u64) {
        self.release_due(now);
        if due <= now {
            self.add(key);
        } else {
            self.waiting.insert(key, due);
        }
    }

    /// The work of client-go's `waitingLoop` when it wakes.
    pub fn release_due(&mut self, now: u64) {
        while let Some(key) = self.waiting.pop_due(now) {
            self.add(key);
        }
    }

    /// `AddRateLimited`. Returns the delay.
    pub fn add_rate_limited(&mut self, key: K, now: u64) -> u64 {
        let delay = self.when(&key);
        self.add_at(key, now + delay, now);
        delay
    }

    /// `When` of the limiter per key.
    pub fn when(&mut self, key: &K) -> u64 {
        let failures = match self.failures.get_mut(key) {
            Some(count) => {
                *count += 1;
                *count - 1
            }
            None => {
                self.failures.insert(key.clone(), 1);
                0
            }
        };
        // From 2^20 on, the delay is the longest anyway.
        (BASE_NANOS << failures.min(20)).min(MAX_NANOS)
    }

    /// `Forget`.
    pub fn forget(&mut self, key: &K) {
        self.failures.remove(key);
    }

    /// `Len`.
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Whether no key is ready.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}
