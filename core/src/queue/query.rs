//! Looking at a queue.

use core::hash::Hash;

use crate::Instant;
use crate::limiter::RateLimiter;
use crate::lists::Lists;
use crate::metrics::{Metrics, Stamps};
use crate::outcome::{Effect, KeyState};
use crate::slots::{Located, Phase, Slots, Storage};

use super::Queue;

impl<K: Eq + Hash, S: Storage, L: RateLimiter, M: Metrics> Queue<K, S, L, M> {
    /// How many keys are ready: client-go's `Len`. Keys in work and delayed keys do not count.
    /// O(1), and O(log n) for each deadline that has come.
    pub fn len(&mut self, now: Instant) -> Effect<usize> {
        self.release_due(now);
        let len = self.lists.ready_len();
        self.effect(len)
    }

    /// Whether no key is ready. Costs as [`len`](Self::len).
    pub fn is_empty(&mut self, now: Instant) -> Effect<bool> {
        let Effect { value, wake } = self.len(now);
        Effect {
            value: value == 0,
            wake,
        }
    }

    /// What the queue knows of a key; nothing if it does not hold the key. O(1), and O(log n) for
    /// each deadline that has come.
    pub fn state(&mut self, key: &K, now: Instant) -> Effect<Option<KeyState>> {
        self.release_due(now);
        let state = match self.slots.locate(key) {
            Located::Found(id) => self.slots.slot(id).map(|slot| KeyState {
                ready: slot.phase == Phase::Ready,
                active: matches!(slot.phase, Phase::Active | Phase::Dirty),
                dirty: slot.phase == Phase::Dirty,
                due: self.delays.due(id),
                requeues: self.limiter.requeues(&slot.note.memory),
            }),
            Located::Absent(_) => None,
        };
        self.effect(state)
    }

    /// Whether a key is ready, in work or delayed: whether there is work to be done on it. O(1).
    pub fn contains(&self, key: &K) -> bool {
        match self.slots.locate(key) {
            Located::Found(id) => !self.is_mere_memory(id),
            Located::Absent(_) => false,
        }
    }

    /// How many failures the limiter remembers of a key. O(1).
    pub fn num_requeues(&self, key: &K) -> u32 {
        match self.slots.locate(key) {
            Located::Found(id) => self.requeues(id),
            Located::Absent(_) => 0,
        }
    }

    /// How many keys are in work. O(1).
    pub fn active_len(&self) -> usize {
        self.active
    }

    /// How many keys wait for a deadline. O(1).
    pub fn delayed_len(&self) -> usize {
        self.delays.len()
    }

    /// How many keys the queue holds: ready, in work, delayed, or remembered for their failures.
    /// O(1).
    pub fn held_len(&self) -> usize {
        self.slots.len()
    }

    /// How many keys fit; nothing if the storage grows. O(1).
    pub const fn capacity(&self) -> Option<usize> {
        S::CAPACITY
    }

    /// The earliest deadline that is to come. O(1).
    pub fn next_deadline(&self) -> Option<Instant> {
        if self.closed {
            return None;
        }
        self.delays.earliest()
    }

    /// Whether the next operation looks at `now`: something is delayed, or the metrics measure
    /// time. A runtime need not read its clock otherwise. O(1).
    #[inline]
    pub fn needs_time(&self) -> bool {
        M::Stamps::NEED_TIME || (!self.closed && !self.delays.is_empty())
    }

    /// How many getters sleep. O(1).
    pub fn asleep(&self) -> usize {
        self.sleepers.asleep() as usize
    }

    /// Whether the queue has been shut down. O(1).
    pub fn shutting_down(&self) -> bool {
        self.closed
    }

    /// When the queue was first shut down; [`Instant::NEVER`] if it was not. O(1).
    pub fn closed_at(&self) -> Instant {
        self.closed_at
    }

    /// The rate limiter.
    pub fn limiter(&self) -> &L {
        &self.limiter
    }

    /// The metrics.
    pub fn metrics(&self) -> &M {
        &self.metrics
    }

    /// The metrics, to read and reset them.
    pub fn metrics_mut(&mut self) -> &mut M {
        &mut self.metrics
    }
}
