//! Keys that have waited long.

use core::hash::Hash;
use core::time::Duration;

use crate::aging::Ages;
use crate::limiter::RateLimiter;
use crate::lock::Lock;
use crate::metrics::Metrics;
use crate::priority::Priorities;
use crate::storage::Storage;
use crate::time::Clock;
use crate::wait::WaitList;

use super::{State, WorkQueue};

impl<K, S, L, M, W, Q, C> WorkQueue<Q, C>
where
    K: Eq + Hash,
    S: Storage,
    L: RateLimiter,
    M: Metrics,
    W: WaitList,
    Q: Lock<State = State<K, S, L, M, W>>,
    C: Clock,
{
    /// Serves keys that have waited for longer than `after` before the younger keys of higher
    /// levels, from now on; with `None`, none of them. For queues with [`Aging`](crate::Aging).
    /// O(1).
    ///
    /// [`Aging`](crate::Aging) has an example.
    pub fn age_after(&self, after: impl Into<Option<Duration>>)
    where
        S::Priorities: Priorities<AgeLimit: Ages>,
    {
        let after = after.into();
        self.lock.with(|state| state.queue.age_after(after));
    }
}
