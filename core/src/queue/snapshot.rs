//! Looking at all keys, in steps.

use core::hash::Hash;

use crate::Instant;
use crate::id::SlotId;
use crate::limiter::RateLimiter;
use crate::metrics::Metrics;
use crate::outcome::{Entry, KeyState};
use crate::priority::KeyLevels;
use crate::storage::{Slots, Storage};

use super::{Queue, Session, Sweep};

impl<K: Eq + Hash, S: Storage, L: RateLimiter, M: Metrics> Session<'_, K, S, L, M> {
    /// Passes each key that the queue holds to `visit`, with what the queue knows about it, in
    /// steps: call this until it returns `false`. A step looks at 32 slots (8 without the feature
    /// `alloc`), O(1) each, and changes nothing.
    ///
    /// Keys come in no order. A key that the queue holds from the first step to the last is passed
    /// exactly once; one that is added or removed between two steps may or may not be. Each is
    /// shown as it is at its step, as [`state`](Self::state) shows it: if its deadline has passed,
    /// it is ready.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_core::{Fixed, Instant, NoLimit, Queue, Sweep};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<u16, Fixed<16>, NoLimit> = Queue::new(NoLimit);
    /// let _ = queue.at(now).add_many(1..=16, |_| {});
    /// let _work = queue.at(now).try_get();
    ///
    /// // Interrupts are served between any two steps.
    /// let (mut ready, mut active) = (0, 0);
    /// let mut sweep = Sweep::new();
    /// while queue.at(now).snapshot_some(&mut sweep, |entry| {
    ///     ready += u32::from(entry.state.ready);
    ///     active += u32::from(entry.state.active);
    /// }) {}
    /// assert_eq!((ready, active), (15, 1));
    /// ```
    pub fn snapshot_some(&self, sweep: &mut Sweep, mut visit: impl FnMut(Entry<&K>)) -> bool {
        sweep.step(self.queue.slots.bound(), |id| {
            if let Some(entry) = self.queue.entry(id, self.now) {
                visit(entry);
            }
        })
    }
}

impl<K: Eq + Hash, S: Storage, L: RateLimiter, M: Metrics> Queue<K, S, L, M> {
    fn entry(&self, id: SlotId, now: Instant) -> Option<Entry<&K>> {
        let slot = self.slots.slot(id)?;
        let mut state = self.state_of(id)?;
        if self.delays.has_passed(id, self.time_at(now)) {
            state.come_due(slot.meta.levels.delayed());
        }
        let keeps_times = self.metrics.running(&self.running).is_some();
        let active_since = (state.active && keeps_times).then(|| self.started(id));
        Some(Entry {
            key: &slot.key,
            state,
            active_since: active_since.flatten(),
        })
    }
}

impl KeyState {
    /// What the state becomes when a deadline passes: an add at the level of the deadline.
    fn come_due(&mut self, level: u8) {
        self.due = None;
        self.priority = if self.ready || self.dirty {
            self.priority.max(level)
        } else {
            level
        };
        self.ready = !self.active;
        self.dirty = self.active;
    }
}
