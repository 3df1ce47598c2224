//! Ending delays early.

use core::borrow::Borrow;
use core::hash::Hash;

use crate::Instant;
use crate::id::SlotId;
use crate::limiter::RateLimiter;
use crate::metrics::Metrics;
use crate::outcome::Effect;
use crate::storage::{Located, Slots, Storage};

use super::retain::VISITS_MAX;
use super::{Queue, Sweep, quiet};

impl<K: Eq + Hash, S: Storage, L: RateLimiter, M: Metrics> Queue<K, S, L, M> {
    /// Ends the delay of a key now, as if its deadline had passed. Returns whether it had one.
    /// O(log n).
    ///
    /// The key becomes ready, or dirty if it is active; if it is ready, it stays where it is. A key
    /// that is [held](crate::WithHolds) waits until its hold is over. Does nothing after shutdown,
    /// which stops the time.
    ///
    /// # Examples
    ///
    /// The network is back, so a retry need not wait any longer:
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue_core::{Fixed, Instant, NoLimit, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<&str, Fixed<4>, NoLimit> = Queue::new(NoLimit);
    /// let _ = queue.add_after("node-7", Duration::from_secs(60), now);
    /// assert!(queue.expedite(&"node-7", now).value);
    /// assert!(!queue.expedite(&"node-7", now).value, "it is not delayed any more");
    /// assert_eq!(queue.try_get(now).value.unwrap().key, "node-7");
    /// ```
    pub fn expedite<B>(&mut self, key: &B, now: Instant) -> Effect<bool>
    where
        K: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        if self.closed {
            return quiet(false);
        }
        let mut was_delayed = false;
        if let Located::Found(id) = self.locate(key, now) {
            was_delayed = self.end_delay(id, now);
        }
        self.effect(was_delayed)
    }

    /// Ends the delays of some keys now, in the order of their deadlines, as
    /// [`expedite`](Self::expedite) does for one: at most
    /// [`DUE_KEYS_MAX`](Storage::DUE_KEYS_MAX) of them, behind those that are due. Returns whether
    /// there may be more: then it is called again with the same sweep. O(log n). Does nothing after
    /// shutdown.
    ///
    /// If the limiter holds keys, it ends delays in no order, and looks at no more than 32 slots in
    /// a step, because it cannot end those of keys that are [held](crate::WithHolds).
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue_core::{Fixed, Instant, NoLimit, Queue, Sweep};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<u64, Fixed<16>, NoLimit> = Queue::new(NoLimit);
    /// for seconds in (1..=16).rev() {
    ///     let _ = queue.add_after(seconds, Duration::from_secs(seconds), now);
    /// }
    /// // Interrupts are served between any two steps.
    /// let mut sweep = Sweep::new();
    /// while queue.expedite_some(&mut sweep, now).value {}
    /// assert_eq!(queue.len(now).value, 16);
    /// assert_eq!(queue.try_get(now).value.unwrap().key, 1);
    /// ```
    pub fn expedite_some(&mut self, sweep: &mut Sweep, now: Instant) -> Effect<bool> {
        if self.closed {
            return quiet(false);
        }
        // What has passed comes in the order of its time, also among groups.
        if self.release_due(SlotId::NONE, now) {
            return self.effect(true);
        }
        if L::HOLDS && self.limiter.needs_time() {
            let more = self.expedite_slots(sweep, now);
            return self.effect(more);
        }
        for _ in 0..self.due_keys_max.get() {
            let Some((id, _)) = self.delays.pop() else {
                break;
            };
            self.come_due(id, now);
        }
        let more = !self.delays.is_empty();
        self.effect(more)
    }

    /// Ends the delays of the next slots of a sweep.
    fn expedite_slots(&mut self, sweep: &mut Sweep, now: Instant) -> bool {
        sweep.begin(self.slots.bound());
        let mut left = self.due_keys_max.get();
        for _ in 0..VISITS_MAX {
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
            let due = self.delays.due(id);
            if due.is_some_and(|due| due > held) {
                self.move_deadline(id, held);
            }
            return due.is_some();
        }
        let had_one = self.delays.remove(id).is_some();
        if had_one {
            self.come_due(id, now);
        }
        had_one
    }
}
