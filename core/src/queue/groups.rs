//! Groups: their limits, and what they hold.

use core::hash::Hash;

use crate::Instant;
use crate::group::{GroupLimits, GroupState};
use crate::id::SlotId;
use crate::limiter::RateLimiter;
use crate::lists::grouped::GroupControl;
use crate::metrics::Metrics;
use crate::outcome::Effect;
use crate::storage::Storage;

use super::Queue;

/// For queues with [`Groups`](crate::Groups).
impl<K, S, L, M, G> Queue<K, S, L, M>
where
    K: Eq + Hash,
    S: Storage<Lists: GroupControl<Name = G>>,
    L: RateLimiter,
    M: Metrics,
{
    /// Sets the limits of the groups that have none of their own, present and future. O(1) and, for
    /// each of the groups that wait for a limit, O(levels): at most eight of them now, and a few
    /// with each of the next gets.
    ///
    /// Groups that wait for a limit and need not any more take their turns in the order in which
    /// they began to wait. A group whose rate changes begins with a full burst.
    #[must_use = "a getter that is not woken sleeps on"]
    pub fn limit_groups(&mut self, limits: GroupLimits, now: Instant) -> Effect<()> {
        let _ = self.release_due(SlotId::NONE, now);
        self.lists.limit_all(limits);
        self.effect(())
    }

    /// Sets the limits of a group by name, which then stays although it may have no keys. With
    /// `None` it has those of all groups again. O(levels).
    ///
    /// # Errors
    ///
    /// The name, if there is no room for one more group. Nothing changes then.
    pub fn limit_group(
        &mut self,
        name: G,
        limits: Option<GroupLimits>,
        now: Instant,
    ) -> Effect<Result<(), G>> {
        let _ = self.release_due(SlotId::NONE, now);
        let limited = self.lists.limit(name, limits);
        self.effect(limited)
    }

    /// Hands out no more keys of a group until [`resume_group`](Self::resume_group). Everything
    /// else goes on, and shutdown ends the pause: see [`pause`](Self::pause). O(levels).
    ///
    /// # Errors
    ///
    /// The name, if there is no room for one more group. Nothing changes then.
    pub fn pause_group(&mut self, name: G, now: Instant) -> Effect<Result<(), G>> {
        let _ = self.release_due(SlotId::NONE, now);
        let paused = self.lists.pause(name, true);
        self.effect(paused)
    }

    /// Hands out keys of a group again, at the end of the turn. O(levels).
    #[must_use = "a getter that is not woken sleeps on"]
    pub fn resume_group(&mut self, name: G, now: Instant) -> Effect<()> {
        let _ = self.release_due(SlotId::NONE, now);
        // Only a pause needs room.
        let _ = self.lists.pause(name, false);
        self.effect(())
    }

    /// Returns the figures of a group, `None` if it has neither keys nor limits of its own. A due
    /// key counts as ready once an operation has made it so. O(1) expected.
    pub fn group(&self, name: &G) -> Option<GroupState> {
        self.lists.state(name)
    }

    /// Returns how many groups there are. O(1).
    pub fn groups_len(&self) -> usize {
        self.lists.len()
    }
}
