//! The state machine. This is the only file that changes a key's phase.

use core::hash::Hash;
use core::time::Duration;

use crate::Instant;
use crate::delay::{Delays, Scheduled};
use crate::id::SlotId;
use crate::limiter::RateLimiter;
use crate::lists::Lists;
use crate::metrics::{Metrics, NoMetrics, Stamps};
use crate::outcome::{
    Added, Completion, Effect, Finished, Limited, Next, NotActive, Rejected, Step, Ticket, Wake,
    Work,
};
use crate::slots::{Located, Phase, Slot, Slots, Storage};
use crate::waiting::{Getter, Sleepers};

mod batch;
mod check;
mod construct;
mod query;
mod shutdown;

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
///   [`add_rate_limited`](Self::add_rate_limited), [`forget`](Self::forget), in any order.
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
/// - **Q2** A slot stands in the ready list, once, exactly if its phase is ready.
/// - **Q3** The counts of active and dirty slots are right.
/// - **Q4** A slot is live for a reason: its phase, a delay, or failures to remember.
/// - **Q5** A slot stands among the memories, once, exactly if failures are its only reason.
/// - **H1–H3** The heap of deadlines is a heap and knows where each slot is.
/// - **W1, W2** Nobody sleeps while there is something to do and nobody is on the way.
///
/// # Cost
///
/// Every operation is O(1) expected, beside O(log n) for each deadline set, moved, or found due.
/// No operation allocates with [`Fixed`](crate::Fixed) storage.
///
/// # Keys
///
/// `Hash`, `Eq`, `Clone` and `Drop` of a key run while the queue is locked: they must not touch it.
/// If one of them panics the operation has not happened.
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
    slots: S::Slots<K, Note<L, M>>,
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

/// What is kept beside a key for the limiter and for the metrics.
#[doc(hidden)]
#[derive(Debug)]
pub struct NoteOf<Y, T> {
    pub(crate) memory: Y,
    pub(crate) stamps: T,
}

pub(crate) type Note<L, M> = NoteOf<<L as RateLimiter>::Memory, <M as Metrics>::Stamps>;

impl<Y: Default, T: Default> Default for NoteOf<Y, T> {
    fn default() -> Self {
        Self {
            memory: Y::default(),
            stamps: T::default(),
        }
    }
}

impl<K: Eq + Hash, S: Storage, L: RateLimiter, M: Metrics> Queue<K, S, L, M> {
    /// Marks a key as having work to do. O(1).
    ///
    /// A key that is ready stays where it is; a key in work will be worked on once more.
    ///
    /// # Errors
    ///
    /// [`Rejected::Closed`] after shutdown; [`Rejected::Full`] if the key is new and there is no room.
    /// Either hands the key back and changes nothing. A key that the queue holds is never refused for
    /// room, and a key that lives for its failures alone makes room for one that has work.
    pub fn add(&mut self, key: K, now: Instant) -> Effect<Result<Added, Rejected<K>>> {
        if self.closed {
            return quiet(Err(Rejected::Closed(key)));
        }
        self.release_due(now);
        let added = match self.slot_for(key) {
            Ok(id) => Ok(self.mark(id, now)),
            Err(key) => Err(Rejected::Full(key)),
        };
        self.effect(added)
    }

    /// Adds a key after a delay. O(log n).
    ///
    /// As in client-go the delay is an add that happens later: it changes nothing for a key that is
    /// ready or in work until it is over, and an [`add`](Self::add) meanwhile does not end it. Of two
    /// delays the one that ends first counts. A delay of zero is an add. [`Duration::MAX`] is never,
    /// and arms no timer.
    ///
    /// Reads `now` whatever [`needs_time`](Self::needs_time) says.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    pub fn add_after(
        &mut self,
        key: K,
        delay: Duration,
        now: Instant,
    ) -> Effect<Result<Added, Rejected<K>>> {
        self.add_at(key, now + delay, now)
    }

    /// Adds a key at a point in time, at once if that has come. O(log n).
    ///
    /// Otherwise as [`add_after`](Self::add_after).
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    pub fn add_at(
        &mut self,
        key: K,
        due: Instant,
        now: Instant,
    ) -> Effect<Result<Added, Rejected<K>>> {
        if self.closed {
            return quiet(Err(Rejected::Closed(key)));
        }
        self.release_due(now);
        let added = match self.slot_for(key) {
            Ok(id) => Ok(self.come_back(id, due, now)),
            Err(key) => Err(Rejected::Full(key)),
        };
        self.effect(added)
    }

    /// Counts a failure of a key and adds it once its limiter says so. O(log n) and the limiter's
    /// cost.
    ///
    /// Reads `now` whatever [`needs_time`](Self::needs_time) says.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add); the limiter is then not charged.
    pub fn add_rate_limited(
        &mut self,
        key: K,
        now: Instant,
    ) -> Effect<Result<Limited, Rejected<K>>> {
        if self.closed {
            return quiet(Err(Rejected::Closed(key)));
        }
        self.release_due(now);
        let limited = match self.charge(key, now) {
            Ok((id, delay)) => {
                let added = self.come_back(id, now + delay, now);
                Ok(Limited { delay, added })
            }
            Err(key) => Err(Rejected::Full(key)),
        };
        self.effect(limited)
    }

    /// Forgets the failures of a key, whatever state it is in; a pending delay stays. O(1).
    ///
    /// Answers how many failures were forgotten: zero for a key that the queue does not know.
    pub fn forget(&mut self, key: &K) -> u32 {
        let Located::Found(id) = self.slots.locate(key) else {
            return 0;
        };
        let requeues = self.requeues(id);
        if self.is_mere_memory(id) {
            self.drop_memory(id);
        } else if let Some(slot) = self.slots.slot_mut(id) {
            slot.note.memory = L::Memory::default();
        }
        requeues
    }

    /// Completes a run: the key may be worked on again. O(1), no lookup.
    ///
    /// A key that was added meanwhile is ready again, at the end of the queue. The failures stay
    /// remembered; [`complete`](Self::complete) says more in the same step.
    ///
    /// # Errors
    ///
    /// [`NotActive`] if the run was completed otherwise: nothing changes.
    pub fn done(&mut self, ticket: Ticket, now: Instant) -> Effect<Result<(), NotActive>> {
        match self.active_slot(&ticket) {
            Some(_) => {
                self.release_due(now);
                self.finish(ticket.id, now);
                self.effect(Ok(()))
            }
            None => quiet(Err(NotActive)),
        }
    }

    /// Completes the run of a key by name, as client-go's `Done`. O(1), one lookup.
    ///
    /// # Errors
    ///
    /// [`NotActive`] if the key is not in work: nothing changes.
    pub fn done_key(&mut self, key: &K, now: Instant) -> Effect<Result<(), NotActive>> {
        match self.slots.locate(key) {
            Located::Found(id) if self.is_active(id) => {
                self.release_due(now);
                self.finish(id, now);
                self.effect(Ok(()))
            }
            _ => quiet(Err(NotActive)),
        }
    }

    /// Completes a run and says what is to become of the key, in one step. O(log n), no lookup.
    ///
    /// A key that is to come back does so even while the queue shuts down, but then waits for
    /// [`take_delayed`](Self::take_delayed) to hand it back.
    ///
    /// Reads `now` whatever [`needs_time`](Self::needs_time) says, unless the completion is
    /// [`Completion::Done`] or [`Completion::Succeeded`].
    ///
    /// # Errors
    ///
    /// [`NotActive`] if the run was completed otherwise: nothing changes.
    pub fn complete(
        &mut self,
        ticket: Ticket,
        completion: Completion,
        now: Instant,
    ) -> Effect<Result<Finished, NotActive>> {
        let finished = self.complete_quietly(ticket, completion, now);
        self.effect(finished)
    }

    /// A getter that was told to wait goes away without work: its call was cancelled or timed out.
    /// O(1).
    ///
    /// If it watched a deadline or had been woken, somebody else is woken in its place.
    pub fn leave(&mut self, getter: &mut Getter) -> Effect<()> {
        self.sleepers.arrive(getter);
        self.effect(())
    }

    /// Reports to the metrics how long the keys in work have been so: client-go does that every
    /// 500 ms. O(slots).
    ///
    /// Nothing is reported once the queue shuts down.
    pub fn report_running(&mut self, now: Instant) -> Effect<()> {
        if !self.closed {
            self.release_due(now);
            let (mut sum, mut longest) = (Duration::ZERO, Duration::ZERO);
            for index in 0..self.slots.bound() {
                let id = SlotId::from_index(index);
                if let Some(slot) = self.slots.slot(id).filter(|_| self.is_active(id)) {
                    let age = now.saturating_since(slot.note.stamps.started());
                    sum = sum.saturating_add(age);
                    longest = longest.max(age);
                }
            }
            self.metrics.unfinished_work(sum);
            self.metrics.longest_running(longest);
        }
        self.effect(())
    }

    /// Moves every key whose deadline has come to the ready list, in the order of the deadlines.
    ///
    /// Every operation that could tell the difference begins with this. At most one step per delayed
    /// key, O(log n) each, paid once per deadline.
    #[inline]
    fn release_due(&mut self, now: Instant) {
        if self.delays.is_empty() || self.closed {
            return;
        }
        while let Some((id, due)) = self.delays.pop_due(now) {
            let _ = self.mark(id, due);
            self.metrics.delayed(self.delays.len());
        }
    }

    /// client-go's `Add`, for a key that has its slot.
    #[inline]
    fn mark(&mut self, id: SlotId, at: Instant) -> Added {
        let Some(slot) = self.slots.slot_mut(id) else {
            return Added::Coalesced;
        };
        let added = match slot.phase {
            Phase::Idle => {
                slot.phase = Phase::Ready;
                self.lists.unremember(id);
                self.lists.push_ready(id);
                Added::Ready
            }
            Phase::Active => {
                slot.phase = Phase::Dirty;
                self.dirty += 1;
                Added::Dirty
            }
            Phase::Ready | Phase::Dirty => {
                self.metrics.coalesced();
                return Added::Coalesced;
            }
        };
        slot.note.stamps.stamp_added(at);
        self.metrics.add();
        self.report_depth();
        added
    }

    /// client-go's `AddAfter`, for a key that has its slot.
    fn come_back(&mut self, id: SlotId, due: Instant, now: Instant) -> Added {
        self.metrics.retry();
        if due <= now && !due.is_never() {
            return self.mark(id, now);
        }
        match self.delays.schedule(id, due) {
            Scheduled::New => {
                self.lists.unremember(id);
                self.metrics.delayed(self.delays.len());
                Added::Delayed
            }
            Scheduled::Sooner => Added::Sooner,
            Scheduled::Kept => {
                self.metrics.coalesced();
                Added::Coalesced
            }
        }
    }

    fn complete_quietly(
        &mut self,
        ticket: Ticket,
        completion: Completion,
        now: Instant,
    ) -> Result<Finished, NotActive> {
        if self.active_slot(&ticket).is_none() {
            return Err(NotActive);
        }
        self.release_due(now);
        let delay = self.apply(ticket.id, completion, now);
        let ready = self.finish(ticket.id, now);
        Ok(match delay {
            _ if ready => Finished::Ready,
            None => Finished::Idle,
            Some(delay) if self.closed => Finished::Leftover(delay),
            Some(delay) => Finished::Delayed(delay),
        })
    }

    /// Does what a completion asks for beside ending the run. Answers how long the key has to wait.
    fn apply(&mut self, id: SlotId, completion: Completion, now: Instant) -> Option<Duration> {
        let forget = matches!(
            completion,
            Completion::Succeeded | Completion::SucceededAgainAfter(_)
        );
        if forget && let Some(slot) = self.slots.slot_mut(id) {
            slot.note.memory = L::Memory::default();
        }
        let delay = match completion {
            Completion::Done | Completion::Succeeded => return None,
            Completion::SucceededAgainAfter(delay) | Completion::RetryAfter(delay) => delay,
            Completion::Retry => self.charge_slot(id, now),
        };
        if self.closed {
            self.keep_for_later(id, now + delay);
        } else {
            let _ = self.come_back(id, now + delay, now);
        }
        Some(delay)
    }

    /// While the queue shuts down: keeps a key that wants to come back among the delayed ones, which
    /// are handed back. A dirty key will run once more and need not be kept.
    fn keep_for_later(&mut self, id: SlotId, due: Instant) {
        let clean = self
            .slots
            .slot(id)
            .is_some_and(|slot| slot.phase == Phase::Active);
        if clean {
            let _ = self.delays.schedule(id, due);
            self.metrics.delayed(self.delays.len());
        }
    }

    /// Ends the run of a key that is in work. Answers whether it is ready again.
    #[inline]
    fn finish(&mut self, id: SlotId, now: Instant) -> bool {
        let Some(slot) = self.slots.slot_mut(id) else {
            return false;
        };
        let duration = now.saturating_since(slot.note.stamps.started());
        let again = slot.phase == Phase::Dirty;
        let has_failed = slot.note.memory != L::Memory::default();
        slot.phase = if again { Phase::Ready } else { Phase::Idle };
        self.active -= 1;
        if again {
            self.dirty -= 1;
            self.lists.push_ready(id);
        }
        self.note_drain();
        if !again {
            self.settle(id, has_failed);
        }
        self.metrics.work_duration(duration);
        again
    }

    /// Finds the slot of a key, or claims one. Hands the key back if there is no room.
    #[inline]
    fn slot_for(&mut self, key: K) -> Result<SlotId, K> {
        match self.slots.locate(&key) {
            Located::Found(id) => Ok(id),
            Located::Absent(hash) => {
                if self.make_room() {
                    self.slots.claim(hash, key, Note::<L, M>::default())
                } else {
                    Err(key)
                }
            }
        }
    }

    /// Charges the limiter for a key and answers its delay. A key without a slot gets one last, so
    /// that a limiter that panics leaves no slot behind.
    fn charge(&mut self, key: K, now: Instant) -> Result<(SlotId, Duration), K> {
        match self.slots.locate(&key) {
            Located::Found(id) => Ok((id, self.charge_slot(id, now))),
            Located::Absent(hash) => {
                if !self.make_room() {
                    return Err(key);
                }
                let mut note = Note::<L, M>::default();
                let delay = self.limiter.when(&mut note.memory, now);
                Ok((self.slots.claim(hash, key, note)?, delay))
            }
        }
    }

    fn charge_slot(&mut self, id: SlotId, now: Instant) -> Duration {
        match self.slots.slot_mut(id) {
            Some(slot) => self.limiter.when(&mut slot.note.memory, now),
            None => Duration::ZERO,
        }
    }

    /// Makes sure that one more key fits, at the cost of the oldest memory of failures if need be.
    #[inline]
    fn make_room(&mut self) -> bool {
        if self.slots.has_room() {
            return true;
        }
        self.drop_oldest_memory()
    }

    fn drop_oldest_memory(&mut self) -> bool {
        match self.lists.oldest_memory() {
            Some(id) => {
                self.drop_memory(id);
                true
            }
            None => false,
        }
    }

    /// Gives up a slot that lives for its failures alone.
    fn drop_memory(&mut self, id: SlotId) {
        self.slots.release(id);
        self.lists.unremember(id);
    }

    /// Keeps a slot that has become idle, or lost its delay, only for a reason. Last of all, since
    /// the key's destructor may run here.
    #[inline]
    fn settle(&mut self, id: SlotId, has_failed: bool) {
        if self.delays.due(id).is_some() {
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
        if self.delays.remove(id).is_some() {
            self.metrics.delayed(self.delays.len());
        }
        self.note_drain();
        self.report_depth();
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
        self.drain_untold = self.closed && self.active == 0 && self.lists.ready_len() == 0;
    }

    /// The outcome of an operation, and whom it has to wake.
    #[inline]
    fn effect<T>(&mut self, value: T) -> Effect<T> {
        let ready = self.lists.ready_len() > 0;
        if core::mem::take(&mut self.drain_untold) {
            self.sleepers.all_woken();
            return Effect {
                value,
                wake: Wake::All,
            };
        }
        let earliest = self.next_deadline();
        let wake = self.sleepers.duty(ready, earliest);
        Effect { value, wake }
    }

    fn report_depth(&mut self) {
        self.metrics.depth(self.lists.ready_len() + self.dirty);
    }

    /// The slot of a ticket, if its run is still under way.
    #[inline]
    fn active_slot(&self, ticket: &Ticket) -> Option<&Slot<K, Note<L, M>>> {
        let slot = self.slots.slot(ticket.id)?;
        let active = matches!(slot.phase, Phase::Active | Phase::Dirty);
        (active && slot.run == ticket.run).then_some(slot)
    }

    fn is_active(&self, id: SlotId) -> bool {
        self.slots
            .slot(id)
            .is_some_and(|slot| matches!(slot.phase, Phase::Active | Phase::Dirty))
    }

    fn is_mere_memory(&self, id: SlotId) -> bool {
        let idle = self
            .slots
            .slot(id)
            .is_some_and(|slot| slot.phase == Phase::Idle);
        idle && self.delays.due(id).is_none()
    }

    fn requeues(&self, id: SlotId) -> u32 {
        self.slots
            .slot(id)
            .map_or(0, |slot| self.limiter.requeues(&slot.note.memory))
    }
}

impl<K: Eq + Hash + Clone, S: Storage, L: RateLimiter, M: Metrics> Queue<K, S, L, M> {
    /// Hands out the first ready key, or says how long to wait. O(1), and O(log n) for each deadline
    /// that has come.
    ///
    /// A getter that is told to wait sleeps until it is woken, no longer than `until`, and calls
    /// `get` again with the same [`Getter`]; or it calls [`leave`](Self::leave).
    pub fn get(&mut self, now: Instant, getter: &mut Getter) -> Effect<Next<Work<K>>> {
        self.release_due(now);
        let work = self.take(now);
        self.sleepers.arrive(getter);
        let next = match work {
            Some(work) => Next::Work(work),
            None => self.wait(getter),
        };
        self.effect(next)
    }

    /// Hands out the first ready key, if there is one. Costs as [`get`](Self::get).
    pub fn try_get(&mut self, now: Instant) -> Effect<Option<Work<K>>> {
        self.release_due(now);
        let work = self.take(now);
        self.effect(work)
    }

    /// Completes a run and hands out the next ready key, in one step: what a worker's loop does.
    /// Costs as [`complete`](Self::complete) and [`get`](Self::get) together.
    pub fn next(
        &mut self,
        ticket: Ticket,
        completion: Completion,
        now: Instant,
        getter: &mut Getter,
    ) -> Effect<Step<Work<K>>> {
        let finished = self.complete_quietly(ticket, completion, now);
        let Effect { value: next, wake } = self.get(now, getter);
        Effect {
            value: Step { finished, next },
            wake,
        }
    }

    /// Takes the first ready key. The key is cloned first, since a clone may panic.
    #[inline]
    fn take(&mut self, now: Instant) -> Option<Work<K>> {
        let id = self.lists.first_ready()?;
        let slot = self.slots.slot_mut(id)?;
        let key = slot.key.clone();
        self.runs = self.runs.wrapping_add(1);
        slot.run = self.runs;
        slot.phase = Phase::Active;
        slot.note.stamps.stamp_started(now);
        let latency = now.saturating_since(slot.note.stamps.added());
        let requeues = self.limiter.requeues(&slot.note.memory);
        let ticket = Ticket { id, run: slot.run };
        let _ = self.lists.pop_ready();
        self.active += 1;
        self.report_depth();
        self.metrics.queue_latency(latency);
        Some(Work {
            key,
            ticket,
            requeues,
        })
    }

    fn wait<T>(&mut self, getter: &mut Getter) -> Next<T> {
        if self.closed {
            return Next::Closed;
        }
        let earliest = self.delays.earliest();
        Next::Wait {
            until: self.sleepers.sleep(getter, earliest),
        }
    }
}

/// The effect of an operation that changed nothing.
fn quiet<T>(value: T) -> Effect<T> {
    Effect {
        value,
        wake: Wake::None,
    }
}
