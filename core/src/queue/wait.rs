//! Waiting for a state of the queue, or for room. Owns the states for which calls wait, and reports
//! which have been reached; never wakes a call.

use core::mem;

use crate::options::AddOptions;
use crate::outcome::{Scheduled, WaitError, Wake};
use crate::sleepers::Getter;

use super::*;

/// A set of states for which calls wait, and of changes since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Watched(u8);

impl Watched {
    pub(super) const NONE: Self = Self(0);
    /// Calls wait for the drain. Set while the queue shuts down and has not drained.
    pub(super) const DRAIN: Self = Self(1);
    /// Calls wait until no key is ready or active. Calls that also wait for delayed keys look then.
    const REST: Self = Self(1 << 1);
    /// Calls wait for the end of the work of some key.
    const WORK: Self = Self(1 << 2);
    /// Calls wait for room for a new key. If calls wait for room and this is not set, one of them
    /// was woken, and passes the wake on.
    pub(super) const ROOM: Self = Self(1 << 3);
    /// All states above.
    const STATES: Self = Self(0b1111);
    /// A drain was begun, and no shutdown has interrupted it.
    pub(super) const DRAINING: Self = Self(1 << 4);
    /// A getter sleeps. Part of this set, so that one test shows whether a session may need a wake.
    pub(super) const ASLEEP: Self = Self(1 << 5);
    /// Every call has to be woken, whatever it waits for.
    const EVERY: Self = Self(1 << 6);
    /// A state for which calls may wait has changed.
    const CHANGED: Self = Self(1 << 7);

    #[inline]
    pub(super) fn note_change(&mut self) {
        if self.has(Self::STATES) {
            self.add(Self::CHANGED);
        }
    }

    #[inline]
    pub(super) const fn has_changed(self) -> bool {
        self.has(Self::CHANGED)
    }

    #[inline]
    pub(super) fn add(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// Whether a session may have to wake a call.
    #[inline]
    pub(super) const fn may_owe(self) -> bool {
        self.0 & (Self::ASLEEP.0 | Self::CHANGED.0) != 0
    }

    /// Records whether a getter sleeps.
    pub(super) fn set_asleep(&mut self, asleep: bool) {
        self.remove(Self::ASLEEP);
        if asleep {
            self.add(Self::ASLEEP);
        }
    }

    /// Forgets all states, because all calls look again.
    fn clear(&mut self) {
        self.0 &= Self::ASLEEP.0 | Self::DRAINING.0;
    }

    /// Records that every call has to be woken.
    pub(super) fn owe_all(&mut self) {
        self.add(Self::EVERY);
        self.add(Self::CHANGED);
    }

    pub(super) fn remove(&mut self, other: Self) {
        self.0 &= !other.0;
    }

    #[inline]
    pub(super) const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// The work of a key that is waited for: see [`Session::begin_flush`](crate::Session::begin_flush).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[must_use = "pass the flush to `poll_flush`"]
pub struct Flush {
    awaits: Awaits,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
enum Awaits {
    Nothing,
    /// The end of this run.
    Run(u32),
    /// The end of the run after this one, or after the number that was given to the ready key.
    RunAfter(u32),
}

impl<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage, M: Metrics>
    Session<'_, K, P, L, S, M>
{
    /// Returns whether no key is ready or active. Delayed keys do not count until they are due, and
    /// suspended keys do not count. O(log n).
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue::limiter::NoLimit;
    /// use requeue::priority::Plain;
    /// use requeue::storage::Fixed;
    /// use requeue::{Instant, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let minute = Duration::from_secs(60);
    /// let mut queue: Queue<&str, Plain, NoLimit, Fixed<4>> = Queue::new(NoLimit);
    /// let _ = queue.at(now).add_after("lease-3", minute);
    /// assert!(queue.at(now).is_idle());
    /// assert!(!queue.at(now + minute).is_idle());
    /// ```
    pub fn is_idle(&mut self) -> bool {
        let _ = self.queue.make_due_ready(SlotId::NONE, self.now);
        self.queue.has_no_work()
    }

    /// Checks whether the queue is [idle](Self::is_idle), as a call that waits for it does.
    /// O(log n).
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::binding::{Next, Wake};
    /// use requeue::limiter::NoLimit;
    /// use requeue::priority::Plain;
    /// use requeue::storage::Fixed;
    /// use requeue::{Instant, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<&str, Plain, NoLimit, Fixed<4>> = Queue::new(NoLimit);
    /// let _ = queue.at(now).add("node-7");
    /// assert_eq!(queue.at(now).poll_idle(), Next::Wait { until: None });
    ///
    /// let work = queue.at(now).try_get().unwrap();
    /// queue.at(now).release(work.ticket);
    /// assert_eq!(queue.at(now).close(), Wake::WATCHERS);
    /// assert_eq!(queue.at(now).poll_idle(), Next::Work(()));
    /// ```
    pub fn poll_idle(&mut self) -> Next<()> {
        let idle = self.is_idle();
        self.queue.unless_watched(idle, Watched::REST)
    }

    /// Checks whether the queue is [settled](crate::Queue::is_settled), as a call that waits for it
    /// does. O(1). [`poll_idle`](Self::poll_idle) has an example.
    pub fn poll_settled(&mut self) -> Next<()> {
        let settled = self.queue.is_settled();
        self.queue.unless_watched(settled, Watched::REST)
    }

    /// Begins to wait for the work of a key that is known now: [`poll_flush`](Self::poll_flush)
    /// says when it is done. O(log n).
    ///
    /// That is the present run if the key is active, and one more if the key is ready or dirty. A
    /// delay that has not passed is not waited for, nor work that a hold delays.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::binding::{Next, Wake};
    /// use requeue::limiter::NoLimit;
    /// use requeue::priority::Plain;
    /// use requeue::storage::Fixed;
    /// use requeue::{Instant, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<&str, Plain, NoLimit, Fixed<4>> = Queue::new(NoLimit);
    /// let _ = queue.at(now).add("node-7");
    /// let mut flush = queue.at(now).begin_flush(&"node-7");
    ///
    /// let work = queue.at(now).try_get().unwrap();
    /// assert_eq!(queue.at(now).poll_flush(&"node-7", &mut flush), Next::Wait { until: None });
    /// queue.at(now).release(work.ticket);
    /// assert_eq!(queue.at(now).close(), Wake::WATCHERS);
    /// assert_eq!(queue.at(now).poll_flush(&"node-7", &mut flush), Next::Work(()));
    /// ```
    pub fn begin_flush<B>(&mut self, key: &B) -> Flush
    where
        K: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        let Self { queue, now, .. } = self;
        let found = queue.locate(key, *now).found();
        let awaits = found.map_or(Awaits::Nothing, |id| queue.known_work(id));
        Flush { awaits }
    }

    /// Checks whether the work that a [flush](Self::begin_flush) waits for is done or cancelled, as
    /// a call that waits for it does. O(1).
    ///
    /// If the key runs once more, or is cancelled and added, before this looks again, that work is
    /// waited for too.
    pub fn poll_flush<B>(&mut self, key: &B, flush: &mut Flush) -> Next<()>
    where
        K: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        let queue = &mut *self.queue;
        let found = queue.slots.locate(key).found();
        let still_awaited = |id| queue.still_awaited(id, flush.awaits);
        flush.awaits = found.map_or(Awaits::Nothing, still_awaited);
        let done = flush.awaits == Awaits::Nothing;
        queue.unless_watched(done, Watched::WORK)
    }

    /// Adds a key as [`add_with`](Self::add_with) does, or waits for room. Costs as
    /// [`add_with`](Self::add_with).
    ///
    /// If the result is [`Next::Wait`], the caller sleeps until it is woken. Then it calls this
    /// again with the same [`Getter`], or calls [`leave`](Self::leave). If it is [`Next::Work`],
    /// [`Adding::into_result`] says what has become of the key.
    ///
    /// Each place that becomes free wakes one call, the first that has not been woken. A key that
    /// is added otherwise meanwhile takes the place before it: the call waits again, and stays the
    /// first. A key that the queue has needs no room.
    ///
    /// A fixed queue may have room for keys of its [groups](crate::priority::Groups), but for no
    /// other group. Then every change that may bring room wakes every call.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::binding::{Adding, Getter, Next, Wake};
    /// use requeue::limiter::NoLimit;
    /// use requeue::priority::Plain;
    /// use requeue::storage::Fixed;
    /// use requeue::{AddOptions, Instant, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<&str, Plain, NoLimit, Fixed<1>> = Queue::new(NoLimit);
    /// let _ = queue.at(now).add("node-7");
    ///
    /// let (mut adding, mut getter) = (Adding::new("node-8", AddOptions::new()), Getter::new());
    /// let look = queue.at(now).poll_add(&mut adding, &mut getter);
    /// assert_eq!(look, Next::Wait { until: None });
    ///
    /// let work = queue.at(now).try_get().unwrap();
    /// queue.at(now).release(work.ticket);
    /// assert_eq!(queue.at(now).close(), Wake::ROOM);
    /// assert_eq!(queue.at(now).poll_add(&mut adding, &mut getter), Next::Work(()));
    /// assert!(adding.into_result(Ok(())).is_ok());
    /// assert!(queue.contains(&"node-8"));
    /// ```
    pub fn poll_add(&mut self, adding: &mut Adding<K>, getter: &mut Getter) -> Next<()> {
        if let Err(Rejected::Full(key)) = mem::replace(&mut adding.result, Ok(NOT_TRIED)) {
            adding.result = self.add_with(key, adding.options);
            adding.spare = self.take_spare();
        }
        if matches!(adding.result, Err(Rejected::Full(_))) {
            self.queue.want_room(getter);
            return Next::Wait { until: None };
        }
        self.queue.pass_room_on(getter);
        Next::Work(())
    }
}

impl<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage, M: Metrics> Queue<K, P, L, S, M> {
    /// Returns whether no key is ready, active, delayed or suspended, so that no key runs again
    /// unless you add it. O(1).
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue::limiter::NoLimit;
    /// use requeue::priority::Plain;
    /// use requeue::storage::Fixed;
    /// use requeue::{Instant, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<&str, Plain, NoLimit, Fixed<4>> = Queue::new(NoLimit);
    /// let _ = queue.at(now).add_after("lease-3", Duration::from_secs(60));
    /// assert!(queue.at(now).is_idle() && !queue.is_settled());
    /// let _ = queue.at(now).cancel(&"lease-3");
    /// assert!(queue.is_settled());
    /// ```
    pub fn is_settled(&self) -> bool {
        self.has_no_work() && self.delays.is_empty()
    }

    /// The runs of a key for which a call still has to wait.
    fn known_work(&mut self, id: SlotId) -> Awaits {
        let Some(slot) = self.slots.slot_mut(id) else {
            return Awaits::Nothing;
        };
        if slot.phase.is_active() {
            let run = slot.run;
            return if slot.phase.is_queued() {
                Awaits::RunAfter(run)
            } else {
                Awaits::Run(run)
            };
        }
        if !slot.phase.is_queued() {
            return Awaits::Nothing;
        }
        if slot.run == 0 {
            // Distinguishes this add from a later add of the same key. No run has this number.
            self.runs = self.runs.wrapping_add(1);
            slot.run = self.runs;
        }
        Awaits::RunAfter(slot.run)
    }

    fn still_awaited(&self, id: SlotId, awaits: Awaits) -> Awaits {
        let Some(slot) = self.slots.slot(id) else {
            return Awaits::Nothing;
        };
        let (active, queued) = (slot.phase.is_active(), slot.phase.is_queued());
        match awaits {
            Awaits::Run(run) if active && slot.run == run => awaits,
            Awaits::RunAfter(run) if queued && slot.run == run => awaits,
            // The run has begun, or never will because the key was cancelled while it was dirty.
            Awaits::RunAfter(_) if active => Awaits::Run(slot.run),
            _ => Awaits::Nothing,
        }
    }

    pub(super) fn has_no_work(&self) -> bool {
        self.active == 0 && self.lists.ready_len() == 0
    }

    fn unless_watched(&mut self, done: bool, state: Watched) -> Next<()> {
        if done {
            return Next::Work(());
        }
        self.watched.add(state);
        Next::Wait { until: None }
    }

    /// The wake after a change, for calls other than getters.
    #[cold]
    #[inline(never)]
    pub(super) fn wake_watchers(&mut self) -> Wake {
        self.watched.remove(Watched::CHANGED);
        let rests = self.has_no_work();
        if self.watched.has(Watched::EVERY) || (rests && self.watched.has(Watched::DRAIN)) {
            // Every call looks again and sets its bit. A call that waits for a drain sets none.
            let drains = !rests && self.watched.has(Watched::DRAIN);
            self.watched.clear();
            if drains {
                self.watched.add(Watched::DRAIN);
            }
            self.sleepers.all_woken();
            return Wake::ALL;
        }
        let mut wake = Wake::NONE;
        if self.watched.has(Watched::WORK) || (rests && self.watched.has(Watched::REST)) {
            self.watched.remove(Watched::WORK);
            self.watched.remove(Watched::REST);
            wake = Wake::WATCHERS;
        }
        if self.watched.has(Watched::ROOM) && self.has_room() {
            self.watched.remove(Watched::ROOM);
            if !self.lists.has_seat() {
                // Whether there is room also depends on the group of a key.
                self.sleepers.all_woken();
                return Wake::ALL;
            }
            if S::Lists::<P>::FEW_GROUPS {
                self.sleepers.note_room_wake();
            }
            wake = wake | Wake::ROOM;
        }
        wake
    }

    /// Whether there is room for a new key of an existing group.
    pub(super) fn has_room(&self) -> bool {
        self.slots.vacancy().is_some() || self.lists.records_len() > 0
    }

    /// Checks W3. If a session was not closed, the next closed one reports its changes.
    pub(super) fn has_reported_what_came(&self) -> bool {
        let drained = self.watched.has(Watched::DRAIN) && self.is_drained();
        let settled = self.watched.has(Watched::REST) && self.is_settled();
        let room = self.watched.has(Watched::ROOM) && self.has_room() && self.lists.has_seat();
        let noted = self.watched.has(Watched::ASLEEP) == (self.sleepers.asleep() > 0);
        noted && (self.watched.has_changed() || (!drained && !settled && !room))
    }

    fn want_room(&mut self, getter: &mut Getter) {
        self.watched.add(Watched::ROOM);
        if S::Lists::<P>::FEW_GROUPS && getter.had_wanted_room() && self.sleepers.took_room_wake() {
            // It may have been woken for room that only a key of another group can use.
            self.note_change();
        }
        getter.want_room();
    }

    /// If this call has waited for room, another call is woken instead once there is room.
    pub(super) fn pass_room_on(&mut self, getter: &mut Getter) {
        if getter.had_wanted_room() {
            self.watched.add(Watched::ROOM);
            self.note_change();
        }
    }
}

/// A key that is added once there is room: see [`Session::poll_add`](crate::Session::poll_add).
#[derive(Debug)]
pub struct Adding<K> {
    options: AddOptions,
    /// [`Rejected::Full`] until the key is added, or refused for another reason.
    result: Result<Scheduled, Rejected<K>>,
    /// The duplicate of a key that the queue already has, to be dropped after the lock.
    spare: Option<K>,
}

impl<K> Adding<K> {
    /// Creates an add that has not been tried. O(1).
    pub const fn new(key: K, options: AddOptions) -> Self {
        Self {
            options,
            result: Err(Rejected::Full(key)),
            spare: None,
        }
    }

    /// Returns the result, after a wait that ended so. O(1).
    ///
    /// # Errors
    ///
    /// [`Rejected`] returns the key: if there was no room, with the reason that ended the wait.
    pub fn into_result(self, waited: Result<(), WaitError>) -> Result<Scheduled, Rejected<K>> {
        match (self.result, waited) {
            (Err(Rejected::Full(key)), Err(WaitError::TimedOut)) => Err(Rejected::TimedOut(key)),
            (Err(Rejected::Full(key)), Err(WaitError::TooManyWaiters)) => {
                Err(Rejected::TooManyWaiters(key))
            }
            (result, _) => result,
        }
    }

    /// Returns the deadline of a [`Wait`](crate::binding::Wait) that adds the key. O(1).
    ///
    /// That is `deadline`, or [`Instant::NEVER`] if there is none and the options need the time,
    /// which a call with a deadline reads.
    pub fn deadline(&self, deadline: Option<Instant>) -> Option<Instant> {
        let reads_clock = self.options.needs_time().then_some(Instant::NEVER);
        deadline.or(reads_clock)
    }
}

/// The result while a key is tried. It stays only if the key panics.
const NOT_TRIED: Scheduled = Scheduled {
    delay: Duration::ZERO,
    added: Added::Coalesced,
};
