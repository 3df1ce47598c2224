//! The state machine. Owns its fields and every change of a key's phase; never reads a clock, takes
//! a lock or calls a waker.

use core::borrow::Borrow;
use core::hash::Hash;
use core::num::NonZeroU8;
use core::time::Duration;

use crate::Instant;
use crate::array::Optional;
use crate::delay::{Delays, Nodes, Slack};
use crate::id::{Index, SlotId};
use crate::levels::{Age, Priorities};
use crate::limiter::RateLimiter;
use crate::lists::Lists;
use crate::metrics::Metrics;
use crate::metrics::running::KeepRunning;
use crate::metrics::times::{Kept, Timestamps};
use crate::outcome::{Added, KeyState, Next, Rejected};
use crate::policy::KeepPolicy;
use crate::sleepers::Sleepers;
use crate::storage::{self, Storage};
use crate::store::{Located, Phase, Slots};
use crate::work::{Ticket, Work};

mod add;
mod check;
mod close;
mod construct;
mod control;
mod due;
mod policy;
mod run;
mod session;
mod slack;
mod slots;
mod suspend;
mod sweep;
mod view;
mod wait;
mod why;

use policy::Gate;
pub use policy::Governs;
pub use session::Session;
pub use slack::Slackens;
pub use suspend::Suspends;
pub use sweep::Sweep;
use wait::Watched;
pub use wait::{Adding, Flush};

/// A keyed work queue, as plain data: no clock, no lock, nothing that waits.
///
/// [`at`](Self::at) begins a [`Session`] at a point in time. Its operations return plain values,
/// and [`close`](Session::close) names the waiting calls to wake. A runtime puts the queue behind a
/// lock and waits for it: [`Shared`](crate::binding::Shared) and [`Wait`](crate::binding::Wait) do
/// that.
///
/// A key is in one of these states, client-go's dirty and processing sets in one value:
///
/// ```text
///               add                 get                finish
///   ┌────────┐ ─────▶ ┌─────────┐ ─────▶ ┌──────────┐ ─────▶ (idle)
///   │  idle  │        │  ready  │        │  active  │
///   └────────┘ ◀┄┄┄┄┄ └─────────┘        └──────────┘
///      ▲  add_after:        ▲               │ add
///      ┆  delayed; becomes  │    finish     ▼
///      ┆  ready when due    └────────── ┌──────────┐
///                                       │  dirty   │
///                                       └──────────┘
/// ```
///
/// A key in any state may also have a delay: as in client-go, a delay is an add that happens later.
/// A [suspended](Session::suspend) key is neither ready nor active until its suspension ends.
///
/// # Order of calling
///
/// - **Producers**: [`add`](Session::add), [`add_after`](Session::add_after),
///   [`add_at`](Session::add_at), [`add_rate_limited`](Session::add_rate_limited),
///   [`add_with`](Session::add_with), [`forget`](Session::forget), in any order.
/// - **Workers**: [`poll_get`](Session::poll_get) or [`try_get`](Session::try_get), then exactly
///   one of [`finish`](Session::finish) and [`release`](Session::release) with the ticket.
/// - **Shutdown**: [`shut_down`](Session::shut_down) or [`begin_drain`](Session::begin_drain), then
///   [`take_delayed`](Session::take_delayed) and [`take_ready`](Session::take_ready) for what is
///   left.
///
/// # Invariants
///
/// The tests check all of them after every operation:
///
/// - **Q1** A key is stored once and found by its hash; the queue has at most its capacity,
///   or takes no new key.
/// - **Q2** A slot is in the ready list, once, exactly if its phase is ready; with priority levels,
///   in the list of its level.
/// - **Q3** The counts of active and dirty slots are right.
/// - **Q4** A slot is live for a reason: its phase, a deadline, a hold, or a failure record.
/// - **Q5** A slot is in the list of failure records, once, exactly if it is idle without a deadline.
/// - **Q6** While a queue that shuts down has due keys that are not ready, some key is ready or
///   active.
/// - **Q7** If the metrics keep times, the active slots are listed in the order in which their runs
///   began, and the sum of these times is right.
/// - **Q8** No deadline passes before the time until which its key is [held](crate::Policy), unless
///   the key is active or suspended.
/// - **Q9** A [suspended](crate::Session::suspend) key is idle, and its deadline is the end of its
///   suspension. Only a suspended key has an add or a deadline stored beside its slot.
/// - **H1–H4** The heap of deadlines is a heap, knows where each slot is, and no window opens after
///   its end.
/// - **W1** While a getter sleeps and a wake is needed, a wake is in flight.
/// - **W2** There is a timer owner only while a getter sleeps.
/// - **W3** While a call waits for the drain, for a settled queue or for room, that has not come,
///   or the call has been woken.
///
/// # Cost
///
/// Unless its documentation says otherwise, an operation is O(1) expected, plus O(log n) for a
/// deadline that it sets, moves or takes out, and for each due key that it makes ready: at most
/// as many as [`limit_due_keys`](Self::limit_due_keys) says, however many deadlines have passed. The
/// rest become ready with the operations that follow, and meanwhile a key that is added goes before
/// them. A get has the same bound: `None` also means that
/// the deadlines that it has applied were of active keys, and more have passed.
///
/// No operation allocates with [`Fixed`](crate::storage::Fixed) storage. `Growable` grows in
/// segments, at the same cost for each add, and copies the first part of what it keeps at most.
///
/// # Keys
///
/// `Hash`, `Eq`, `Clone` and `Drop` of a key run while the queue is locked: they must not touch it.
/// `Drop` runs then only for a key that the queue stores and lets go: when its run ends and nothing
/// else holds it, when its failure record is forgotten or discarded, and when it is taken out as a
/// leftover, because to move the key out of the lock would cost every run a copy. A
/// [`Shared`](crate::binding::Shared) drops the caller's copy of a key that it has already
/// after the lock, and hands a refused key back.
///
/// If one of the first three panics, nothing has happened to that key. What the operation did
/// before that remains: deadlines that had passed, earlier keys of a batch. If `Drop` panics, the
/// operation has happened. The result is lost in either case, and the next session that is closed
/// returns the wake.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use requeue::limiter::default_item_based;
/// use requeue::priority::Plain;
/// use requeue::storage::Fixed;
/// use requeue::{Action, Added, Finished, Instant, Queue};
///
/// let mut queue: Queue<&str, Plain, _, Fixed<16>> = Queue::new(default_item_based());
/// let now = Instant::EPOCH;
///
/// assert_eq!(queue.at(now).add("disk"), Ok(Added::Ready));
/// assert_eq!(queue.at(now).add("disk"), Ok(Added::Coalesced));
///
/// let work = queue.at(now).try_get().unwrap();
/// assert_eq!(work.key, "disk");
///
/// // It fails, and runs again a millisecond later.
/// let finished = queue.at(now).finish(work.ticket, Action::Retry);
/// assert_eq!(finished, Finished::Delayed(Duration::from_millis(1)));
/// assert!(queue.at(now).try_get().is_none());
/// assert!(queue.at(now + Duration::from_millis(1)).try_get().is_some());
/// ```
#[derive(Debug)]
// The order of the fields decides how many cache lines travel between the cores of producers and
// workers with each key. What both write comes first, so that it shares the line of the lock, and
// the ready list keeps what only one of them writes in lines of its own. A board has no such lines,
// and there the order decides how many instructions it takes to find a field.
#[cfg_attr(feature = "alloc", repr(C))]
pub struct Queue<K, P, L, S, M = ()>
where
    K: Eq + Hash,
    P: Priorities,
    L: RateLimiter,
    S: Storage,
    M: Metrics,
{
    #[cfg(feature = "alloc")]
    closed: bool,
    #[cfg(feature = "alloc")]
    gate: Gate,
    #[cfg(feature = "alloc")]
    watched: Watched,
    #[cfg(feature = "alloc")]
    due_keys_max: NonZeroU8,
    #[cfg(feature = "alloc")]
    runs: u32,
    #[cfg(feature = "alloc")]
    active: usize,
    #[cfg(feature = "alloc")]
    dirty: usize,
    slots: S::Slots<K, Meta<P, L, S, M>>,
    lists: S::Lists<P>,
    delays: Delays<S::Nodes<P>>,
    sleepers: Sleepers,
    limiter: L,
    /// The conditions that delay keys besides their deadlines.
    policy: S::Policy<P>,
    metrics: M,
    /// How long keys may wait at their levels.
    age_limit: <P::Age as Age>::Limit,
    /// Computes the group of a key.
    naming: P::Naming<K>,
    /// The active slots, if the metrics keep times in the slots.
    running: <M::Timestamps as Timestamps>::Running,
    /// Slots that are active, dirty or not.
    #[cfg(not(feature = "alloc"))]
    active: usize,
    /// Slots that are active and dirty.
    #[cfg(not(feature = "alloc"))]
    dirty: usize,
    /// The number of the last run, so that no two tickets of a slot are the same.
    #[cfg(not(feature = "alloc"))]
    runs: u32,
    /// How many keys may be kept only for their failures.
    failure_records_max: usize,
    /// How many due keys an operation makes ready: at least one, or no key would ever become ready.
    #[cfg(not(feature = "alloc"))]
    due_keys_max: NonZeroU8,
    #[cfg(not(feature = "alloc"))]
    closed: bool,
    /// The conditions for which keys and getters may have to wait, although keys are ready or due.
    #[cfg(not(feature = "alloc"))]
    gate: Gate,
    /// The states for which calls wait, other than keys.
    #[cfg(not(feature = "alloc"))]
    watched: Watched,
    /// Counts calls of `shut_down`, which interrupts the drains that have not ended.
    epoch: u32,
}

/// What a slot keeps for its key: the limiter's record, the metrics' timestamps, the levels, since
/// when it waits at its level, and what the policy keeps.
#[doc(hidden)]
#[derive(Debug, Default)]
pub struct SlotMeta<Y, T, R, A, P> {
    pub(crate) record: Y,
    pub(crate) timestamps: T,
    pub(crate) levels: R,
    pub(crate) age: A,
    pub(crate) kept: P,
}

/// Where a key would be found.
type Place<K, P, L, S, M> = storage::Place<K, Meta<P, L, S, M>, S>;

/// How much earlier than its deadline a key of a queue may run.
type SlackOf<P, S> = <<S as Storage>::Nodes<P> as Nodes>::Slack;

type Window<P, S> = crate::delay::Window<SlackOf<P, S>>;

pub(crate) type Meta<P, L, S, M> = SlotMeta<
    <L as RateLimiter>::Record,
    Kept<M>,
    <P as Priorities>::KeyLevels,
    <P as Priorities>::Age,
    <<S as Storage>::Policy<P> as KeepPolicy>::InSlot,
>;

impl<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage, M: Metrics> Queue<K, P, L, S, M> {
    /// client-go's `Add` for a key with a slot, at a priority level.
    fn mark(&mut self, id: SlotId, at: Instant, level: u8) -> Added {
        if self.holds()
            && let Some(delayed) = self.delay_if_held(id, at, level)
        {
            return delayed;
        }
        let Some(slot) = self.slots.slot_mut(id) else {
            return Added::Coalesced;
        };
        let added = match slot.phase {
            Phase::Idle => {
                slot.phase = Phase::Ready;
                if self.lists.records_len() > 0 {
                    self.lists.discard_record(id);
                }
                self.lists.push_ready(id, level, at);
                Added::Ready
            }
            phase if phase.is_queued() => {
                self.metrics.coalesced();
                return self.raise(id, level, at);
            }
            phase => {
                slot.phase = phase.made_dirty();
                self.dirty += 1;
                self.lists.note_dirty(level);
                Added::Dirty
            }
        };
        slot.meta.levels.set(|levels| levels.queued = level);
        slot.meta.age.begin(at);
        let kept = &mut slot.meta.timestamps;
        self.metrics.stamp_added(kept, id.index(), at);
        self.metrics.added();
        self.report_depth(level);
        added
    }

    /// Ends the run of a ticket. Returns whether the key is ready again, or `None` if the run had
    /// already ended.
    /// `HOLDS` says whether keys may be held.
    // On boards a copy at each call costs flash.
    #[cfg_attr(feature = "alloc", inline(always))]
    #[cfg_attr(not(feature = "alloc"), inline)]
    fn end_run<const HOLDS: bool>(
        &mut self,
        ticket: Ticket,
        ends: Ends,
        now: Instant,
    ) -> Option<bool> {
        let Ends { forgets, succeeds } = ends;
        let id = ticket.id;
        let plan = if HOLDS {
            self.planned_suspension(id)
        } else {
            None
        };
        let slot = self
            .slots
            .slot_mut(id)
            .filter(|slot| slot.is_run_by(&ticket))?;
        let mut failures = 0;
        if succeeds && self.metrics.needs_time() {
            failures = self.limiter.failures(&slot.meta.record);
        }
        if forgets {
            slot.meta.record = L::Record::default();
        }
        let is_held = HOLDS && self.policy.end_run(&mut slot.meta.kept, id, forgets, now);
        let was_dirty = slot.phase.is_queued();
        let kept = &mut slot.meta.timestamps;
        let (started, first_added) = self.metrics.ended(kept, id.index(), forgets, was_dirty);
        self.running.end(&mut self.lists, id, started);
        let duration = now.saturating_since(started);
        let again = was_dirty && !is_held && plan.is_none();
        let is_kept = is_held || has_failed::<L>(&slot.meta.record);
        slot.phase = if again { Phase::Ready } else { Phase::Idle };
        self.active -= 1;
        self.lists.end_run(id);
        if again {
            let level = slot.meta.levels.get().queued;
            self.dirty -= 1;
            self.lists.note_clean(level);
            self.lists.push_ready(id, level, now);
            // Written here and below, so that the compiler sees two branches instead of three.
            self.note_change();
        }
        if HOLDS {
            self.clear_suspension(id);
            match plan {
                Some(plan) => self.suspend_after_run(id, plan, was_dirty, now),
                None => self.hold_after_run(id, was_dirty && is_held, now),
            }
        }
        if !again {
            self.note_change();
            if HOLDS && !is_kept && !self.delays.has(id) {
                self.end_hold(id);
            }
            self.release_if_unused(id, is_kept);
        }
        self.metrics.work_duration(duration);
        if succeeds && !first_added.is_never() {
            let time = now.saturating_since(first_added);
            self.metrics.time_to_success(time);
            self.metrics.attempts_at_success(failures.saturating_add(1));
        }
        if HOLDS {
            self.drop_passed_holds(now);
        }
        Some(again)
    }

    /// Removes a ready key from the queue, with its delay if it has one.
    fn retire(&mut self, id: SlotId) {
        let _ = self.leave_ready(id);
        let _ = self.drop_delay(id);
        self.release_if_idle(id);
    }

    /// Removes a key from the ready list. Returns its level.
    fn leave_ready(&mut self, id: SlotId) -> u8 {
        if let Some(slot) = self.slots.slot_mut(id) {
            slot.phase = Phase::Idle;
        }
        let level = self.levels(id).queued;
        self.lists.remove_ready(id, level);
        self.note_change();
        self.report_depth(level);
        level
    }

    /// Cancels the run of a key. The run continues, but causes no other run.
    fn cancel_run(&mut self, id: SlotId) {
        let Some(slot) = self.slots.slot_mut(id) else {
            return;
        };
        let was_dirty = slot.phase.is_queued();
        slot.phase = Phase::CancelledActive;
        if was_dirty {
            let level = slot.meta.levels.get().queued;
            self.dirty -= 1;
            self.lists.note_clean(level);
            self.report_depth(level);
        }
    }

    /// Records, for calls that wait for it, that a key has left the ready list or lost its delay,
    /// or that its run has ended.
    #[inline]
    fn note_change(&mut self) {
        self.watched.note_change();
    }

    /// Reports the depth, after a key has entered or left a level.
    fn report_depth(&mut self, level: u8) {
        self.metrics.depth(self.lists.ready_len() + self.dirty);
        if P::LEVELS > 1 {
            self.metrics.depth_at(level, self.lists.depth_at(level));
        }
    }
}

impl<K: Eq + Hash + Clone, P: Priorities, L: RateLimiter, S: Storage, M: Metrics>
    Queue<K, P, L, S, M>
{
    /// Takes the first ready key. Runs foreign code before it changes anything, because that may
    /// panic.
    // On boards a copy at each call costs flash.
    #[cfg_attr(feature = "alloc", inline(always))]
    #[cfg_attr(not(feature = "alloc"), inline)]
    pub(crate) fn take(&mut self, now: Instant) -> Option<Work<K>> {
        let id = self.first_ready(now)?;
        // Here, where it costs least.
        if self.gate.is_shut() && !self.may_start(now) {
            return None;
        }
        let slot = self.slots.slot_mut(id)?;
        let key = slot.key.clone();
        let failures = self.limiter.failures(&slot.meta.record);
        self.runs = self.runs.wrapping_add(1);
        slot.run = self.runs;
        slot.phase = Phase::Active;
        let priority = slot.meta.levels.get().queued;
        slot.meta.levels.set(|levels| levels.running = priority);
        let kept = &mut slot.meta.timestamps;
        self.metrics.stamp_started(kept, id.index(), now);
        let waited = self.metrics.waited(kept, id.index(), now);
        let ticket = Ticket { id, run: slot.run };
        let _ = self.lists.pop_ready(priority, now);
        let mut timed_out = false;
        if S::Policy::<P>::EXISTS && self.gate.is_shut() {
            self.note_start(now);
            timed_out = self.has_timed_out(id);
        }
        self.running.begin(&mut self.lists, id, now);
        self.active += 1;
        self.report_depth(priority);
        self.metrics.queue_latency(waited);
        Some(Work {
            key,
            ticket,
            failures,
            waited,
            priority,
            timed_out,
        })
    }
}

/// The effect of the end of a run on the failures of its key.
#[derive(Clone, Copy)]
struct Ends {
    forgets: bool,
    succeeds: bool,
}

/// Whether a record says that its key has failed.
#[inline]
fn has_failed<L: RateLimiter>(record: &L::Record) -> bool {
    *record != L::Record::default()
}

/// The level of an add without a priority.
const LOWEST: u8 = 0;
