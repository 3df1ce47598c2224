//! What a key may not do yet, though it is ready or due: it is held, or there is no token. All of
//! it is dead code if the limiter holds and paces nothing.
//!
//! A hold is kept by deadlines that are not before its end (Q8), so that taking a key, and a
//! deadline that has passed, need no check. Only what begins a hold, ends a run or adds a key looks
//! at it. For the getters that sleep, a ready key that may not be handed out yet is a deadline.

use core::hash::Hash;
use core::time::Duration;

use crate::Instant;
use crate::id::SlotId;
use crate::limiter::RateLimiter;
use crate::lists::Lists;
use crate::metrics::Metrics;
use crate::priority::KeyLevels;
use crate::storage::{Phase, Slots, Storage};

use super::{Queue, Watched};

/// How many records a run that ends looks at, to drop those whose holds are over: more than the one
/// that it may add.
const RECORDS_PER_RUN: usize = 2;

impl<K: Eq + Hash, S: Storage, L: RateLimiter, M: Metrics> Queue<K, S, L, M> {
    /// Until when a key is held: a time that has passed if it is not.
    #[inline]
    pub(super) fn held_until(&self, id: SlotId) -> Instant {
        let slot = self.slots.slot(id);
        slot.map_or(Instant::EPOCH, |slot| {
            self.limiter.held_until(&slot.meta.record)
        })
    }

    /// When an add comes that is asked for at `due`: at the end of a hold, if that is later. An add
    /// now of an active key comes at once, because the end of its run may end the hold.
    #[inline]
    pub(super) fn due_of_add(&self, id: SlotId, due: Instant, now: Instant) -> Instant {
        if !L::HOLDS || (!due.is_after(now) && self.is_active(id)) {
            return due;
        }
        due.max(self.held_until(id))
    }

    /// How long a key is still held.
    pub(super) fn hold_left(&self, id: SlotId, now: Instant) -> Duration {
        let held = self.held_until(id);
        if held.is_never() {
            Duration::MAX
        } else {
            held.saturating_since(now)
        }
    }

    /// Lets a key obey a hold that its failure may have begun: it is ready no longer, and no
    /// deadline of it comes before.
    #[inline]
    pub(super) fn hold_back(&mut self, id: SlotId, now: Instant) {
        let held = self.held_until(id);
        if held.is_after(now) {
            self.hold_back_until(id, held);
        }
    }

    fn hold_back_until(&mut self, id: SlotId, held: Instant) {
        let slot = self.slots.slot(id);
        if slot.is_some_and(|slot| slot.phase == Phase::Ready) {
            let level = self.leave_ready(id);
            let _ = self.delay_until(id, held, level);
        }
        self.put_off(id, held);
    }

    /// The same for a key whose run has ended. One that `waits` was dirty, and is ready once its
    /// hold is over. A deadline that shutdown has stopped may be before a hold that is over, too.
    pub(super) fn hold_after_run(&mut self, id: SlotId, waits: bool, now: Instant) {
        let mut held = self.held_until(id);
        if self.closed {
            // What is set after shutdown is beyond it, wherever the clock goes.
            held = held.max(self.delays.stopped_at());
        }
        if waits {
            let level = self.levels(id).queued();
            self.dirty -= 1;
            self.lists.note_clean(level);
            self.report_depth(level);
            let _ = self.delay_until(id, held, level);
            if self.closed {
                // The key does not become ready, so others have to make up for it (Q6).
                let _ = self.release_due(SlotId::NONE, now);
            }
        }
        self.put_off(id, held);
    }

    /// Moves the deadline of a key, if it has one, to the end of its hold, if that is later.
    fn put_off(&mut self, id: SlotId, held: Instant) {
        if self.delays.due(id).is_some_and(|due| due < held) {
            self.move_deadline(id, held);
        }
    }

    /// Drops records that only say that a hold is over, from the front of the list. A record of
    /// failures would hide those behind it, and so becomes the youngest. O(1).
    pub(super) fn drop_passed_holds(&mut self, now: Instant) {
        if !self.limiter.needs_time() {
            return;
        }
        for _ in 0..RECORDS_PER_RUN {
            let Some(id) = self.lists.oldest_record() else {
                return;
            };
            let Some(slot) = self.slots.slot(id) else {
                return;
            };
            if self.limiter.is_blank(&slot.meta.record, now) {
                self.drop_record(id);
            } else if self.limiter.held_until(&slot.meta.record).is_after(now) {
                return;
            } else {
                self.lists.discard_record(id);
                self.lists.retain_record(id);
            }
        }
    }

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
        self.closed
            && self.lists.ready_len() == 0
            && !(self.dirty > 0 && self.watched.has(Watched::DRAINING))
    }
}
