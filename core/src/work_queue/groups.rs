//! Groups: their limits, and what they hold.

use core::hash::Hash;

use crate::group::{GroupLimits, GroupState};
use crate::limiter::RateLimiter;
use crate::lists::grouped::GroupControl;
use crate::lock::Lock;
use crate::metrics::Metrics;
use crate::storage::Storage;
use crate::time::Clock;
use crate::wait::WaitList;

use super::{State, WorkQueue};

/// For queues with [`Groups`](crate::Groups).
impl<K, S, L, M, W, Q, C, G> WorkQueue<Q, C>
where
    K: Eq + Hash,
    S: Storage<Lists: GroupControl<Name = G>>,
    L: RateLimiter,
    M: Metrics,
    W: WaitList,
    Q: Lock<State = State<K, S, L, M, W>>,
    C: Clock,
{
    /// Sets the limits of the groups that have none of their own, present and future, and wakes a
    /// call that waits if there is something for it now. O(levels) for at most eight groups.
    pub fn limit_groups(&self, limits: GroupLimits) {
        self.with(|queue, now| queue.limit_groups(limits, now));
    }

    /// Sets the limits of a group by name, which then stays although it may have no keys. With
    /// `None` it has those of all groups again. O(levels).
    ///
    /// # Errors
    ///
    /// The name, if there is no room for one more group. Nothing changes then.
    pub fn limit_group(&self, name: G, limits: impl Into<Option<GroupLimits>>) -> Result<(), G> {
        let limits = limits.into();
        self.with(|queue, now| queue.limit_group(name, limits, now))
    }

    /// Hands out no more keys of a group until [`resume_group`](Self::resume_group). Everything
    /// else goes on, and shutdown ends the pause. O(levels).
    ///
    /// # Errors
    ///
    /// The name, if there is no room for one more group. Nothing changes then.
    pub fn pause_group(&self, name: G) -> Result<(), G> {
        self.with(|queue, now| queue.pause_group(name, now))
    }

    /// Hands out keys of a group again, at the end of the turn, and wakes a call that waits if
    /// there is something for it. O(levels).
    pub fn resume_group(&self, name: G) {
        self.with(|queue, now| queue.resume_group(name, now));
    }

    /// Returns the figures of a group, `None` if it has neither keys nor limits of its own. A due
    /// key counts as ready once an operation has made it so. O(1) expected.
    pub fn group(&self, name: &G) -> Option<GroupState> {
        self.lock.with(|state| state.queue.group(name))
    }
}
