//! Adds that wait until no more come.

use core::hash::Hash;
use core::time::Duration;

use crate::Instant;
use crate::id::SlotId;
use crate::limiter::{Debounces, RateLimiter};
use crate::metrics::Metrics;
use crate::outcome::{Added, Rejected};
use crate::priority::KeyLevels;
use crate::storage::{Slots, Storage};

use super::{LOWEST, Queue, Session};

impl<K: Eq + Hash, S: Storage, L: RateLimiter, M: Metrics> Session<'_, K, S, L, M> {
    /// Adds a key once no such add of it has come for as long as `quiet`, or `max` after the first
    /// of them, if that is sooner. Needs a limiter that [debounces](crate::WithDebounce). O(log n).
    ///
    /// The first add of a burst sets a deadline, and each further one moves it. The burst is over
    /// when the deadline comes, or is taken back.
    ///
    /// Otherwise as [`add_after`](Self::add_after): the deadline is an add that happens later,
    /// also for an active key. A deadline that the key has by other means is never moved back, even
    /// if the burst has set the same: the one that comes first counts. A key that is ready or dirty
    /// runs after this add in any case, and stays as it is. A `quiet` of zero ends the burst now.
    /// With a `quiet` and a `max` of [`Duration::MAX`] the key waits for ever.
    ///
    /// Reads `now` even if [`needs_time`](crate::Queue::needs_time) is false.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue_core::{Added, Fixed, Instant, NoLimit, Queue, WithDebounce};
    ///
    /// let mut queue: Queue<&str, Fixed<4>, _> = Queue::new(WithDebounce::new(NoLimit));
    /// let at = |millis| Instant::EPOCH + Duration::from_millis(millis);
    /// let (quiet, max) = (Duration::from_millis(100), Duration::from_millis(250));
    ///
    /// let mut changed = |millis| queue.at(at(millis)).add_debounced("etc/hosts", quiet, max);
    /// assert_eq!(changed(0), Ok(Added::Delayed));
    /// assert_eq!(changed(90), Ok(Added::Later));
    /// assert_eq!(changed(180), Ok(Added::Later));
    /// // The file changes on and on: 250 ms after the first time are the most.
    /// assert_eq!(changed(240), Ok(Added::Coalesced));
    /// assert_eq!(queue.next_deadline(), Some(at(250)));
    /// ```
    pub fn add_debounced(
        &mut self,
        key: K,
        quiet: Duration,
        max: Duration,
    ) -> Result<Added, Rejected<K>>
    where
        L: Debounces,
    {
        let Self { queue, now, spare } = self;
        if queue.closed {
            return Err(Rejected::Closed(key));
        }
        let id = queue.slot_for(key, *now, spare).map_err(Rejected::Full)?;
        Ok(queue.debounce(id, quiet, max, *now))
    }
}

impl<K: Eq + Hash, S: Storage, L: Debounces, M: Metrics> Queue<K, S, L, M> {
    fn debounce(&mut self, id: SlotId, quiet: Duration, max: Duration, now: Instant) -> Added {
        if self.is_queued(id) {
            self.metrics.retry();
            self.metrics.coalesced();
            return Added::Coalesced;
        }
        let pending = self.delays.due(id);
        let Some(slot) = self.slots.slot_mut(id) else {
            return Added::Coalesced;
        };
        let burst = L::burst(&mut slot.meta.record);
        let goes_on = burst.goes_on(pending);
        let asked = burst.add(goes_on, [quiet, max], now);
        let due = self.due_of_add(id, asked, now);
        let Some(before) = pending.filter(|_| goes_on) else {
            return self.begin_burst(id, due, now);
        };
        self.set_burst(id, due);
        self.metrics.retry();
        if !due.is_after(now) {
            let level = self.levels(id).delayed();
            let _ = self.delays.remove(id);
            self.metrics.delayed(self.delays.len());
            return self.mark(id, now, level);
        }
        if due == before {
            self.metrics.coalesced();
            return Added::Coalesced;
        }
        let _ = self.delays.move_to(id, due);
        if due < before {
            Added::Sooner
        } else {
            Added::Later
        }
    }

    fn begin_burst(&mut self, id: SlotId, due: Instant, now: Instant) -> Added {
        let added = self.schedule(id, due, now, LOWEST);
        let is_own = matches!(added, Added::Delayed | Added::Sooner);
        // If the deadline is not the burst's, the burst may not move it.
        self.set_burst(id, if is_own { due } else { Instant::EPOCH });
        added
    }

    /// Notes the deadline of a burst.
    fn set_burst(&mut self, id: SlotId, due: Instant) {
        if let Some(slot) = self.slots.slot_mut(id) {
            L::burst(&mut slot.meta.record).due = due;
        }
    }
}
