//! Ready keys that wait for their turn, which client-go does not have: [`run_rate`].
//!
//! [`run_rate`]: requeue_core::Policy::run_rate

use requeue_core::Instant;

use super::Model;
use crate::subject::Handed;

impl Model {
    /// The earliest start of the first ready key. `None` if there is no rate.
    pub(crate) fn start_due(&self) -> Option<Instant> {
        let start = self.policy.next_start();
        let may_start = match self.has_a_turn() {
            Some(has_a_turn) => has_a_turn,
            None => !self.queue.is_empty(),
        };
        (start > Instant::EPOCH && may_start).then_some(start)
    }

    /// Whether there is no key for a call that waits, and will be none.
    pub(crate) fn is_over(&self) -> bool {
        let paces = self.policy.next_start() > Instant::EPOCH;
        let ready_keys_wait = (paces || self.groups.is_some()) && !self.queue.is_empty();
        let is_dirty = |key| self.dirty.contains(key);
        let comes_back = self.is_draining() && self.processing.iter().any(is_dirty);
        self.is_shutting_down && !ready_keys_wait && !comes_back && !self.has_backlog()
    }

    /// When a call looks again that has found no key; at once if deadlines have passed that this
    /// look has not applied.
    ///
    /// > If more deadlines have passed than
    /// > [one operation applies](crate::Queue::limit_due_keys), and those that it has applied were of
    /// > active keys, `until` has passed too: the caller looks again at once.
    pub(crate) fn next_look(&self) -> Option<Instant> {
        if self.is_shutting_down && self.has_backlog() {
            return Some(Instant::EPOCH);
        }
        self.next_deadline()
    }

    /// What a call gets that looks again for as long as it is told to do so at once.
    pub(crate) fn get(&mut self) -> Option<Handed> {
        let mut handed = self.take();
        while handed.is_none() && self.next_look().is_some_and(|at| at <= self.now) {
            handed = self.take();
        }
        handed
    }

    /// Whether there is a key now for a call that sleeps. An open window wakes no call.
    pub(crate) fn has_a_key_now(&self) -> bool {
        let mut asleep = self.clone();
        asleep.is_looking = false;
        asleep.get().is_some()
    }
}
