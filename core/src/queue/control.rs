//! Cancelling work, and pausing all keys or the keys of a group. Owns the effects of a cancel;
//! never adds a key or ends a run.

use crate::group::Grouped;
use crate::levels::Naming as _;
use crate::lists::grouped::{GroupLimits, GroupState};

use super::*;

impl<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage, M: Metrics>
    Session<'_, K, P, L, S, M>
{
    /// Cancels the work of a key: it is no longer ready, dirty, delayed or suspended. O(log n).
    ///
    /// Returns the state that the key had. Returns `None` and changes nothing if the queue does not
    /// [have](crate::Queue::contains) the key. A run that has begun continues, and
    /// [can ask](crate::Queue::is_cancelled). The failures of the key stay on record, until
    /// [`forget`](Self::forget). A [`resume`](Self::resume) during the run still counts. No later run
    /// is told of a timeout that ended before. The other keys keep their order.
    ///
    /// This works after shutdown, too. A drain ends if it cancels the last key.
    ///
    /// # Examples
    ///
    /// A node is deleted before a worker gets to it:
    ///
    /// ```
    /// use requeue::limiter::NoLimit;
    /// use requeue::priority::Plain;
    /// use requeue::storage::Fixed;
    /// use requeue::{Instant, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<&str, Plain, NoLimit, Fixed<4>> = Queue::new(NoLimit);
    /// let _ = queue.at(now).add_many(["node-7", "node-8"], |_| {});
    ///
    /// assert!(queue.at(now).cancel(&"node-7").unwrap().ready);
    /// assert_eq!(queue.at(now).cancel(&"node-7"), None);
    /// assert_eq!(queue.at(now).try_get().unwrap().key, "node-8");
    /// ```
    pub fn cancel<B>(&mut self, key: &B) -> Option<KeyState>
    where
        K: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        let Self { queue, now, .. } = self;
        let id = queue.locate(key, *now).found()?;
        if queue.is_record_only(id) {
            return None;
        }
        let was = queue.state_of(id);
        if queue.closed && queue.suspends() {
            // The key's own deadline may have taken the turn of another key (Q6).
            let _ = queue.make_due_ready(SlotId::NONE, *now);
        }
        queue.cancel_slot(id);
        was
    }

    /// Cancels the deadline of a key. Returns it, or `None` if the key is not delayed. O(log n).
    ///
    /// A key that is also ready or active stays so. A deadline that has passed has added the key
    /// already. Use [`cancel`](Self::cancel) for such a key.
    ///
    /// # Examples
    ///
    /// A lease is given up, so that it need not be renewed:
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue::limiter::NoLimit;
    /// use requeue::priority::Plain;
    /// use requeue::storage::Fixed;
    /// use requeue::{Instant, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let due = now + Duration::from_secs(60);
    /// let mut queue: Queue<&str, Plain, NoLimit, Fixed<4>> = Queue::new(NoLimit);
    /// let _ = queue.at(now).add("lease-3");
    /// let _ = queue.at(now).add_at("lease-3", due);
    ///
    /// assert_eq!(queue.at(now).cancel_delay(&"lease-3"), Some(due));
    /// assert!(queue.at(now).state(&"lease-3").unwrap().ready, "it runs now, and only now");
    /// ```
    pub fn cancel_delay<B>(&mut self, key: &B) -> Option<Instant>
    where
        K: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        let Self { queue, now, .. } = self;
        let id = queue.locate(key, *now).found()?;
        if queue.is_suspended(id) {
            return queue.take_deadline(id);
        }
        let due = queue.drop_delay(id)?;
        queue.release_if_idle(id);
        Some(due)
    }

    /// Hands out no more keys until [`unpause`](Self::unpause): getters wait, even if keys are
    /// ready. O(1).
    ///
    /// Everything else continues: you can add, cancel and look at keys, delays end, and runs end as
    /// usual. A deadline needs no timer meanwhile. Shutdown ends a pause, because a drain has to
    /// end. After shutdown this does nothing.
    ///
    /// # Examples
    ///
    /// The database is away, so there is no use in starting runs:
    ///
    /// ```
    /// use requeue::limiter::NoLimit;
    /// use requeue::priority::Plain;
    /// use requeue::storage::Fixed;
    /// use requeue::{Instant, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<&str, Plain, NoLimit, Fixed<4>> = Queue::new(NoLimit);
    /// queue.at(now).pause();
    /// let _ = queue.at(now).add("node-7");
    /// assert!(queue.at(now).try_get().is_none());
    /// assert_eq!(queue.at(now).len(), 1, "nothing is lost");
    ///
    /// queue.at(now).unpause();
    /// assert_eq!(queue.at(now).try_get().unwrap().key, "node-7");
    /// ```
    pub fn pause(&mut self) {
        self.queue.gate.set(Gate::PAUSED, !self.queue.closed);
    }

    /// Hands keys out again after [`pause`](Self::pause). O(1).
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::binding::{Getter, Wake};
    /// use requeue::limiter::NoLimit;
    /// use requeue::priority::Plain;
    /// use requeue::storage::Fixed;
    /// use requeue::{Instant, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<&str, Plain, NoLimit, Fixed<4>> = Queue::new(NoLimit);
    /// let mut getter = Getter::new();
    /// let _ = queue.at(now).poll_get(&mut getter);
    /// queue.at(now).pause();
    /// let _ = queue.at(now).add("node-7");
    /// assert_eq!(queue.at(now).close(), Wake::NONE);
    /// queue.at(now).unpause();
    /// assert_eq!(queue.at(now).close(), Wake::ONE);
    /// # queue.at(now).leave(&mut getter);
    /// ```
    pub fn unpause(&mut self) {
        self.queue.gate.set(Gate::PAUSED, false);
    }
}

impl<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage, M: Metrics> Queue<K, P, L, S, M> {
    /// Returns whether the key of a run was cancelled since the run began. O(1).
    ///
    /// It stays so until the run ends, even if the key is added meanwhile: that makes another run,
    /// so this one may stop in any case. False if the run has ended.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::limiter::NoLimit;
    /// use requeue::priority::Plain;
    /// use requeue::storage::Fixed;
    /// use requeue::{Instant, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<&str, Plain, NoLimit, Fixed<4>> = Queue::new(NoLimit);
    /// let _ = queue.at(now).add("node-7");
    /// let work = queue.at(now).try_get().unwrap();
    /// assert!(!queue.is_cancelled(&work.ticket));
    /// let _ = queue.at(now).cancel(&"node-7");
    /// assert!(queue.is_cancelled(&work.ticket));
    /// ```
    pub fn is_cancelled(&self, ticket: &Ticket) -> bool {
        let slot = self.slots.slot(ticket.id);
        slot.is_some_and(|slot| slot.is_run_by(ticket) && slot.phase.is_cancelled())
    }

    /// Cancels the work of a key with a slot. The key's `Drop` may run here, last.
    pub(super) fn cancel_slot(&mut self, id: SlotId) {
        self.cancel_suspension(id);
        let slot = self.slots.slot(id);
        match slot.map(|slot| slot.phase) {
            Some(Phase::Ready) => return self.retire(id),
            Some(phase) if phase.is_active() => self.cancel_run(id),
            _ => {}
        }
        let _ = self.drop_delay(id);
        self.release_if_idle(id);
    }

    pub(super) fn drop_delay(&mut self, id: SlotId) -> Option<Instant> {
        let due = self.delays.remove(id)?;
        self.note_change();
        self.metrics.delayed(self.delays.len());
        Some(due)
    }

    /// Returns whether the queue is [paused](crate::Session::pause). O(1).
    pub const fn is_paused(&self) -> bool {
        self.gate.has(Gate::PAUSED)
    }

    /// Returns the figures of a group. `None` if it has no keys, no limits of its own and no pause;
    /// a group that has just lost the last of them may remain, with figures of zero, until its
    /// place is needed. A due key counts as ready, and a group with a new token as not blocked,
    /// once an operation has noticed. O(1) expected.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::limiter::NoLimit;
    /// use requeue::priority::Groups;
    /// use requeue::storage::Fixed;
    /// use requeue::{GroupLimits, Instant, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<(&str, u32), Groups<&str>, NoLimit, Fixed<8>> =
    ///     Queue::with_groups(NoLimit, (), |key| key.0);
    /// let _ = queue.at(now).add_many([("a", 1), ("a", 2)], |_| {});
    /// let _work = queue.at(now).try_get();
    /// let a = queue.group("a").unwrap();
    /// assert_eq!((a.ready, a.active, a.total), (1, 1, 2));
    /// assert_eq!(queue.group("b"), None);
    /// ```
    pub fn group<B, G>(&self, name: &B) -> Option<GroupState>
    where
        P: Grouped<Group = G>,
        G: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        self.lists.groups()?.state(name)
    }

    /// Returns the name of the group of a key, also if the queue does not have the key. Costs as
    /// the function that computes it.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::limiter::NoLimit;
    /// use requeue::priority::Groups;
    /// use requeue::storage::Fixed;
    /// use requeue::Queue;
    ///
    /// let queue: Queue<(&str, u32), Groups<&str>, NoLimit, Fixed<8>> =
    ///     Queue::with_groups(NoLimit, (), |key| key.0);
    /// assert_eq!(queue.group_of(&("a", 1)), "a");
    /// ```
    pub fn group_of<G>(&self, key: &K) -> G
    where
        P: Grouped<Group = G>,
    {
        self.naming.group_of(key)
    }

    /// Returns how many groups there are. O(1).
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::limiter::NoLimit;
    /// use requeue::priority::Groups;
    /// use requeue::storage::Fixed;
    /// use requeue::{GroupLimits, Instant, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<(&str, u32), Groups<&str>, NoLimit, Fixed<8>> =
    ///     Queue::with_groups(NoLimit, (), |key| key.0);
    /// let _ = queue.at(now).add_many([("a", 1), ("a", 2), ("b", 1)], |_| {});
    /// assert_eq!(queue.groups_len(), 2);
    /// ```
    pub fn groups_len(&self) -> usize
    where
        P: Grouped,
    {
        self.lists.groups().map_or(0, |groups| groups.len())
    }

    /// Passes each group to `visit`, with its figures, a few at a time: call this until it returns
    /// `false`. A call looks at [`LOOKS_PER_LOCK`](Storage::LOOKS_PER_LOCK) groups, O(1) each, and
    /// changes nothing.
    ///
    /// Groups come in no order. A group that is there from the first call to the last is passed
    /// exactly once. One that comes or goes between two calls may or may not be.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::limiter::NoLimit;
    /// use requeue::priority::Groups;
    /// use requeue::storage::Fixed;
    /// use requeue::{GroupLimits, Instant, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<(&str, u32), Groups<&str>, NoLimit, Fixed<8>> =
    ///     Queue::with_groups(NoLimit, (), |key| key.0);
    /// let _ = queue.at(now).add_many([("a", 1), ("a", 2), ("b", 1)], |_| {});
    ///
    /// let mut longest = None;
    /// let mut sweep = requeue::binding::Sweep::new();
    /// while queue.groups_some(&mut sweep, |name, group| {
    ///     longest = longest.max(Some((group.ready, *name)));
    /// }) {}
    /// assert_eq!(longest, Some((2, "a")));
    /// ```
    pub fn groups_some<G>(&self, sweep: &mut Sweep, mut visit: impl FnMut(&G, GroupState)) -> bool
    where
        P: Grouped<Group = G>,
    {
        let Some(groups) = self.lists.groups() else {
            return false;
        };
        sweep.chunk(groups.bound(), S::LOOKS_PER_LOCK, |id| {
            if let Some((name, state)) = groups.group_at(id) {
                visit(name, state);
            }
        })
    }
}

/// Methods for queues with [`Groups`](crate::priority::Groups).
impl<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage, M: Metrics>
    Session<'_, K, P, L, S, M>
{
    /// Sets the limits of the groups that have none of their own, present and future. O(1) and, for
    /// each of the groups that wait for a limit, O(levels): at most eight of them now, and a few
    /// with each of the next gets. The next get also looks at the groups in front that the new
    /// limits block, each once, until one may start a run: O(groups) if they block all.
    ///
    /// Groups that wait for a limit and need not any more take their turns in the order in which
    /// they began to wait. Of the first eight groups in turn, those that the new limits block leave
    /// it now. A group behind them leaves its turn when it is in front. A group whose rate or burst
    /// changes begins with a full burst.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::limiter::NoLimit;
    /// use requeue::priority::Groups;
    /// use requeue::storage::Fixed;
    /// use requeue::{GroupLimits, Instant, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<(&str, u32), Groups<&str>, NoLimit, Fixed<8>> =
    ///     Queue::with_groups(NoLimit, (), |key| key.0);
    /// let _ = queue.at(now).add_many([("a", 1), ("a", 2), ("b", 1)], |_| {});
    /// queue.at(now).limit_groups(GroupLimits::new().max_active(1));
    ///
    /// let mut active = Vec::new();
    /// while let Some(work) = queue.at(now).try_get() {
    ///     active.push(work.key);
    /// }
    /// assert_eq!(active, [("a", 1), ("b", 1)]);
    /// ```
    pub fn limit_groups(&mut self, limits: GroupLimits<P::Rates>)
    where
        P: Grouped,
    {
        let _ = self.queue.make_due_ready(SlotId::NONE, self.now);
        if let Some(groups) = self.queue.lists.groups_mut() {
            groups.limit_all(limits);
        }
    }

    /// Sets the limits of a group by name, which then stays although it may have no keys. With
    /// `None` it has those of all groups again. O(levels), and O(n) in the failure records if the
    /// group gets the place of a group that has nothing else.
    ///
    /// # Errors
    ///
    /// The name, if there is no room for one more group. Nothing changes then.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::limiter::NoLimit;
    /// use requeue::priority::Groups;
    /// use requeue::storage::Fixed;
    /// use requeue::{GroupLimits, Instant, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<(&str, u32), Groups<&str>, NoLimit, Fixed<8>> =
    ///     Queue::with_groups(NoLimit, (), |key| key.0);
    /// // A tenant that pays gives three keys in each of its turns.
    /// let paying = GroupLimits::new().weight(3);
    /// queue.at(now).limit_group("b", Some(paying)).unwrap();
    /// assert_eq!(queue.groups_len(), 1, "it stays, although it has no keys");
    /// ```
    pub fn limit_group<G>(
        &mut self,
        name: G,
        limits: Option<GroupLimits<P::Rates>>,
    ) -> Result<(), G>
    where
        P: Grouped<Group = G>,
    {
        let _ = self.queue.make_due_ready(SlotId::NONE, self.now);
        if limits.is_some() {
            self.queue.make_group_room(&name, self.now);
        }
        let limited = match self.queue.lists.groups_mut() {
            Some(groups) => groups.limit(name, limits),
            None => Ok(()),
        };
        self.queue.note_change();
        limited
    }

    /// Hands out no more keys of a group until [`unpause_group`](Self::unpause_group). Everything
    /// else continues, and shutdown ends the pause: see [`pause`](Self::pause). After shutdown this
    /// does nothing. It costs as much as [`limit_group`](Self::limit_group).
    ///
    /// # Errors
    ///
    /// The name, if there is no room for one more group. Nothing changes then.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::limiter::NoLimit;
    /// use requeue::priority::Groups;
    /// use requeue::storage::Fixed;
    /// use requeue::{GroupLimits, Instant, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<(&str, u32), Groups<&str>, NoLimit, Fixed<8>> =
    ///     Queue::with_groups(NoLimit, (), |key| key.0);
    /// let _ = queue.at(now).add_many([("a", 1), ("b", 1)], |_| {});
    /// queue.at(now).pause_group("a").unwrap();
    /// assert_eq!(queue.at(now).try_get().unwrap().key, ("b", 1));
    /// assert!(queue.at(now).try_get().is_none());
    /// ```
    pub fn pause_group<G>(&mut self, name: G) -> Result<(), G>
    where
        P: Grouped<Group = G>,
    {
        let _ = self.queue.make_due_ready(SlotId::NONE, self.now);
        if !self.queue.closed {
            self.queue.make_group_room(&name, self.now);
        }
        match self.queue.lists.groups_mut() {
            Some(groups) => groups.pause(name),
            None => Ok(()),
        }
    }

    /// Hands out keys of a group again, at the end of the turn. O(levels).
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::limiter::NoLimit;
    /// use requeue::priority::Groups;
    /// use requeue::storage::Fixed;
    /// use requeue::{GroupLimits, Instant, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<(&str, u32), Groups<&str>, NoLimit, Fixed<8>> =
    ///     Queue::with_groups(NoLimit, (), |key| key.0);
    /// queue.at(now).add(("a", 1)).unwrap();
    /// queue.at(now).pause_group("a").unwrap();
    /// queue.at(now).unpause_group("a");
    /// assert_eq!(queue.at(now).try_get().unwrap().key, ("a", 1));
    /// ```
    pub fn unpause_group<B, G>(&mut self, name: &B)
    where
        P: Grouped<Group = G>,
        G: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        let _ = self.queue.make_due_ready(SlotId::NONE, self.now);
        if let Some(groups) = self.queue.lists.groups_mut() {
            groups.unpause(name);
        }
        self.queue.note_change();
    }
}
