//! The state machine. This is the only file that changes a key's phase.

use core::hash::Hash;

use crate::Instant;
use crate::delay::Delays;
use crate::id::SlotId;
use crate::limiter::RateLimiter;
use crate::lists::Lists;
use crate::metrics::{Metrics, NoMetrics, Stamps, Waited};
use crate::outcome::{Added, Effect, NotActive, Rejected, Wake};
use crate::priority::{Level, Marks, Priorities};
use crate::slots::{Located, Phase, Slots, Storage};
use crate::waiting::Sleepers;
use crate::work::{Ticket, Told, Work, WorkOf};

mod batch;
mod check;
mod construct;
mod produce;
mod query;
mod shutdown;
mod work;

/// A keyed work queue, as plain data: no clock, no lock, nothing that waits.
///
/// Time comes in as an argument (`now`), and answers say what the caller has to do. A runtime puts
/// it under a lock and waits for it; [`WorkQueue`](crate::WorkQueue) is everything of that but the
/// waiting.
///
/// A key is in one of these states, client-go's dirty and processing sets in one value:
///
/// ```text
///               add                 get                  done
///   ┌────────┐ ─────▶ ┌─────────┐ ─────▶ ┌──────────┐ ─────▶ (idle)
///   │  idle  │        │  ready  │        │  active  │
///   └────────┘ ◀┄┄┄┄┄ └─────────┘        └──────────┘
///      ▲  add_after:        ▲               │ add
///      ┆  delayed; becomes  │     done      ▼
///      ┆  ready when due    └────────── ┌──────────┐
///                                       │  dirty   │
///                                       └──────────┘
/// ```
///
/// Any state may have a delay beside it: as in client-go, a delay is an add that happens later.
///
/// # Order of calling
///
/// - **Producers**: [`add`](Self::add), [`add_after`](Self::add_after), [`add_at`](Self::add_at),
///   [`add_rate_limited`](Self::add_rate_limited), [`add_with`](Self::add_with),
///   [`forget`](Self::forget), in any order.
/// - **Workers**: [`get`](Self::get) or [`try_get`](Self::try_get), then exactly one of
///   [`done`](Self::done), [`complete`](Self::complete), [`next`](Self::next) with the ticket.
/// - **Shutdown**: [`shut_down`](Self::shut_down) or
///   [`shut_down_with_drain`](Self::shut_down_with_drain), then
///   [`take_delayed`](Self::take_delayed) and [`take_ready`](Self::take_ready) for what is left.
/// - `now` never goes backwards from one call to the next. It may be anything while
///   [`needs_time`](Self::needs_time) is false, for methods whose documentation does not say
///   otherwise.
///
/// # Invariants
///
/// Checked as a whole by `assert_valid`, after every operation in the tests:
///
/// - **Q1** A key is stored once and found by its hash; the queue holds at most its capacity.
/// - **Q2** A slot stands in the ready list, once, exactly if its phase is ready; where there are
///   priorities, in the list of its level.
/// - **Q3** The counts of active and dirty slots are right.
/// - **Q4** A slot is live for a reason: its phase, a delay, or failures to remember.
/// - **Q5** A slot stands among the memories, once, exactly if failures are its only reason.
/// - **H1–H3** The heap of deadlines is a heap and knows where each slot is.
/// - **W1, W2** Nobody sleeps while there is something to do and nobody is on the way.
///
/// # Cost
///
/// Every operation is O(1) expected, beside O(log n) for each deadline set, moved, taken out or
/// found due, and beside those whose documentation says otherwise. Once in 2^32 deadlines one
/// operation sorts them, O(n^1.5). No operation allocates with [`Fixed`](crate::Fixed) storage;
/// with `Growable` one that grows the queue is O(n).
///
/// # Keys
///
/// `Hash`, `Eq`, `Clone` and `Drop` of a key run while the queue is locked: they must not touch it.
///
/// If one of the first three panics, nothing has happened to that key; what the operation did
/// before stands: deadlines that had come, earlier keys of a batch, the completion with which
/// [`next`](Self::next) begins. If `Drop` panics, the operation has happened. The answer is lost in
/// either case, and the wake in it is answered by the next operation instead.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use requeue_core::{Added, Completion, Finished, Fixed, Instant, Queue, default_item_based};
///
/// let mut queue: Queue<&str, Fixed<16>, _> = Queue::new(default_item_based());
/// let now = Instant::EPOCH;
///
/// assert_eq!(queue.add("disk", now).value, Ok(Added::Ready));
/// assert_eq!(queue.add("disk", now).value, Ok(Added::Coalesced));
///
/// let work = queue.try_get(now).value.unwrap();
/// assert_eq!(work.key, "disk");
///
/// // It fails, and comes back a millisecond later.
/// let finished = queue.complete(work.ticket, Completion::Retry, now).value;
/// assert_eq!(finished, Ok(Finished::Delayed(Duration::from_millis(1))));
/// assert!(queue.try_get(now).value.is_none());
/// assert!(queue.try_get(now + Duration::from_millis(1)).value.is_some());
/// ```
#[derive(Debug)]
pub struct Queue<K, S, L, M = NoMetrics>
where
    K: Eq + Hash,
    S: Storage,
    L: RateLimiter,
    M: Metrics,
{
    slots: S::Slots<K, Note<S, L, M>>,
    lists: S::Lists,
    delays: Delays<S::Nodes>,
    sleepers: Sleepers,
    limiter: L,
    metrics: M,
    /// Slots in phase Active or Dirty.
    active: usize,
    /// Slots in phase Dirty.
    dirty: usize,
    /// Numbers the runs, so that no two tickets of a slot are the same.
    runs: u32,
    /// How many slots may live for their failures alone.
    memories_max: usize,
    closed: bool,
    /// When the queue was first shut down.
    closed_at: Instant,
    /// The queue has just drained, and those who wait for it have not been told.
    drain_untold: bool,
    /// Counts calls of `shut_down`, which interrupts the drains that are under way.
    epoch: u32,
}

/// What is kept beside a key for the limiter, for the metrics and of its priority.
#[doc(hidden)]
#[derive(Debug, Default)]
pub struct NoteOf<Y, T, R> {
    pub(crate) memory: Y,
    pub(crate) stamps: T,
    pub(crate) marks: R,
}

pub(crate) type Note<S, L, M> = NoteOf<
    <L as RateLimiter>::Memory,
    <M as Metrics>::Stamps,
    <<S as Storage>::Priorities as Priorities>::Marks,
>;

impl<K: Eq + Hash, S: Storage, L: RateLimiter, M: Metrics> Queue<K, S, L, M> {
    /// Moves every key whose deadline has come to the ready list, in the order of the deadlines.
    ///
    /// Every operation that could tell the difference begins with this. At most one step per
    /// delayed key, O(log n) each, paid once per deadline.
    // The question alone is inlined, the answer is a function of its own: firmware is built small.
    #[inline(always)]
    fn release_due(&mut self, now: Instant) {
        if !self.delays.is_empty() && !self.closed {
            self.release_those_due(now);
        }
    }

    #[inline(never)]
    fn release_those_due(&mut self, now: Instant) {
        while let Some((id, due)) = self.delays.pop_due(now) {
            let level = self.marks(id).delayed();
            let _ = self.mark(id, due, level);
            self.metrics.delayed(self.delays.len());
        }
    }

    /// client-go's `Add`. A key that is new is ready at once, without a second look at its slot.
    #[inline]
    fn add_quietly(&mut self, key: K, now: Instant) -> Result<Added, Rejected<K>> {
        let hash = match self.slots.locate(&key) {
            Located::Found(id) => return Ok(self.mark(id, now, LOWEST)),
            Located::Absent(hash) => hash,
        };
        let Some(id) = self.make_room() else {
            return Err(Rejected::Full(key));
        };
        let mut note = Note::<S, L, M>::default();
        note.stamps.stamp_added(now);
        self.slots.claim(id, hash, key, note, Phase::Ready);
        self.lists.push_ready(id, LOWEST);
        self.metrics.add();
        self.report_depth(LOWEST);
        Ok(Added::Ready)
    }

    /// client-go's `Add`, for a key that has its slot, at a priority level.
    fn mark(&mut self, id: SlotId, at: Instant, level: u8) -> Added {
        let Some(slot) = self.slots.slot_mut(id) else {
            return Added::Coalesced;
        };
        let added = match slot.phase {
            Phase::Idle => {
                slot.phase = Phase::Ready;
                self.lists.unremember(id);
                self.lists.push_ready(id, level);
                Added::Ready
            }
            Phase::Active => {
                slot.phase = Phase::Dirty;
                self.dirty += 1;
                self.lists.note_dirty(level);
                Added::Dirty
            }
            Phase::Ready | Phase::Dirty => {
                self.metrics.coalesced();
                return self.raise(id, level);
            }
        };
        slot.note.marks.set_queued(level);
        slot.note.stamps.stamp_added(at);
        self.metrics.add();
        self.report_depth(level);
        added
    }

    /// Ends the run of a ticket, if it is still under way. Answers whether the key is ready again.
    #[inline]
    fn finish(&mut self, ticket: Ticket, forgets: bool, now: Instant) -> Result<bool, NotActive> {
        let id = ticket.id;
        let Some(slot) = self
            .slots
            .slot_mut(id)
            .filter(|slot| slot.is_run_by(&ticket))
        else {
            return Err(NotActive);
        };
        if forgets {
            slot.note.memory = L::Memory::default();
        }
        let duration = now.saturating_since(slot.note.stamps.started());
        let again = slot.phase == Phase::Dirty;
        let has_failed = slot.note.memory != L::Memory::default();
        slot.phase = if again { Phase::Ready } else { Phase::Idle };
        self.active -= 1;
        if again {
            let level = slot.note.marks.queued();
            self.dirty -= 1;
            self.lists.note_clean(level);
            self.lists.push_ready(id, level);
        }
        self.note_drain();
        if !again {
            self.settle(id, has_failed);
        }
        self.metrics.work_duration(duration);
        Ok(again)
    }

    /// Answers which slot is vacant now.
    #[cold]
    fn drop_oldest_memory(&mut self) -> Option<SlotId> {
        let id = self.lists.oldest_memory()?;
        self.drop_memory(id);
        Some(id)
    }

    /// Gives up a slot that lives for its failures alone.
    fn drop_memory(&mut self, id: SlotId) {
        self.lists.unremember(id);
        self.slots.release(id);
    }

    /// Keeps a slot that has become idle, or lost its delay, only for a reason. Last of all, since
    /// the key's destructor may run here.
    #[inline]
    fn settle(&mut self, id: SlotId, has_failed: bool) {
        if self.delays.has(id) {
            return;
        }
        if !has_failed {
            self.slots.release(id);
            return;
        }
        self.lists.remember(id);
        if self.lists.memories_len() > self.memories_max {
            let _ = self.drop_oldest_memory();
        }
    }

    /// Takes a key that has left the ready list out of the queue, with any delay it has.
    fn put_to_rest(&mut self, id: SlotId) {
        if let Some(slot) = self.slots.slot_mut(id) {
            slot.phase = Phase::Idle;
        }
        let level = self.marks(id).queued();
        if self.delays.remove(id).is_some() {
            self.metrics.delayed(self.delays.len());
        }
        self.note_drain();
        self.report_depth(level);
        self.settle_idle(id);
    }

    /// [`settle`](Self::settle) for a slot that may still be ready or in work.
    fn settle_idle(&mut self, id: SlotId) {
        let failed = self.slots.slot(id).map(|slot| {
            let idle = slot.phase == Phase::Idle;
            idle.then(|| slot.note.memory != L::Memory::default())
        });
        if let Some(Some(has_failed)) = failed {
            self.settle(id, has_failed);
        }
    }

    /// After a key has left the ready list or work: notes that this was the last.
    #[inline]
    fn note_drain(&mut self) {
        if self.closed {
            self.drain_untold = self.is_drained();
        }
    }

    /// The outcome of an operation, and whom it has to wake.
    #[inline]
    fn effect<T>(&mut self, value: T) -> Effect<T> {
        if self.drain_untold {
            let wake = self.wake();
            return Effect { value, wake };
        }
        self.effect_in_use(value)
    }

    /// [`effect`](Self::effect) of an operation that cannot have drained the queue.
    #[inline]
    fn effect_in_use<T>(&mut self, value: T) -> Effect<T> {
        if self.sleepers.asleep() == 0 {
            return quiet(value);
        }
        let wake = self.wake();
        Effect { value, wake }
    }

    fn wake(&mut self) -> Wake {
        if core::mem::take(&mut self.drain_untold) {
            self.sleepers.all_woken();
            return Wake::All;
        }
        let ready = self.lists.ready_len() > 0;
        let earliest = self.next_deadline();
        self.sleepers.duty(ready, earliest)
    }

    /// After a key has come to a level or gone from it.
    fn report_depth(&mut self, level: u8) {
        self.metrics.depth(self.lists.ready_len() + self.dirty);
        if S::Priorities::LEVELS > 1 {
            self.metrics.depth_at(level, self.lists.depth_at(level));
        }
    }

    fn marks(&self, id: SlotId) -> <S::Priorities as Priorities>::Marks {
        self.slots
            .slot(id)
            .map_or_else(Default::default, |slot| slot.note.marks)
    }

    fn is_active(&self, id: SlotId) -> bool {
        self.slots
            .slot(id)
            .is_some_and(|slot| matches!(slot.phase, Phase::Active | Phase::Dirty))
    }

    fn is_idle(&self, id: SlotId) -> bool {
        self.slots
            .slot(id)
            .is_some_and(|slot| slot.phase == Phase::Idle)
    }

    /// Whether the key is going to be worked on, or worked on again, in any case.
    fn is_queued(&self, id: SlotId) -> bool {
        self.slots
            .slot(id)
            .is_some_and(|slot| matches!(slot.phase, Phase::Ready | Phase::Dirty))
    }

    fn is_mere_memory(&self, id: SlotId) -> bool {
        self.is_idle(id) && !self.delays.has(id)
    }

    fn requeues(&self, id: SlotId) -> u32 {
        self.slots
            .slot(id)
            .map_or(0, |slot| self.limiter.requeues(&slot.note.memory))
    }
}

impl<K: Eq + Hash + Clone, S: Storage, L: RateLimiter, M: Metrics> Queue<K, S, L, M> {
    /// Takes the first ready key. Foreign code comes first, since it may panic.
    #[inline]
    fn take(&mut self, now: Instant) -> Option<WorkOf<K, S, M>> {
        let id = self.lists.first_ready()?;
        let slot = self.slots.slot_mut(id)?;
        let key = slot.key.clone();
        let requeues = self.limiter.requeues(&slot.note.memory);
        self.runs = self.runs.wrapping_add(1);
        slot.run = self.runs;
        slot.phase = Phase::Active;
        slot.note.stamps.stamp_started(now);
        let level = slot.note.marks.queued();
        slot.note.marks.set_running(level);
        let waited = slot.note.stamps.waited(now);
        let ticket = Ticket { id, run: slot.run };
        let _ = self.lists.pop_ready();
        self.active += 1;
        self.report_depth(level);
        self.metrics.queue_latency(waited.get());
        let level = Level::new(level);
        Some(Work {
            key,
            ticket,
            requeues,
            facts: Told { waited, level },
        })
    }
}

/// The level of an add that asks for none.
const LOWEST: u8 = 0;

/// The effect of an operation that changed nothing.
fn quiet<T>(value: T) -> Effect<T> {
    Effect {
        value,
        wake: Wake::None,
    }
}
