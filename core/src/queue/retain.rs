//! Taking the work of many keys back, in steps.

use core::hash::Hash;

use crate::id::SlotId;
use crate::limiter::RateLimiter;
use crate::metrics::Metrics;
use crate::storage::{Slots, Storage};

use super::Session;

/// How far [`Session::retain_some`](crate::Session::retain_some),
/// [`Session::expedite_some`](crate::Session::expedite_some) or
/// [`Session::snapshot_some`](crate::Session::snapshot_some) has come. They have examples.
#[derive(Debug, Default)]
#[must_use = "a sweep does nothing until it is passed to a queue"]
pub struct Sweep {
    /// The slot that is looked at next.
    next: usize,
    /// Where the sweep ends, once it has begun. Slots that are used later are not looked at.
    end: Option<usize>,
    cancelled: usize,
}

impl Sweep {
    /// Creates a sweep that has not begun. O(1).
    pub const fn new() -> Self {
        Self {
            next: 0,
            end: None,
            cancelled: 0,
        }
    }

    /// Returns how many keys were cancelled. O(1).
    pub const fn cancelled(&self) -> usize {
        self.cancelled
    }

    /// Passes the slots of one step to `visit`. Returns whether there are more.
    pub(super) fn step(&mut self, bound: usize, mut visit: impl FnMut(SlotId)) -> bool {
        self.begin(bound);
        for _ in 0..VISITS_MAX {
            let Some(id) = self.next_slot() else {
                break;
            };
            visit(id);
        }
        !self.is_over()
    }

    /// Sets the end, in the first step.
    pub(super) fn begin(&mut self, bound: usize) {
        self.end.get_or_insert(bound);
    }

    /// The slot that is looked at next. `None` at the end.
    pub(super) fn next_slot(&mut self) -> Option<SlotId> {
        let next = self.next;
        if self.is_over() {
            return None;
        }
        self.next += 1;
        Some(SlotId::from_index(next))
    }

    pub(super) fn is_over(&self) -> bool {
        self.end.is_some_and(|end| self.next >= end)
    }
}

impl<K: Eq + Hash, S: Storage, L: RateLimiter, M: Metrics> Session<'_, K, S, L, M> {
    /// [Cancels](Self::cancel) the keys that `keep` returns `false` for, in steps: call this until
    /// it returns `false`. A step makes due keys ready, or looks at 32 slots (8 without the feature
    /// `alloc`) and cancels at most [`DUE_KEYS_MAX`](Storage::DUE_KEYS_MAX) keys, O(log n) each.
    ///
    /// Asks about each key that is ready, active or delayed, in no order; the order of those that
    /// stay does not change. A key that is added between two steps may or may not be asked about.
    /// The order in which failure records are discarded when room is short is not specified for
    /// keys that were cancelled together. `keep` must not touch the queue.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_core::{Fixed, Instant, NoLimit, Queue, Sweep};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<u16, Fixed<16>, NoLimit> = Queue::new(NoLimit);
    /// let _ = queue.at(now).add_many(1..=16, |_| {});
    ///
    /// // Interrupts are served between any two steps.
    /// let mut sweep = Sweep::new();
    /// while queue.at(now).retain_some(&mut sweep, |sensor| *sensor <= 10) {}
    /// assert_eq!(sweep.cancelled(), 6);
    /// assert_eq!(queue.at(now).len(), 10);
    /// ```
    pub fn retain_some(&mut self, sweep: &mut Sweep, mut keep: impl FnMut(&K) -> bool) -> bool {
        let Self { queue, now, .. } = self;
        if queue.release_due(SlotId::NONE, *now) {
            return true;
        }
        sweep.begin(queue.slots.bound());
        let last = sweep.cancelled + usize::from(queue.due_keys_max.get());
        for _ in 0..VISITS_MAX {
            if sweep.cancelled >= last {
                break;
            }
            let Some(id) = sweep.next_slot() else {
                break;
            };
            let slot = queue.slots.slot(id).filter(|_| !queue.is_record_only(id));
            if slot.is_some_and(|slot| !keep(&slot.key)) {
                // Before, because the key's `Drop` may panic.
                sweep.cancelled += 1;
                queue.cancel_slot(id);
            }
        }
        !sweep.is_over()
    }
}

/// How many slots a step looks at.
pub(crate) const VISITS_MAX: usize = if cfg!(feature = "alloc") { 32 } else { 8 };
