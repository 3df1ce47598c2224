//! Keys that wait for an event: suspends and resumes them, and keeps their adds and delays
//! meanwhile. And keys that poll because there is no event: counts their pauses. All of this is
//! dead code in a queue that cannot suspend keys.
//!
//! The heap has one deadline for each key. While a key is suspended, that is the end of its
//! suspension, and the key's own deadline is kept beside it (Q9). So ask this file for the deadline
//! of a key.

use crate::policy::{KeepSuspensions, Suspension};

use super::*;

/// A [`Storage`] with room for the suspensions of keys: the bound of a function that takes any such
/// queue. `Growable` has it, and
/// [`Fixed`](crate::storage::Fixed) with
/// [`WithSuspension`](crate::priority::WithSuspension).
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use requeue::binding::Suspends;
/// use requeue::limiter::NoLimit;
/// use requeue::priority::{Priorities, WithSuspension};
/// use requeue::storage::Fixed;
/// use requeue::{Instant, Queue};
///
/// fn written<P: Priorities, S: Suspends<P>>(queue: &mut Queue<u16, P, NoLimit, S>, key: u16) {
///     queue.at(Instant::EPOCH).suspend(&key, Duration::from_secs(5));
/// }
///
/// let mut queue: Queue<u16, WithSuspension, NoLimit, Fixed<4>> = Queue::new(NoLimit);
/// let _ = queue.at(Instant::EPOCH).add(17);
/// written(&mut queue, 17);
/// assert!(queue.at(Instant::EPOCH).try_get().is_none());
/// ```
#[diagnostic::on_unimplemented(
    message = "this queue cannot suspend keys",
    label = "this queue has no room for the suspensions of its keys",
    note = "put `WithSuspension` into the queue's type, as in \
            `Queue<u16, WithSuspension, L, Fixed<8>>`"
)]
pub trait Suspends<P: Priorities>: Governs<P> + Storage<Policy<P>: KeepSuspensions> {}

#[diagnostic::do_not_recommend]
impl<P: Priorities, S: Storage<Policy<P>: KeepSuspensions>> Suspends<P> for S {}

impl<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage, M: Metrics>
    Session<'_, K, P, L, S, M>
{
    /// Suspends a key until [`resume`](Self::resume), and for `timeout` at most, from now. Returns
    /// whether the key is suspended now, or will be when its run ends. O(log n).
    ///
    /// Use this if a key waits for an event: its own write must arrive in a cache, or another object
    /// must appear. **Call it before you cause the event**, because it cancels a `resume` that came
    /// earlier in the same run. If a run learns only at its end that it must wait, return
    /// [`Action::Suspend`](crate::Action::Suspend), which obeys an earlier `resume`. A suspended key
    /// is not handed out and takes no worker:
    ///
    /// | what happens to a suspended key | what becomes of it |
    /// |---|---|
    /// | it is added | it runs when the suspension ends, at the highest priority that was asked for; more adds coalesce |
    /// | it is added for a later time | it also runs at that time, or when the suspension ends, if that is later |
    /// | `resume` | it runs if it was added, or was ready before, or if `Action::Suspend` asked for it. Otherwise it is idle |
    /// | the timeout ends | it runs in any case, because an event may have been missed. Its level is the lowest, unless an add asked for a higher one. [The run is told](crate::RunContext) |
    /// | `suspend` | the new timeout counts, even a shorter one |
    /// | [`cancel`](Self::cancel) | its work is cancelled, and it is no longer suspended |
    /// | [`forget`](Self::forget) | it stays suspended |
    /// | [`expedite`](Self::expedite) | its delay ends, as if it was added now, but not its suspension |
    /// | shutdown | a leftover, also if it was added, with the time left until the timeout. If the timeout had passed by then, it runs |
    ///
    /// A key that is ready or delayed is suspended now. An active key is suspended when its run
    /// ends, with any action. The action still counts: a `Retry` counts a failure, and sets its
    /// delay. If the timeout has passed by then, the next operation ends the suspension. If a
    /// [hold](crate::Policy) ends later than the suspension, the key waits for the hold, also after
    /// `resume`.
    ///
    /// Returns `false` and changes nothing if the queue does not have the key or has only its
    /// failures, and after shutdown. With a timeout of [`Duration::MAX`] the key waits for `resume`
    /// alone. A timeout of zero has ended before the next operation.
    ///
    /// Suspended keys take up room, and count neither as ready nor as delayed, nor among the active
    /// keys of their groups. The queue is not [settled](crate::Queue::is_settled) while a key is
    /// suspended. A [`Fixed`](crate::storage::Fixed) queue needs
    /// [`WithSuspension`](crate::priority::WithSuspension).
    ///
    /// Reads `now` even if [`needs_time`](crate::Queue::needs_time) is false.
    ///
    /// # Examples
    ///
    /// A controller writes an object, and its cache does not show the write yet:
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue::limiter::NoLimit;
    /// use requeue::priority::WithSuspension;
    /// use requeue::storage::Fixed;
    /// use requeue::{Action, Added, Instant, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<&str, WithSuspension, NoLimit, Fixed<4>> = Queue::new(NoLimit);
    /// let _ = queue.at(now).add("node-7");
    /// let work = queue.at(now).try_get().unwrap();
    /// assert!(queue.at(now).suspend(&"node-7", Duration::from_secs(5)));
    /// // Here it writes.
    /// queue.at(now).finish(work.ticket, Action::Success);
    ///
    /// // Another event asks for a run: it waits, so that it does not act on the old state.
    /// assert_eq!(queue.at(now).add("node-7"), Ok(Added::Delayed));
    /// assert!(queue.at(now).try_get().is_none());
    ///
    /// // The write arrives.
    /// assert!(queue.at(now).resume(&"node-7"));
    /// assert_eq!(queue.at(now).try_get().unwrap().key, "node-7");
    /// ```
    pub fn suspend<B>(&mut self, key: &B, timeout: Duration) -> bool
    where
        K: Borrow<B>,
        B: Eq + Hash + ?Sized,
        S: Suspends<P>,
    {
        let Self { queue, now, .. } = self;
        if queue.closed {
            return false;
        }
        let found = queue.locate(key, *now).found();
        found.is_some_and(|id| queue.suspend(id, *now + timeout))
    }

    /// Ends the suspension of a key, or takes back the one that would begin when its run ends.
    /// Returns whether there was one. O(log n).
    ///
    /// The key becomes ready if it was added meanwhile, or was ready before, or if
    /// [`Action::Suspend`](crate::Action::Suspend) has asked for a run. If it was added for a later
    /// time, it is delayed until then.
    ///
    /// Call this for the event that the key waits for. If the key is active, the call is kept until
    /// its run ends, so that an event is not lost that is faster than the run: an `Action::Suspend`
    /// of that run makes the key ready. A [`suspend`](Self::suspend) after this counts. So
    /// a key whose every event resumes it never waits.
    ///
    /// Does nothing for any other key, and after shutdown.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue::limiter::NoLimit;
    /// use requeue::priority::WithSuspension;
    /// use requeue::storage::Fixed;
    /// use requeue::{Action, Finished, Instant, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<&str, WithSuspension, NoLimit, Fixed<4>> = Queue::new(NoLimit);
    /// let _ = queue.at(now).add("volume-4");
    /// let work = queue.at(now).try_get().unwrap();
    ///
    /// // The event is faster than the run that wants to wait for it.
    /// assert!(!queue.at(now).resume(&"volume-4"));
    /// let finished = queue.at(now).finish(work.ticket, Action::Suspend(Duration::MAX));
    /// assert_eq!(finished, Finished::Ready);
    /// ```
    pub fn resume<B>(&mut self, key: &B) -> bool
    where
        K: Borrow<B>,
        B: Eq + Hash + ?Sized,
        S: Suspends<P>,
    {
        let Self { queue, now, .. } = self;
        if queue.closed {
            return false;
        }
        let found = queue.locate(key, *now).found();
        found.is_some_and(|id| queue.resume(id, *now))
    }
}

impl<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage, M: Metrics> Queue<K, P, L, S, M> {
    /// Whether any key may be suspended now or after its run.
    #[inline]
    pub(super) fn suspends(&self) -> bool {
        S::Policy::<P>::SUSPENDS && self.gate.has(Gate::SUSPENDS)
    }

    /// The data of a key that is, will be or was suspended, or that polls.
    #[inline]
    pub(super) fn suspension(&self, id: SlotId) -> Suspension {
        if !self.suspends() {
            return Suspension::NONE;
        }
        self.kept_suspension(id)
    }

    // A separate function, like all that read this data, so that a queue without suspensions stays
    // small.
    #[cold]
    #[inline(never)]
    fn kept_suspension(&self, id: SlotId) -> Suspension {
        let slot = self.slots.slot(id);
        slot.map_or(Suspension::NONE, |slot| {
            self.policy.suspension(&slot.meta.kept, id)
        })
    }

    /// Changes the data of a key, once there was a suspension.
    #[cold]
    #[inline(never)]
    fn change_suspension(&mut self, id: SlotId, change: impl FnOnce(&mut Suspension)) {
        self.gate.set(Gate::SUSPENDS, true);
        let Some(slot) = self.slots.slot_mut(id) else {
            return;
        };
        let Some(suspension) = self.policy.suspension_mut(&mut slot.meta.kept, id) else {
            return;
        };
        let was = suspension.has(Suspension::SUSPENDED);
        change(suspension);
        let is = suspension.has(Suspension::SUSPENDED);
        if let Some(suspended) = self.policy.suspended_mut() {
            *suspended = (*suspended + usize::from(is)).saturating_sub(usize::from(was));
        }
    }

    /// Ends the present and the planned suspension of a key, because its work was cancelled.
    #[inline]
    pub(super) fn cancel_suspension(&mut self, id: SlotId) {
        if self.suspension(id).has(Suspension::PENDING) {
            self.change_suspension(id, |suspension| {
                suspension.set(Suspension::PENDING, false);
            });
        } else if !self.is_active(id) {
            self.clear_suspension(id);
        }
    }

    /// Forgets the suspension of a key, because its run has ended or its work was cancelled.
    #[inline]
    pub(super) fn clear_suspension(&mut self, id: SlotId) {
        if self.suspension(id) != Suspension::NONE {
            self.change_suspension(id, |suspension| *suspension = Suspension::NONE);
        }
    }

    #[inline]
    pub(super) fn is_suspended(&self, id: SlotId) -> bool {
        self.suspends() && self.kept_suspension(id).has(Suspension::SUSPENDED)
    }

    /// The number of pauses of `Action::poll` in a row.
    #[inline]
    pub(super) fn pauses(&self, id: SlotId) -> u8 {
        self.suspension(id).pauses
    }

    /// Allows polling from now on, if the queue can. Returns the number of this key's pauses.
    #[inline]
    pub(super) fn begin_polling(&mut self, id: SlotId) -> u8 {
        if S::Policy::<P>::SUSPENDS {
            self.gate.set(Gate::SUSPENDS, true);
        }
        self.pauses(id)
    }

    /// Records that a key whose run has ended pauses until `due`, if that is its deadline. A hold
    /// may have moved the deadline.
    pub(super) fn begin_pause(&mut self, id: SlotId, pauses: u8, due: Instant) {
        if !S::Policy::<P>::SUSPENDS || self.closed || self.is_suspended(id) {
            return;
        }
        if self.delays.due(id) == Some(due.max(self.held_until(id))) {
            self.set_pauses(id, pauses.saturating_add(1));
        }
    }

    /// Records that an idle key no longer waits for the end of a pause, because it was added or has
    /// another deadline.
    #[inline]
    pub(super) fn end_pause(&mut self, id: SlotId) {
        if self.pauses(id) > 0 && self.is_idle_slot(id) {
            self.set_pauses(id, 0);
        }
    }

    pub(super) fn set_pauses(&mut self, id: SlotId, pauses: u8) {
        self.change_suspension(id, |suspension| suspension.pauses = pauses);
    }

    pub(super) fn suspended_until(&self, id: SlotId) -> Option<Instant> {
        self.delays.due(id).filter(|_| self.is_suspended(id))
    }

    /// The remaining time of a key's suspension, without slack.
    #[cfg_attr(feature = "alloc", inline(always))]
    pub(super) fn suspension_left(&self, id: SlotId, now: Instant) -> Option<Duration> {
        let until = self.suspended_until(id)?;
        Some(if until.is_never() {
            Duration::MAX
        } else {
            self.delays.opens(id, until).saturating_since(now)
        })
    }

    /// Whether the last suspension of a key ended by its timeout.
    pub(super) fn has_timed_out(&self, id: SlotId) -> bool {
        self.suspension(id).has(Suspension::TIMED_OUT)
    }

    /// The planned suspension, which begins at the end of a key's run.
    #[inline]
    pub(super) fn planned_suspension(&self, id: SlotId) -> Option<Suspension> {
        Some(self.suspension(id)).filter(|suspension| suspension.has(Suspension::PENDING))
    }

    /// Whether a key will be handed out without another add or deadline of its own.
    pub(super) fn runs_anyway(&self, id: SlotId) -> bool {
        self.is_queued(id) || self.suspension(id).has(Suspension::QUEUED)
    }

    /// The own deadline of a key, not the end of its suspension.
    #[inline]
    pub(super) fn deadline(&self, id: SlotId) -> Option<Instant> {
        if self.is_suspended(id) {
            let suspension = self.suspension(id);
            return suspension.has(Suspension::DELAYED).then_some(suspension.at);
        }
        self.delays.due(id)
    }

    /// Sets the deadline of a key, even to a later time.
    #[inline]
    pub(super) fn set_deadline(&mut self, id: SlotId, window: Window<P, S>) {
        if self.is_suspended(id) {
            self.set_suspended_deadline(id, window.due);
        } else {
            let _ = self.delays.move_to(id, window);
        }
    }

    fn set_suspended_deadline(&mut self, id: SlotId, due: Instant) {
        self.change_suspension(id, |suspension| {
            suspension.at = due;
            suspension.set(Suspension::BACKOFF, false);
            suspension.set(Suspension::DELAYED, true);
        });
    }

    /// Removes the deadline of a key.
    #[inline]
    pub(super) fn take_deadline(&mut self, id: SlotId) -> Option<Instant> {
        if !self.is_suspended(id) {
            return self.delays.remove(id);
        }
        let due = self.deadline(id);
        self.change_suspension(id, |suspension| {
            suspension.at = Instant::NEVER;
            suspension.set(Suspension::BACKOFF | Suspension::DELAYED, false);
        });
        due
    }

    /// Records that the limiter set the deadline of a key, if that is `due`.
    #[inline]
    pub(super) fn note_backoff(&mut self, id: SlotId, due: Instant) {
        if !self.is_suspended(id) {
            self.delays.note_backoff(id, due);
        } else if self.deadline(id) == Some(due) {
            self.change_suspension(id, |suspension| {
                suspension.set(Suspension::BACKOFF, true);
            });
        }
    }

    /// The level of the run after the next deadline of a key: its own deadline, or the end of its
    /// suspension, which may end earlier than at its timeout, `by` a time in its window.
    pub(super) fn level_when_due(&self, id: SlotId, by: Instant) -> u8 {
        let levels = self.levels(id);
        let suspension = self.suspension(id);
        if !suspension.has(Suspension::SUSPENDED) {
            return levels.delayed;
        }
        let until = self.delays.due(id).map_or(by, |until| until.min(by));
        let queued = suspension.has(Suspension::QUEUED);
        let delayed = suspension.has(Suspension::DELAYED) && suspension.at <= until;
        let of = |is: bool, level| if is { level } else { LOWEST };
        of(queued, levels.queued).max(of(delayed, levels.delayed))
    }

    /// The deadline of a suspended key after its timeout, and whether it is then ready too. It is
    /// not ready if it is held.
    pub(super) fn after_end(&self, id: SlotId, until: Instant) -> Option<(Instant, bool)> {
        let own = self.deadline(id).filter(|due| due.is_after(until));
        let held = self.held_until(id);
        if held.is_after(until) {
            return Some((own.map_or(held, |own| own.min(held)), false));
        }
        own.map(|own| (own, true))
    }

    /// Whether a deadline that is set now has already passed.
    pub(super) fn is_past(&self, due: Instant, now: Instant) -> bool {
        if self.closed {
            return due < self.delays.stopped_at();
        }
        !due.is_after(now)
    }

    /// Adds a suspended key, which runs when the suspension ends.
    pub(super) fn add_suspended(&mut self, id: SlotId, level: u8) -> Added {
        if !self.suspension(id).has(Suspension::QUEUED) {
            self.queue_suspended(id, level);
            return Added::Delayed;
        }
        self.metrics.coalesced();
        if level <= self.levels(id).queued {
            return Added::Coalesced;
        }
        self.queue_suspended(id, level);
        Added::Raised
    }

    /// Applies a suspended key's own deadline, which is not in the heap and has passed: it counts
    /// as an add.
    #[inline]
    pub(super) fn let_own_deadline_pass(&mut self, id: SlotId, now: Instant) {
        if self.is_suspended(id) && !self.closed {
            self.queue_if_past(id, now);
        }
    }

    #[cold]
    #[inline(never)]
    fn queue_if_past(&mut self, id: SlotId, now: Instant) {
        let due = self.deadline(id).filter(|due| !due.is_never());
        if due.is_some_and(|due| due <= now) {
            let levels = self.levels(id);
            let queued = self.suspension(id).has(Suspension::QUEUED);
            let _ = self.take_deadline(id);
            let before = if queued { levels.queued } else { LOWEST };
            self.queue_suspended(id, before.max(levels.delayed));
        }
    }

    fn queue_suspended(&mut self, id: SlotId, level: u8) {
        self.change_suspension(id, |suspension| suspension.set(Suspension::QUEUED, true));
        if let Some(slot) = self.slots.slot_mut(id) {
            slot.meta.levels.set(|levels| levels.queued = level);
        }
    }

    /// Delays a suspended key until `due`, unless it has an earlier deadline.
    pub(super) fn delay_suspended(&mut self, id: SlotId, due: Instant, level: u8) -> Added {
        match self.deadline(id) {
            None => {
                self.set_suspended_deadline(id, due);
                self.set_delayed(id, level);
                Added::Delayed
            }
            Some(pending) if due < pending => {
                self.set_suspended_deadline(id, due);
                let _ = self.raise_delayed(id, level);
                Added::Sooner
            }
            Some(_) => {
                self.metrics.coalesced();
                self.raise_delayed(id, level)
            }
        }
    }

    /// Moves the deadline of a suspended key to the end of a hold if that is later. Returns whether
    /// it did.
    pub(super) fn put_off_suspended(&mut self, id: SlotId, held: Instant) -> bool {
        let is_before = self.deadline(id).is_some_and(|due| due < held);
        if is_before {
            self.move_deadline(id, Window::<P, S>::exact(held));
        }
        is_before
    }

    fn suspend(&mut self, id: SlotId, until: Instant) -> bool {
        if self.is_suspended(id) {
            let _ = self.delays.move_to(id, Window::<P, S>::exact(until));
            return true;
        }
        match self.slots.slot(id).map(|slot| slot.phase) {
            Some(phase) if phase.is_active() => {
                self.change_suspension(id, |suspension| {
                    let pauses = suspension.pauses;
                    *suspension = Suspension::new(Suspension::PENDING, until);
                    suspension.pauses = pauses;
                });
                return true;
            }
            Some(Phase::Ready) => {
                let _ = self.leave_ready(id);
                self.begin_suspension(id, Window::<P, S>::exact(until), Suspension::QUEUED);
                return true;
            }
            _ => {}
        }
        let is_delayed = self.delays.has(id);
        if is_delayed {
            self.begin_suspension(id, Window::<P, S>::exact(until), 0);
        }
        is_delayed
    }

    /// Plans a suspension for the end of the run. Returns `false` if the key was resumed since the
    /// run began, or cannot be suspended.
    pub(super) fn plan_suspension(&mut self, id: SlotId, window: Window<P, S>) -> bool {
        if !S::Policy::<P>::SUSPENDS || self.suspension(id).has(Suspension::RESUMED) {
            return false;
        }
        let flags = Suspension::PENDING | Suspension::ASKS;
        let until = window.due;
        self.change_suspension(id, |suspension| *suspension = Suspension::new(flags, until));
        // The run ends now. Its key's own deadline will be put aside, without slack.
        self.delays.set_slack(id, window.slack);
        true
    }

    /// Suspends a key whose run has ended, as `plan` says.
    #[cold]
    #[inline(never)]
    pub(super) fn suspend_after_run(
        &mut self,
        id: SlotId,
        plan: Suspension,
        was_dirty: bool,
        now: Instant,
    ) {
        let (mut flags, mut level) = (0, LOWEST);
        if was_dirty {
            flags = Suspension::QUEUED;
            level = self.levels(id).queued;
            self.dirty -= 1;
            self.lists.note_clean(level);
            self.report_depth(level);
        }
        if plan.has(Suspension::ASKS) {
            flags = Suspension::QUEUED;
            level = level.max(self.levels(id).running);
        }
        if let Some(slot) = self.slots.slot_mut(id) {
            slot.meta.levels.set(|levels| levels.queued = level);
        }
        let mut window = Window::<P, S>::exact(plan.at);
        if self.delays.has_slack() && plan.has(Suspension::ASKS) {
            window.slack = self.delays.slack(id);
        }
        if self.closed {
            // What is set after shutdown is beyond it, wherever the clock goes.
            window = window.not_before(self.delays.stopped_at());
        }
        self.begin_suspension(id, window, flags);
        if was_dirty && self.closed {
            // This key does not become ready, so another one may have to (Q6).
            let _ = self.make_due_ready(SlotId::NONE, now);
        }
    }

    /// Suspends a key that is neither ready nor active.
    fn begin_suspension(&mut self, id: SlotId, window: Window<P, S>, queued: u8) {
        let mut suspension = Suspension::new(Suspension::SUSPENDED | queued, Instant::NEVER);
        if self.delays.has(id) {
            suspension.set(Suspension::DELAYED, true);
            suspension.set(Suspension::BACKOFF, self.delays.is_backoff(id));
            suspension.at = self.delays.remove(id).unwrap_or(Instant::NEVER);
        }
        let _ = self.delays.schedule(id, window);
        self.change_suspension(id, |kept| *kept = suspension);
        // The run may have begun a hold.
        let _ = self.put_off_suspended(id, self.held_until(id));
        self.note_change();
        self.metrics.delayed(self.delays.len());
    }

    fn resume(&mut self, id: SlotId, now: Instant) -> bool {
        if self.is_active(id) {
            let pending = self.suspension(id).has(Suspension::PENDING);
            self.change_suspension(id, |suspension| {
                suspension.set(Suspension::PENDING, false);
                suspension.set(Suspension::RESUMED, true);
            });
            return pending;
        }
        let is_suspended = self.is_suspended(id);
        if is_suspended {
            let _ = self.delays.remove(id);
            self.end_suspension(id, now, false);
        }
        is_suspended
    }

    /// Ends the suspension of a key, whose deadline has left the heap. The key's `Drop` may run
    /// here, last.
    #[cold]
    #[inline(never)]
    pub(super) fn end_suspension(&mut self, id: SlotId, at: Instant, timed_out: bool) {
        let suspension = self.suspension(id);
        let levels = self.levels(id);
        let queued = suspension.has(Suspension::QUEUED);
        let mut level = queued.then_some(levels.queued);
        if timed_out {
            level = level.or(Some(LOWEST));
        }
        let flags = if timed_out { Suspension::TIMED_OUT } else { 0 };
        let after = Suspension::new(flags, Instant::NEVER);
        self.change_suspension(id, |suspension| *suspension = after);
        if suspension.has(Suspension::DELAYED) {
            if suspension.at.is_after(at) {
                let own = Window::<P, S>::exact(suspension.at);
                let _ = self.delays.schedule(id, own);
                if suspension.has(Suspension::BACKOFF) {
                    self.delays.note_backoff(id, suspension.at);
                }
            } else {
                level = level.max(Some(levels.delayed));
            }
        }
        self.note_change();
        if let Some(level) = level {
            let _ = self.mark(id, at, level);
        }
        self.metrics.delayed(self.delays.len());
        if level.is_none() {
            self.release_if_idle(id);
        }
    }
}
