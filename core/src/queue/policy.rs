//! The policy: conditions for which a ready or due key still waits. All of this is dead code in a
//! queue that can have no policy.
//!
//! No deadline of a held key is before the end of its hold (Q8). So taking a key needs no check,
//! and neither does a passed deadline. Only beginning a hold, ending a run and adding a key check
//! it. The deadlines of an active key are moved when its run ends. For sleeping getters, a ready
//! key that may not be handed out yet is a deadline.

use crate::policy::{InSlot, InSlots, Kept, Policy, SetPolicy};
use crate::store::fixed::Fixed;

use super::*;

/// A [`Storage`] with room for a [`Policy`](crate::Policy) and for debounced adds: the bound of a
/// function that takes any such queue. `Growable` has it, and
/// [`Fixed`](crate::storage::Fixed) with
/// [`WithPolicy`](crate::priority::WithPolicy).
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use requeue::binding::Governs;
/// use requeue::limiter::NoLimit;
/// use requeue::priority::{Priorities, WithPolicy};
/// use requeue::storage::Fixed;
/// use requeue::{Instant, Policy, Queue};
///
/// fn pace<P: Priorities, S: Governs<P>>(queue: &mut Queue<u16, P, NoLimit, S>) {
///     let policy = Policy::new().cool_down(Duration::from_secs(1));
///     queue.at(Instant::EPOCH).set_policy(policy);
/// }
///
/// let mut queue: Queue<u16, WithPolicy, NoLimit, Fixed<4>> = Queue::new(NoLimit);
/// pace(&mut queue);
/// ```
#[diagnostic::on_unimplemented(
    message = "this queue has no room for a policy",
    label = "this queue can neither hold its keys, nor pace their runs, nor debounce adds",
    note = "put `WithPolicy` into the queue's type, as in `Queue<u16, WithPolicy, L, Fixed<8>>`"
)]
pub trait Governs<P: Priorities>: Storage<Policy<P>: SetPolicy> {}

#[diagnostic::do_not_recommend]
impl<P: Priorities, S: Storage<Policy<P>: SetPolicy>> Governs<P> for S {}

/// The conditions for which keys and getters may have to wait, in one byte. So a queue without such
/// conditions only pays for one test when a key is handed out, and one when its run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gate(u8);

impl Gate {
    pub(super) const OPEN: Self = Self(0);
    /// Getters wait although keys may be ready. Never set after shutdown.
    pub(super) const PAUSED: Self = Self(1);
    /// Keys may be held. Set by the first policy that holds keys.
    const HOLDS: Self = Self(1 << 1);
    /// Runs wait for tokens.
    const PACES: Self = Self(1 << 2);
    /// A key may have a series of debounced adds. Set by the first such add.
    pub(super) const DEBOUNCES: Self = Self(1 << 3);
    /// A key may be suspended. Set by the first suspension.
    pub(super) const SUSPENDS: Self = Self(1 << 4);

    #[inline]
    pub(super) const fn is_shut(self) -> bool {
        self.0 != 0
    }

    #[inline]
    pub(super) const fn holds(self) -> bool {
        self.has(Self(Self::HOLDS.0 | Self::SUSPENDS.0))
    }

    #[inline]
    pub(super) const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    #[inline]
    pub(super) const fn set(&mut self, other: Self, on: bool) {
        self.0 &= !other.0;
        if on {
            self.0 |= other.0;
        }
    }

    const fn obey(&mut self, policy: &Policy) {
        self.set(Self::HOLDS, self.has(Self::HOLDS) || policy.holds());
        self.set(Self::PACES, policy.paces());
    }
}

/// How many records the end of a run checks, to drop expired holds. More than the one that it may
/// add.
const RECORDS_PER_RUN: usize = 2;

impl<K, L, M, const N: usize, I, P, X> Queue<K, P, L, Fixed<N, I>, M>
where
    K: Eq + Hash,
    L: RateLimiter,
    M: Metrics,
    I: Index,
    X: InSlot,
    P: Priorities<FixedPolicy = InSlots<X>>,
{
    /// Gives the queue a [`Policy`], also in a `static`. O(1).
    /// [`WithPolicy`](crate::priority::WithPolicy) has an example.
    #[must_use]
    pub const fn with_policy(mut self, policy: Policy) -> Self {
        self.gate.obey(&policy);
        self.policy.policy = policy;
        self
    }
}

impl<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage, M: Metrics>
    Session<'_, K, P, L, S, M>
{
    /// Sets what keys wait for in addition to their delays: see [`Policy`]. The builder has a
    /// method for each part. O(1).
    ///
    /// Keys that are held stay so, for as long as the former policy has said. A run rate begins
    /// with its burst.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::limiter::NoLimit;
    /// use requeue::priority::WithPolicy;
    /// use requeue::storage::Fixed;
    /// use requeue::{Instant, Policy, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<&str, WithPolicy, NoLimit, Fixed<4>> = Queue::new(NoLimit);
    /// queue.at(now).set_policy(Policy::new().run_rate(1.0, 1));
    /// let _ = queue.at(now).add_many(["node-7", "node-8"], |_| {});
    /// assert!(queue.at(now).try_get().is_some());
    /// assert!(queue.at(now).try_get().is_none());
    /// ```
    pub fn set_policy(&mut self, policy: Policy)
    where
        S: Governs<P>,
    {
        self.queue.gate.obey(&policy);
        self.queue.policy.set(policy);
    }
}

impl<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage, M: Metrics> Queue<K, P, L, S, M> {
    /// Whether keys may be held, or suspended.
    #[inline]
    pub(super) fn holds(&self) -> bool {
        S::Policy::<P>::EXISTS && self.gate.holds()
    }

    /// Whether the policy needs the time of every operation.
    #[inline]
    pub(super) fn policy_needs_time(&self) -> bool {
        S::Policy::<P>::EXISTS && (self.gate.holds() || self.gate.has(Gate::PACES))
    }

    /// The end of a key's hold, or a passed time if it is not held. An active key is not held,
    /// because the end of its run may end the hold.
    #[inline]
    pub(super) fn held_until(&self, id: SlotId) -> Instant {
        if !self.holds() || self.is_active(id) {
            return Instant::EPOCH;
        }
        self.kept(id).held_until
    }

    // A separate function, like all that read the policy's data, so that a queue without a policy
    // stays small.
    #[cold]
    #[inline(never)]
    fn kept(&self, id: SlotId) -> Kept {
        let slot = self.slots.slot(id);
        slot.map_or_else(Kept::default, |slot| self.policy.kept(&slot.meta.kept, id))
    }

    #[cold]
    #[inline(never)]
    pub(super) fn kept_mut(&mut self, id: SlotId) -> Option<&mut Kept> {
        let slot = self.slots.slot_mut(id)?;
        self.policy.kept_mut(&mut slot.meta.kept, id)
    }

    /// Begins a hold after a failure, if failures hold.
    #[inline]
    pub(super) fn hold_failure(&mut self, id: SlotId, delay: Duration, now: Instant) {
        if self.holds() {
            self.begin_hold(id, delay, now);
        }
    }

    #[cold]
    #[inline(never)]
    fn begin_hold(&mut self, id: SlotId, delay: Duration, now: Instant) {
        let policy = self.policy.policy();
        let held = policy.map(|policy| policy.held_after_failure(delay, now));
        if let (Some(held), Some(kept)) = (held, self.kept_mut(id)) {
            kept.held_until = kept.held_until.max(held);
        }
    }

    /// Delays an idle key if it is held, instead of making it ready.
    #[cold]
    #[inline(never)]
    pub(super) fn delay_if_held(&mut self, id: SlotId, at: Instant, level: u8) -> Option<Added> {
        if self.is_suspended(id) {
            return Some(self.add_suspended(id, level));
        }
        let held = self.held_until(id);
        if held.is_after(at) && self.is_idle_slot(id) {
            return Some(self.delay_until(id, Window::<P, S>::exact(held), level));
        }
        self.end_pause(id);
        None
    }

    /// Forgets the failures of a key, and with them its hold.
    pub(super) fn forget(&mut self, id: SlotId) {
        if let Some(slot) = self.slots.slot_mut(id) {
            slot.meta.record = L::Record::default();
        }
        self.end_hold(id);
    }

    /// Ends the hold of a key. Called also before a key loses its slot, because the next key would
    /// inherit the hold.
    #[inline]
    pub(super) fn end_hold(&mut self, id: SlotId) {
        if self.holds()
            && self.kept(id).held_until > Instant::EPOCH
            && let Some(kept) = self.kept_mut(id)
        {
            kept.held_until = Instant::EPOCH;
        }
    }

    /// The window of an add: what is left of it after the key's hold, and at least the end of the
    /// hold. A suspended key is added at once, and obeys its hold when the suspension ends. A key
    /// that is ready stays so, also if the clock has gone back to before the end of its hold.
    #[inline]
    pub(super) fn window_of_add(
        &self,
        id: SlotId,
        window: Window<P, S>,
        now: Instant,
    ) -> Window<P, S> {
        let obeys = || self.is_idle_slot(id) && !self.is_suspended(id);
        if self.holds() && (window.opens().is_after(now) || obeys()) {
            return window.not_before(self.held_until(id));
        }
        window
    }

    /// The window of an add that counts a failure: a ready key obeys the hold of the failure.
    #[inline]
    pub(super) fn window_of_failure(&self, id: SlotId, window: Window<P, S>) -> Window<P, S> {
        if self.holds_failures() && !self.is_suspended(id) {
            return window.not_before(self.held_until(id));
        }
        window
    }

    #[inline]
    fn holds_failures(&self) -> bool {
        self.policy.policy().is_some_and(Policy::holds_failures)
    }

    /// The remaining time of a key's hold.
    pub(super) fn hold_left(&self, id: SlotId, now: Instant) -> Duration {
        let held = self.held_until(id);
        if held.is_never() {
            Duration::MAX
        } else {
            held.saturating_since(now)
        }
    }

    /// Ends a run, in a queue whose keys may be held.
    #[cold]
    #[inline(never)]
    pub(super) fn end_held_run(
        &mut self,
        ticket: Ticket,
        ends: Ends,
        now: Instant,
    ) -> Option<bool> {
        self.end_run::<true>(ticket, ends, now)
    }

    /// Applies a hold that a failure of the key may have begun: the key is no longer ready, and its
    /// deadline is not before the end of the hold. Returns the result for the key, which is `added`
    /// if nothing changes.
    #[inline]
    pub(super) fn hold_back(&mut self, id: SlotId, added: Added, now: Instant) -> Added {
        let held = self.held_until(id);
        if held.is_after(now) && self.holds_failures() {
            if self.is_suspended(id) {
                let moved = self.put_off_suspended(id, held);
                return if moved { Added::Later } else { added };
            }
            return self.hold_back_until(id, held).unwrap_or(added);
        }
        added
    }

    fn hold_back_until(&mut self, id: SlotId, held: Instant) -> Option<Added> {
        let slot = self.slots.slot(id);
        if slot.is_some_and(|slot| slot.phase == Phase::Ready) {
            let level = self.leave_ready(id);
            self.end_pause(id);
            let _ = self.delay_until(id, Window::<P, S>::exact(held), level);
            let _ = self.put_off(id, held);
            return Some(Added::Delayed);
        }
        self.put_off(id, held).then_some(Added::Later)
    }

    /// Like `hold_back`, after a run. `waits` is true if the key was dirty: then it is ready once
    /// its hold ends. A deadline that shutdown has stopped may also be before the end of an expired
    /// hold.
    pub(super) fn hold_after_run(&mut self, id: SlotId, waits: bool, now: Instant) {
        let mut held = self.held_until(id);
        if self.closed {
            // What is set after shutdown is beyond it, wherever the clock goes.
            held = held.max(self.delays.stopped_at());
        }
        if waits {
            let level = self.levels(id).queued;
            self.dirty -= 1;
            self.lists.note_clean(level);
            self.report_depth(level);
            let _ = self.delay_until(id, Window::<P, S>::exact(held), level);
            if self.closed {
                // This key does not become ready, so another one may have to (Q6).
                let _ = self.make_due_ready(SlotId::NONE, now);
            }
        }
        let _ = self.put_off(id, held);
    }

    /// Moves the deadline of a key, if it has one, to the end of its hold if that is later. Returns
    /// whether it did. The key's window does not open before that in any case.
    fn put_off(&mut self, id: SlotId, held: Instant) -> bool {
        let is_before = self.delays.due(id).is_some_and(|due| due < held);
        if is_before {
            self.move_deadline(id, Window::<P, S>::exact(held));
        } else {
            self.open_after_hold(id, held);
        }
        is_before
    }

    /// Drops records of expired holds from the front of the list. A record of failures would hide
    /// the records behind it, so it is moved to the end. O(1).
    pub(super) fn drop_passed_holds(&mut self, now: Instant) {
        if !self.gate.has(Gate::HOLDS) {
            return;
        }
        for _ in 0..RECORDS_PER_RUN {
            let Some(id) = self.lists.oldest_record() else {
                return;
            };
            if self.held_until(id).is_after(now) {
                return;
            }
            let slot = self.slots.slot(id);
            if slot.is_some_and(|slot| has_failed::<L>(&slot.meta.record)) {
                self.lists.discard_record(id);
                self.lists.retain_record(id);
            } else {
                self.drop_record(id);
            }
        }
    }

    /// Ends the series of debounced adds that set the deadline of a key, because another call asks
    /// for the same deadline or sets an earlier one.
    #[inline]
    pub(super) fn note_deadline(&mut self, id: SlotId, due: Instant) {
        if S::Policy::<P>::EXISTS && self.gate.has(Gate::DEBOUNCES) {
            self.end_series_at(id, due);
        }
    }

    #[cold]
    #[inline(never)]
    fn end_series_at(&mut self, id: SlotId, due: Instant) {
        if self.deadline(id).is_none_or(|pending| due <= pending) {
            self.set_series(id, Instant::NEVER);
        }
    }

    /// Moves the deadline of a key, and ends the series that set it.
    #[inline]
    pub(super) fn move_deadline(&mut self, id: SlotId, window: Window<P, S>) {
        if S::Policy::<P>::EXISTS && self.gate.has(Gate::DEBOUNCES) {
            self.set_series(id, Instant::NEVER);
        }
        self.set_deadline(id, window);
    }

    /// Whether debounced adds have set the deadline of a key.
    pub(super) fn is_debounced(&self, id: SlotId) -> bool {
        let debounces = S::Policy::<P>::EXISTS && self.gate.has(Gate::DEBOUNCES);
        debounces && !self.kept(id).series.is_never()
    }

    /// When the policy allows the next run. A passed time if it may start now.
    pub(super) fn paced_until(&self) -> Instant {
        if S::Policy::<P>::EXISTS && self.gate.has(Gate::PACES) {
            self.next_start()
        } else {
            Instant::EPOCH
        }
    }

    /// Records when the series began that set a key's deadline.
    pub(super) fn set_series(&mut self, id: SlotId, first: Instant) {
        if let Some(kept) = self.kept_mut(id) {
            kept.series = first;
        }
    }

    /// Whether a ready key may be handed out although the gate is shut.
    #[cold]
    #[inline(never)]
    pub(super) fn may_start(&self, now: Instant) -> bool {
        // Without a policy, only a pause shuts the gate.
        S::Policy::<P>::EXISTS && !self.is_paused() && !self.next_start().is_after(now)
    }

    /// Charges the rate of runs for a key that is handed out.
    #[cold]
    #[inline(never)]
    pub(super) fn note_start(&mut self, now: Instant) {
        if let Some(policy) = self.policy.policy_mut() {
            policy.start(now);
        }
    }

    /// When a ready key may be handed out.
    fn next_start(&self) -> Instant {
        let policy = self.policy.policy();
        policy.map_or(Instant::EPOCH, Policy::next_start)
    }

    /// The earliest start of the first ready key. `None` if there is no rate.
    #[inline]
    pub(super) fn start_due(&self) -> Option<Instant> {
        if !S::Policy::<P>::EXISTS || !self.gate.has(Gate::PACES) {
            return None;
        }
        let start = self.next_start();
        (start > Instant::EPOCH && self.lists.may_start()).then_some(start)
    }

    /// Whether a sleeping getter has something to do: a ready key, a backlog that no deadline makes
    /// it check, or the end of a queue that was shut down and has handed out its last key.
    #[inline]
    pub(super) fn is_at_hand(&self, ready: bool) -> bool {
        if ready {
            return self.start_due().is_none();
        }
        self.closed && (self.has_handed_out_all() || self.delays.is_due(Instant::NEVER))
    }

    /// Whether getters find the queue closed: it was shut down, no key is ready or in the backlog,
    /// and no drain waits for a dirty key.
    #[inline]
    pub(super) fn is_over(&self) -> bool {
        self.closed && self.has_handed_out_all() && !self.delays.is_due(Instant::NEVER)
    }

    #[inline]
    fn has_handed_out_all(&self) -> bool {
        self.lists.ready_len() == 0 && !(self.dirty > 0 && self.watched.has(Watched::DRAINING))
    }
}
