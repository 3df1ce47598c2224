//! Keys that have waited long: what [`Aging`](crate::Aging) asks of a queue.

use core::hash::Hash;
use core::time::Duration;

use crate::Instant;
use crate::aging::Ages;
use crate::id::SlotId;
use crate::limiter::RateLimiter;
use crate::lists::Lists;
use crate::metrics::Metrics;
use crate::priority::{AgeLimit, KeyLevels, Priorities};
use crate::storage::Storage;

use super::{Queue, Session};

impl<K: Eq + Hash, S: Storage, L: RateLimiter, M: Metrics> Session<'_, K, S, L, M> {
    /// Serves keys that have waited for longer than `after` before the younger keys of higher
    /// levels, from now on; with `None`, none of them. For queues with [`Aging`](crate::Aging).
    /// O(1).
    ///
    /// With [`Duration::ZERO`], every key that became ready at an earlier time is older than that:
    /// keys are handed out by age, whatever their levels. [`Aging`](crate::Aging) has an example.
    pub fn age_after(&mut self, after: impl Into<Option<Duration>>)
    where
        S::Priorities: Priorities<AgeLimit: Ages>,
    {
        self.queue.age_limit = Ages::limit(after.into());
    }
}

impl<K: Eq + Hash, S: Storage, L: RateLimiter, M: Metrics> Queue<K, S, L, M> {
    /// Of the keys that are next at their levels and have waited for too long, the one that has
    /// waited longest; of two, the one of the higher level.
    #[inline]
    pub(super) fn first_aged(&self, now: Instant) -> Option<SlotId> {
        let after = self.age_limit.after()?;
        let levels = (0..S::Priorities::LEVELS).rev();
        let firsts = levels.filter_map(|level| self.lists.first_ready_at(level));
        let waits = firsts.map(|id| (id, self.levels(id).since()));
        let aged = waits.filter(|(_, since)| now.saturating_since(*since) > after);
        aged.min_by_key(|(_, since)| *since).map(|(id, _)| id)
    }
}
