//! Ending delays early.

use core::borrow::Borrow;
use core::hash::Hash;

use crate::Instant;
use crate::id::SlotId;
use crate::limiter::RateLimiter;
use crate::metrics::Metrics;
use crate::storage::{Located, Slots, Storage};

use super::retain::VISITS_MAX;
use super::{Queue, Session, Sweep};

impl<K: Eq + Hash, S: Storage, L: RateLimiter, M: Metrics> Session<'_, K, S, L, M> {
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
        match queue.locate(key, *now) {
            Located::Found(id) => queue.end_delay(id, *now),
            Located::Absent(_) => false,
        }
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
    ///     let _ = queue.at(now).add_after(seconds, Duration::from_secs(seconds));
    /// }
    /// // Interrupts are served between any two steps.
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
        // What has passed comes in the order of its time, also among groups.
        if queue.release_due(SlotId::NONE, *now) {
            return true;
        }
        if L::HOLDS && queue.limiter.needs_time() {
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
}

impl<K: Eq + Hash, S: Storage, L: RateLimiter, M: Metrics> Queue<K, S, L, M> {
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
