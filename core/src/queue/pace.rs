//! Ready keys that wait for their turn: what [`WithRunRate`](crate::WithRunRate) asks of a queue.
//!
//! For the getters that sleep, a ready key that may not be handed out yet is a deadline: from then
//! on it may. All of this is dead code if the limiter paces nothing.

use core::hash::Hash;

use crate::Instant;
use crate::limiter::RateLimiter;
use crate::lists::Lists;
use crate::metrics::Metrics;
use crate::storage::Storage;

use super::Queue;

impl<K: Eq + Hash, S: Storage, L: RateLimiter, M: Metrics> Queue<K, S, L, M> {
    /// From when on the first ready key may be handed out, if it may not be at any time.
    #[inline]
    pub(super) fn start_due(&self) -> Option<Instant> {
        let start = self.limiter.next_start();
        (start > Instant::EPOCH && self.lists.may_start()).then_some(start)
    }

    /// Whether there is something for a getter that sleeps, at any time: a ready key, or the news
    /// that a queue that is shut down has none left, after the last one was handed out.
    #[inline]
    pub(super) fn is_at_hand(&self, ready: bool) -> bool {
        if self.is_over() {
            return true;
        }
        ready && self.start_due().is_none()
    }

    /// Whether getters find the queue closed: it was shut down, no key is ready, and no drain waits
    /// for a dirty key.
    #[inline]
    pub(super) fn is_over(&self) -> bool {
        let comes_back = self.draining && self.dirty > 0;
        self.closed && self.lists.ready_len() == 0 && !comes_back
    }
}
