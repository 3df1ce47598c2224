//! Adding a key that already waits for a deadline.

use core::hash::Hash;

use crate::Instant;
use crate::id::SlotId;
use crate::limiter::RateLimiter;
use crate::metrics::Metrics;
use crate::options::Merge;
use crate::outcome::Added;
use crate::priority::KeyLevels;
use crate::storage::Storage;

use super::Queue;

impl<K: Eq + Hash, S: Storage, L: RateLimiter, M: Metrics> Queue<K, S, L, M> {
    /// Adds a key that has its slot, and whose own deadline has not passed, now or at `due`.
    pub(super) fn merge(
        &mut self,
        id: SlotId,
        rule: Merge,
        due: Option<Instant>,
        now: Instant,
        level: u8,
    ) -> Added {
        let later = due.filter(|due| *due > now || due.is_never());
        let pending = match rule {
            Merge::Earliest => None,
            // There is one place, at the earlier of two times: now, if the key is queued.
            Merge::Once if later.is_none() || self.is_queued(id) => {
                return self.end_delay(id, due, now, level);
            }
            Merge::Once => None,
            Merge::Latest | Merge::Replace | Merge::Keep => self.delays.due(id),
        };
        let Some(pending) = pending else {
            return match due {
                Some(due) => self.schedule(id, due, now, level),
                None => self.mark(id, now, level),
            };
        };
        let asked = later.unwrap_or(now);
        let stays = match rule {
            Merge::Replace => asked == pending,
            Merge::Latest => asked <= pending,
            _ => true,
        };
        if !stays && later.is_none() {
            return self.end_delay(id, due, now, level);
        }
        if due.is_some() {
            self.metrics.retry();
        }
        let raised = self.raise_delayed(id, level);
        if stays {
            self.metrics.coalesced();
            return raised;
        }
        let _ = self.delays.move_to(id, asked);
        if asked < pending {
            Added::Sooner
        } else {
            Added::Later
        }
    }

    /// Adds a key now, with the level of a deadline that it no longer waits for.
    fn end_delay(&mut self, id: SlotId, due: Option<Instant>, now: Instant, level: u8) -> Added {
        if due.is_some() {
            self.metrics.retry();
        }
        let mut level = level;
        if self.delays.remove(id).is_some() {
            level = level.max(self.levels(id).delayed());
            self.metrics.delayed(self.delays.len());
        }
        self.mark(id, now, level)
    }
}
