//! Adds that wait until no more come, which client-go does not have.

use std::time::Duration;

use requeue_core::{Added, Instant, Rejected};

use super::slack::Window;
use super::{Model, is_after, remove};
use crate::subject::Key;

/// Debounced adds of a key that have set one deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Burst {
    first: Instant,
    /// Where the deadline is that of the burst: what moves it by other means ends the burst.
    due: Instant,
}

impl Model {
    /// Each add of a burst moves its deadline to `quiet` after it, and no further than `max` after
    /// the first.
    ///
    /// > Adds a key once no such add of it has come for as long as `quiet`, or `max` after the
    /// > first of them, if that is sooner.
    ///
    /// > The first add of a series sets a deadline, and each further one moves it.
    ///
    /// > Only a deadline that `add_debounced` alone has asked for is made later. If another call
    /// > has asked for one, the earlier counts. A key that is ready or dirty runs after this add
    /// > in any case, and stays as it is. With a `quiet` of zero the key is added now.
    ///
    /// > A debounced add asks for the lowest priority level, and a deadline keeps the highest
    /// > level that an add has given it.
    pub(super) fn debounce(
        &mut self,
        key: Key,
        quiet: Duration,
        max: Duration,
    ) -> Result<Added, Rejected<Key>> {
        if self.is_shutting_down {
            return self.refuse(key);
        }
        self.arrive_at(key);
        self.make_room(key)?;
        if self.runs_anyway(key) {
            self.figures.retries += 1;
            return Ok(Added::Coalesced);
        }
        let entry = self.waiting.iter().find(|entry| entry.key == key).copied();
        let burst = remove(&mut self.bursts, key);
        let burst = burst.filter(|burst| entry.is_some_and(|entry| entry.due == burst.due));
        let first = burst.map_or(self.now, |burst| burst.first);
        let due = (self.now + quiet).min(first + max);
        let window = self.window_of_add(key, Window::exact(due));
        let due = window.due;
        let Some(entry) = entry.filter(|_| burst.is_some()) else {
            let added = self.retry_at(key, window, 0);
            if matches!(added, Added::Delayed | Added::Sooner) {
                self.bursts.push((key, Burst { first, due }));
            }
            return Ok(added);
        };
        self.figures.retries += 1;
        if !is_after(due, self.now) {
            self.stop_waiting(key);
            return Ok(self.mark(key, self.now, entry.level));
        }
        if due != entry.due {
            self.move_deadline(key, window);
        }
        self.bursts.push((key, Burst { first, due }));
        Ok(if due == entry.due {
            Added::Coalesced
        } else if due < entry.due {
            Added::Sooner
        } else {
            Added::Later
        })
    }

    /// Another call asks for a deadline: a burst that has set it moves it no longer.
    pub(super) fn end_burst_at(&mut self, key: Key, due: Instant) {
        self.bursts
            .retain(|(other, burst)| *other != key || burst.due != due);
    }

    /// The bursts that a later add may still move, with when each began.
    ///
    /// > The series is over when the deadline comes, or is taken back.
    pub(super) fn present_bursts(&self) -> Vec<(Key, Instant)> {
        let is_present = |(key, burst): &&(Key, Burst)| {
            let mut waiting = self.waiting.iter();
            waiting.any(|entry| entry.key == *key && entry.due == burst.due)
        };
        let present = self.bursts.iter().filter(is_present);
        let mut present: Vec<_> = present.map(|(key, burst)| (*key, burst.first)).collect();
        present.sort_unstable_by_key(|(key, _)| *key);
        present
    }

    /// A key that is gone has no burst any more.
    pub(super) fn drop_bursts(&mut self) {
        let mut bursts = std::mem::take(&mut self.bursts);
        bursts.retain(|(key, _)| self.holds(*key));
        self.bursts = bursts;
    }
}
