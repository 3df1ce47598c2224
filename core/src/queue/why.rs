//! Tells why a key does not run now. The only change is to make due keys ready, as every operation
//! does first.

use crate::outcome::Why;

use super::*;

impl<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage, M: Metrics>
    Session<'_, K, P, L, S, M>
{
    /// Returns why a key does not run now. O(log n), however many keys, groups and levels there
    /// are.
    ///
    /// A key passes these rows from the first to the last. The answer is the first one that applies
    /// to it:
    ///
    /// | answer | while | what ends it |
    /// |---|---|---|
    /// | [`Running`](Why::Running) | the key is active | its run ends |
    /// | [`Closed`](Why::Closed) | the queue is shut down, and the key is not ready | nothing |
    /// | [`Idle`](Why::Idle) | the key is neither ready, active, delayed nor suspended | an add |
    /// | [`Suspended`](Why::Suspended) | the key is suspended | its time, `resume` |
    /// | [`Held`](Why::Held) | a [hold] ends no earlier than its deadline | its time, `forget` |
    /// | [`Debounced`](Why::Debounced) | debounced adds have set its deadline | its time, an add |
    /// | [`BackingOff`](Why::BackingOff) | the limiter has set its deadline, and no hold has moved it | its time, an add |
    /// | [`Delayed`](Why::Delayed) | another call, or a hold that was forgotten, has set its deadline | its time, an add |
    /// | [`Paused`](Why::Paused) | the queue is paused | `unpause` |
    /// | [`GroupPaused`](Why::GroupPaused) | its group is paused | `unpause_group` |
    /// | [`GroupAtLimit`](Why::GroupAtLimit) | its group is at `max_active` | a run of it ends |
    /// | [`GroupNoToken`](Why::GroupNoToken) | the rate of its group allows no run | its time |
    /// | [`NoToken`](Why::NoToken) | the [run rate] allows no run | its time |
    /// | [`Ready`](Why::Ready) | a worker may take it | a worker takes it |
    ///
    /// [hold]: crate::Policy
    /// [run rate]: crate::Policy::run_rate
    ///
    /// An add makes a debounced, backing off or delayed key ready now, and keeps its deadline: the
    /// key also runs then.
    ///
    /// If both the group's rate and the run rate make the key wait, the later time is named. The key
    /// does not run before the time, unless another call changes something. If the key has
    /// [slack](Self::add_within), the time is the end of the slack, and the key may run earlier.
    /// When the time comes, the key passes to a later row. A ready key may have others in front of it, which may
    /// use the next token or reach the limit of the group.
    ///
    /// If several calls ask for a deadline at the same time, with any [`Merge`](crate::Merge),
    /// `BackingOff` is named if the limiter is among them. A rate-limited add whose `after` is
    /// shorter than the limiter's delay is another call. A key that was
    /// [restored](Self::restore) with a delay is `Delayed`.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue::limiter::default_item_based;
    /// use requeue::priority::Plain;
    /// use requeue::storage::Fixed;
    /// use requeue::{Instant, Queue, Why};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<&str, Plain, _, Fixed<8>> = Queue::new(default_item_based());
    /// let _ = queue.at(now).add("node-7");
    /// assert_eq!(queue.at(now).why("node-7"), Why::Ready);
    /// queue.at(now).pause();
    /// assert_eq!(queue.at(now).why("node-7"), Why::Paused);
    ///
    /// let until = now + Duration::from_millis(1);
    /// let _ = queue.at(now).add_rate_limited("node-8");
    /// let why = queue.at(now).why("node-8");
    /// assert_eq!(why, Why::BackingOff { until, failures: 1 });
    /// assert_eq!(why.to_string(), "backs off until 1ms, after 1 failure");
    /// assert_eq!(queue.at(until).why("node-8"), Why::Paused);
    /// assert_eq!(queue.at(now).why("node-9"), Why::Idle);
    /// ```
    pub fn why<B>(&mut self, key: &B) -> Why
    where
        K: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        match self.queue.locate(key, self.now) {
            Located::Found(id) => self.queue.why(id, self.now),
            Located::Absent(_) if self.queue.closed => Why::Closed,
            Located::Absent(_) => Why::Idle,
        }
    }
}

impl<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage, M: Metrics> Queue<K, P, L, S, M> {
    /// The same for a key with a slot, whose own deadline has not passed.
    fn why(&self, id: SlotId, now: Instant) -> Why {
        let phase = self.slots.slot(id).map_or(Phase::Idle, |slot| slot.phase);
        if phase.is_active() {
            return Why::Running {
                since: self.active_since(id),
                again: phase.is_queued(),
            };
        }
        match self.delays.due(id) {
            _ if phase == Phase::Ready => self.why_ready(id, now),
            _ if self.closed => Why::Closed,
            Some(until) => self.why_delayed(id, until),
            None => Why::Idle,
        }
    }

    fn why_delayed(&self, id: SlotId, until: Instant) -> Why {
        let failures = self.failures_of(id);
        if self.is_suspended(id) {
            let again = self.runs_anyway(id);
            return Why::Suspended { until, again };
        }
        // No deadline is before the end of a hold (Q8).
        if self.held_until(id) == until {
            Why::Held { until, failures }
        } else if self.is_debounced(id) {
            Why::Debounced { until }
        } else if self.delays.is_backoff(id) {
            Why::BackingOff { until, failures }
        } else {
            Why::Delayed { until }
        }
    }

    fn why_ready(&self, id: SlotId, now: Instant) -> Why {
        if self.is_paused() {
            return Why::Paused;
        }
        let start = self.paced_until();
        match self.lists.why_blocked(id, now) {
            Some(Why::GroupNoToken { until }) if until < start => Why::NoToken { until: start },
            Some(blocked) => blocked,
            None if start.is_after(now) => Why::NoToken { until: start },
            None => Why::Ready,
        }
    }
}
