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
        let asked = self.due_of_add(id, due.unwrap_or(Instant::EPOCH), now);
        let later = asked.is_after(now).then_some(asked);
        let pending = match rule {
            Merge::Earliest => None,
            // There is one place, at the earlier of two times: now, if the key is queued.
            Merge::Once => {
                return match later.filter(|_| !self.is_queued(id)) {
                    Some(later) => self.delay_for(id, due, later, level),
                    None => self.add_instead(id, due, now, level),
                };
            }
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
            return self.add_instead(id, due, now, level);
        }
        if due.is_some() {
            self.metrics.retry();
        }
        let raised = self.raise_delayed(id, level);
        if stays {
            if rule != Merge::Keep {
                self.note_deadline(id, asked);
            }
            self.metrics.coalesced();
            return raised;
        }
        self.move_deadline(id, asked);
        if asked < pending {
            Added::Sooner
        } else {
            Added::Later
        }
    }

    /// Delays a key until `later`: until `due`, or until a hold is over.
    fn delay_for(&mut self, id: SlotId, due: Option<Instant>, later: Instant, level: u8) -> Added {
        if due.is_some() {
            self.metrics.retry();
        }
        self.delay_until(id, later, level)
    }

    /// Adds a key now, with the level of a deadline that it no longer waits for.
    fn add_instead(&mut self, id: SlotId, due: Option<Instant>, now: Instant, level: u8) -> Added {
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
