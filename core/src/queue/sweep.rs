//! Walks over all keys, a bounded number at a time, to cancel, expedite or show them. Owns the
//! position of a sweep; makes no decision about a key that an operation on one key would not make.

use super::*;

/// How far [`Session::retain_some`](crate::Session::retain_some),
/// [`Session::expedite_some`](crate::Session::expedite_some) or
/// [`Session::snapshot_some`](crate::Session::snapshot_some) has come. They have examples.
#[derive(Debug, Default)]
#[must_use = "a sweep does nothing until it is passed to a queue"]
pub struct Sweep {
    /// The next slot.
    next: usize,
    /// The end of a sweep that has begun. Slots beyond it were used later, and are not visited.
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

    /// Passes the next slots to `visit`, `most` of them. Returns whether there are more.
    pub(super) fn chunk(
        &mut self,
        bound: usize,
        most: usize,
        mut visit: impl FnMut(SlotId),
    ) -> bool {
        self.begin(bound);
        for _ in 0..most {
            let Some(id) = self.next_slot() else {
                break;
            };
            visit(id);
        }
        !self.is_over()
    }

    /// Sets the end, in the first call.
    pub(super) fn begin(&mut self, bound: usize) {
        self.end.get_or_insert(bound);
    }

    /// The next slot. `None` at the end.
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

impl<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage, M: Metrics>
    Session<'_, K, P, L, S, M>
{
    /// [Cancels](Self::cancel) the keys that `keep` returns `false` for, a few at a time: call this
    /// until it returns `false`. A call makes due keys ready, or looks at
    /// [`LOOKS_PER_LOCK`](Storage::LOOKS_PER_LOCK) slots and cancels at most as many keys as
    /// [`limit_due_keys`](Queue::limit_due_keys) says, O(log n) each.
    ///
    /// Asks about each key that is ready, active, delayed or suspended, in no order. The order of
    /// those that stay does not change. A key that is added between two calls may or may not be
    /// asked about. The order in which failure records are discarded when room is short is not
    /// specified for keys that were cancelled together. `keep` must not touch the queue.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::limiter::NoLimit;
    /// use requeue::priority::Plain;
    /// use requeue::storage::Fixed;
    /// use requeue::binding::Sweep;
    /// use requeue::{Instant, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<u16, Plain, NoLimit, Fixed<16>> = Queue::new(NoLimit);
    /// let _ = queue.at(now).add_many(1..=16, |_| {});
    ///
    /// // Interrupts are served between any two calls.
    /// let mut sweep = Sweep::new();
    /// while queue.at(now).retain_some(&mut sweep, |sensor| *sensor <= 10) {}
    /// assert_eq!(sweep.cancelled(), 6);
    /// assert_eq!(queue.at(now).len(), 10);
    /// ```
    pub fn retain_some(&mut self, sweep: &mut Sweep, mut keep: impl FnMut(&K) -> bool) -> bool {
        let Self { queue, now, .. } = self;
        if queue.make_due_ready(SlotId::NONE, *now) {
            return true;
        }
        sweep.begin(queue.slots.bound());
        let last = sweep.cancelled + usize::from(queue.due_keys_max.get());
        for _ in 0..S::LOOKS_PER_LOCK {
            if sweep.cancelled >= last {
                break;
            }
            let Some(id) = sweep.next_slot() else {
                break;
            };
            let slot = queue.slots.slot(id).filter(|_| !queue.is_record_only(id));
            if slot.is_some_and(|slot| !keep(&slot.key)) {
                // Must come first, because the key's `Drop` may panic.
                sweep.cancelled += 1;
                queue.cancel_slot(id);
            }
        }
        !sweep.is_over()
    }

    /// Ends the delay of a key now, as if its deadline had passed. Returns whether it had one.
    /// O(log n).
    ///
    /// The key becomes ready, or dirty if it is active; if it is ready, it stays where it is. A key
    /// that is [held](crate::Policy) waits until its hold is over. Does nothing after shutdown.
    ///
    /// # Examples
    ///
    /// The network is back, so a retry need not wait any longer:
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue::limiter::NoLimit;
    /// use requeue::priority::Plain;
    /// use requeue::storage::Fixed;
    /// use requeue::{Instant, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<&str, Plain, NoLimit, Fixed<4>> = Queue::new(NoLimit);
    /// let _ = queue.at(now).add_after("node-7", Duration::from_secs(60));
    /// assert!(queue.at(now).expedite(&"node-7"));
    /// assert!(!queue.at(now).expedite(&"node-7"), "it is not delayed any more");
    /// assert_eq!(queue.at(now).try_get().unwrap().key, "node-7");
    /// ```
    pub fn expedite<B>(&mut self, key: &B) -> bool
    where
        K: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        let Self { queue, now, .. } = self;
        if queue.closed {
            return false;
        }
        let found = queue.locate(key, *now).found();
        found.is_some_and(|id| queue.end_delay(id, *now))
    }

    /// Ends the delays of some keys now, in the order of their deadlines, as
    /// [`expedite`](Self::expedite) does for one: at most as many as
    /// [`limit_due_keys`](Queue::limit_due_keys) says, behind those that are due. Returns whether
    /// there may be more: then it is called again with the same sweep. O(log n). Does nothing after
    /// shutdown.
    ///
    /// If keys may be [held](crate::Policy), or one was held, suspended or polled, delays end in no
    /// order: the delay of a held key cannot end. A call then looks at
    /// [`LOOKS_PER_LOCK`](Storage::LOOKS_PER_LOCK) slots at most.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue::limiter::NoLimit;
    /// use requeue::priority::Plain;
    /// use requeue::storage::Fixed;
    /// use requeue::binding::Sweep;
    /// use requeue::{Instant, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<u64, Plain, NoLimit, Fixed<16>> = Queue::new(NoLimit);
    /// for seconds in (1..=16).rev() {
    ///     let _ = queue.at(now).add_after(seconds, Duration::from_secs(seconds));
    /// }
    /// // Interrupts are served between any two calls.
    /// let mut sweep = Sweep::new();
    /// while queue.at(now).expedite_some(&mut sweep) {}
    /// assert_eq!(queue.at(now).len(), 16);
    /// assert_eq!(queue.at(now).try_get().unwrap().key, 1);
    /// ```
    pub fn expedite_some(&mut self, sweep: &mut Sweep) -> bool {
        let Self { queue, now, .. } = self;
        if queue.closed {
            return false;
        }
        // Passed deadlines are applied in their order, also those of groups.
        if queue.make_due_ready(SlotId::NONE, *now) {
            return true;
        }
        if queue.holds() {
            return queue.expedite_slots(sweep, *now);
        }
        for _ in 0..queue.due_keys_max.get() {
            let Some((id, _)) = queue.delays.pop() else {
                break;
            };
            queue.come_due(id, *now);
        }
        !queue.delays.is_empty()
    }

    /// Passes each key that the queue has to `visit`, with what the queue knows about it, a few at
    /// a time: call this until it returns `false`. A call looks at
    /// [`LOOKS_PER_LOCK`](Storage::LOOKS_PER_LOCK) slots, O(1) each, and changes nothing.
    ///
    /// Keys come in no order. A key that the queue has from the first call to the last is passed
    /// exactly once; one that is added or removed between two calls may or may not be. Each is
    /// shown as it is at that call, as [`state`](Self::state) shows it: if its deadline has passed,
    /// it is ready.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::limiter::NoLimit;
    /// use requeue::priority::Plain;
    /// use requeue::storage::Fixed;
    /// use requeue::binding::Sweep;
    /// use requeue::{Instant, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<u16, Plain, NoLimit, Fixed<16>> = Queue::new(NoLimit);
    /// let _ = queue.at(now).add_many(1..=16, |_| {});
    /// let _work = queue.at(now).try_get();
    ///
    /// // Interrupts are served between any two calls.
    /// let (mut ready, mut active) = (0, 0);
    /// let mut sweep = Sweep::new();
    /// while queue.at(now).snapshot_some(&mut sweep, |_, state| {
    ///     ready += u32::from(state.ready);
    ///     active += u32::from(state.active);
    /// }) {}
    /// assert_eq!((ready, active), (15, 1));
    /// ```
    pub fn snapshot_some(&self, sweep: &mut Sweep, mut visit: impl FnMut(&K, KeyState)) -> bool {
        sweep.chunk(self.queue.slots.bound(), S::LOOKS_PER_LOCK, |id| {
            if let Some((key, state)) = self.queue.entry(id, self.now) {
                visit(key, state);
            }
        })
    }
}

impl<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage, M: Metrics> Queue<K, P, L, S, M> {
    /// Ends the delays of the next slots of a sweep.
    fn expedite_slots(&mut self, sweep: &mut Sweep, now: Instant) -> bool {
        sweep.begin(self.slots.bound());
        let mut left = self.due_keys_max.get();
        for _ in 0..S::LOOKS_PER_LOCK {
            if left == 0 {
                break;
            }
            let Some(id) = sweep.next_slot() else {
                break;
            };
            left -= u8::from(self.end_delay(id, now));
        }
        !sweep.is_over()
    }

    /// Ends the delay of a key now, or when it is no longer held. Returns whether it had one.
    fn end_delay(&mut self, id: SlotId, now: Instant) -> bool {
        let held = self.held_until(id);
        if held.is_after(now) {
            let due = self.deadline(id);
            if due.is_some_and(|due| due > held) {
                self.end_pause(id);
                self.move_deadline(id, Window::<P, S>::exact(held));
            }
            return due.is_some();
        }
        let had_one = self.take_deadline(id).is_some();
        if had_one {
            let level = self.levels(id).delayed;
            let _ = self.mark(id, now, level);
            self.metrics.delayed(self.delays.len());
        }
        had_one
    }

    fn entry(&self, id: SlotId, now: Instant) -> Option<(&K, KeyState)> {
        let slot = self.slots.slot(id)?;
        let mut state = self.state_of(id)?;
        let clock = self.time_at(now);
        if self.delays.has_passed(id, clock) {
            let ends = state.suspended.map(|until| until.min(clock));
            let next = ends.and_then(|until| self.after_end(id, until));
            let own_level = state.due.map_or(LOWEST, |_| self.levels(id).delayed);
            state.come_due(self.level_when_due(id, clock));
            if let Some((due, is_ready)) = next {
                let is_past = self.is_past(due, now);
                if is_past || !is_ready {
                    state.come_due(own_level.max(state.priority));
                }
                state.ready = is_ready || is_past;
                state.due = Some(due).filter(|_| !is_past);
            }
        }
        Some((&slot.key, state))
    }

    /// When the run of an active slot began, if the metrics keep times.
    pub(super) fn active_since(&self, id: SlotId) -> Option<Instant> {
        let _ = self.metrics.running(&self.running)?;
        self.started(id)
    }
}

impl KeyState {
    /// The state after a deadline has passed: an add at the level of the deadline.
    fn come_due(&mut self, level: u8) {
        self.due = None;
        self.suspended = None;
        self.priority = if self.ready || self.dirty {
            self.priority.max(level)
        } else {
            level
        };
        self.ready = !self.active;
        self.dirty = self.active;
    }
}
