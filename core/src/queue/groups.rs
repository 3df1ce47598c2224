//! Groups: their limits, and what they hold.

use core::borrow::Borrow;
use core::hash::Hash;

use crate::group::{GroupLimits, GroupState};
use crate::id::SlotId;
use crate::limiter::RateLimiter;
use crate::lists::grouped::GroupControl;
use crate::metrics::Metrics;
use crate::storage::Storage;

use super::{Queue, Session, Sweep};

/// What concerns groups is for queues with [`Groups`](crate::Groups).
impl<K: Eq + Hash, S: Storage, L: RateLimiter, M: Metrics> Session<'_, K, S, L, M> {
    /// Sets the limits of the groups that have none of their own, present and future. O(1) and, for
    /// each of the groups that wait for a limit, O(levels): at most eight of them now, and a few
    /// with each of the next gets. The next get also looks at the groups in front that the new
    /// limits block, each once, until one may start a run: O(groups) if they block all.
    ///
    /// Groups that wait for a limit and need not any more take their turns in the order in which
    /// they began to wait. A group whose rate changes begins with a full burst.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_core::{Fixed, GroupLimits, Groups, Instant, NoLimit, NoMetrics, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// type Tenants = Fixed<8, u8, Groups<&'static str>>;
    /// let mut queue: Queue<(&'static str, u32), Tenants, NoLimit> =
    ///     Queue::with_groups(NoLimit, NoMetrics, |key| key.0);
    /// let _ = queue.at(now).add_many([("a", 1), ("a", 2), ("b", 1)], |_| {});
    /// queue.at(now).limit_groups(GroupLimits::new().max_active(1));
    ///
    /// let mut active = Vec::new();
    /// while let Some(work) = queue.at(now).try_get() {
    ///     active.push(work.key);
    /// }
    /// assert_eq!(active, [("a", 1), ("b", 1)]);
    /// ```
    pub fn limit_groups(&mut self, limits: GroupLimits)
    where
        S: Storage<Lists: GroupControl>,
    {
        let _ = self.queue.release_due(SlotId::NONE, self.now);
        self.queue.lists.limit_all(limits);
    }

    /// Sets the limits of a group by name, which then stays although it may have no keys. With
    /// `None` it has those of all groups again. O(levels).
    ///
    /// # Errors
    ///
    /// The name, if there is no room for one more group. Nothing changes then.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_core::{Fixed, GroupLimits, Groups, Instant, NoLimit, NoMetrics, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// type Tenants = Fixed<8, u8, Groups<&'static str>>;
    /// let mut queue: Queue<(&'static str, u32), Tenants, NoLimit> =
    ///     Queue::with_groups(NoLimit, NoMetrics, |key| key.0);
    /// // A tenant that pays gives three keys in each of its turns.
    /// let paying = GroupLimits::new().weight(3);
    /// queue.at(now).limit_group("b", Some(paying)).unwrap();
    /// assert_eq!(queue.groups_len(), 1, "it stays, although it has no keys");
    /// ```
    pub fn limit_group<G>(&mut self, name: G, limits: Option<GroupLimits>) -> Result<(), G>
    where
        S: Storage<Lists: GroupControl<Name = G>>,
    {
        let _ = self.queue.release_due(SlotId::NONE, self.now);
        let limited = self.queue.lists.limit(name, limits);
        self.queue.note_change();
        limited
    }

    /// Hands out no more keys of a group until [`resume_group`](Self::resume_group). Everything
    /// else goes on, and shutdown ends the pause: see [`pause`](Self::pause). After shutdown this
    /// does nothing. O(levels).
    ///
    /// # Errors
    ///
    /// The name, if there is no room for one more group. Nothing changes then.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_core::{Fixed, GroupLimits, Groups, Instant, NoLimit, NoMetrics, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// type Tenants = Fixed<8, u8, Groups<&'static str>>;
    /// let mut queue: Queue<(&'static str, u32), Tenants, NoLimit> =
    ///     Queue::with_groups(NoLimit, NoMetrics, |key| key.0);
    /// let _ = queue.at(now).add_many([("a", 1), ("b", 1)], |_| {});
    /// queue.at(now).pause_group("a").unwrap();
    /// assert_eq!(queue.at(now).try_get().unwrap().key, ("b", 1));
    /// assert!(queue.at(now).try_get().is_none());
    /// ```
    pub fn pause_group<G>(&mut self, name: G) -> Result<(), G>
    where
        S: Storage<Lists: GroupControl<Name = G>>,
    {
        let _ = self.queue.release_due(SlotId::NONE, self.now);
        self.queue.lists.pause(name)
    }

    /// Hands out keys of a group again, at the end of the turn. O(levels).
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_core::{Fixed, GroupLimits, Groups, Instant, NoLimit, NoMetrics, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// type Tenants = Fixed<8, u8, Groups<&'static str>>;
    /// let mut queue: Queue<(&'static str, u32), Tenants, NoLimit> =
    ///     Queue::with_groups(NoLimit, NoMetrics, |key| key.0);
    /// queue.at(now).add(("a", 1)).unwrap();
    /// queue.at(now).pause_group("a").unwrap();
    /// queue.at(now).resume_group("a");
    /// assert_eq!(queue.at(now).try_get().unwrap().key, ("a", 1));
    /// ```
    pub fn resume_group<B, G>(&mut self, name: &B)
    where
        S: Storage<Lists: GroupControl<Name = G>>,
        G: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        let _ = self.queue.release_due(SlotId::NONE, self.now);
        self.queue.lists.resume(name);
        self.queue.note_change();
    }
}

impl<K: Eq + Hash, S: Storage, L: RateLimiter, M: Metrics> Queue<K, S, L, M> {
    /// Returns the figures of a group, `None` if it has neither keys nor limits of its own. A due
    /// key counts as ready once an operation has made it so. O(1) expected.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_core::{Fixed, GroupLimits, Groups, Instant, NoLimit, NoMetrics, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// type Tenants = Fixed<8, u8, Groups<&'static str>>;
    /// let mut queue: Queue<(&'static str, u32), Tenants, NoLimit> =
    ///     Queue::with_groups(NoLimit, NoMetrics, |key| key.0);
    /// let _ = queue.at(now).add_many([("a", 1), ("a", 2)], |_| {});
    /// let _work = queue.at(now).try_get();
    /// let a = queue.group("a").unwrap();
    /// assert_eq!((a.ready, a.active, a.held), (1, 1, 2));
    /// assert_eq!(queue.group("b"), None);
    /// ```
    pub fn group<B, G>(&self, name: &B) -> Option<GroupState>
    where
        S: Storage<Lists: GroupControl<Name = G>>,
        G: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        self.lists.state(name)
    }

    /// Returns how many groups there are. O(1).
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_core::{Fixed, GroupLimits, Groups, Instant, NoLimit, NoMetrics, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// type Tenants = Fixed<8, u8, Groups<&'static str>>;
    /// let mut queue: Queue<(&'static str, u32), Tenants, NoLimit> =
    ///     Queue::with_groups(NoLimit, NoMetrics, |key| key.0);
    /// let _ = queue.at(now).add_many([("a", 1), ("a", 2), ("b", 1)], |_| {});
    /// assert_eq!(queue.groups_len(), 2);
    /// ```
    pub fn groups_len(&self) -> usize
    where
        S: Storage<Lists: GroupControl>,
    {
        self.lists.len()
    }

    /// Passes each group to `visit`, with its figures, in steps: call this until it returns
    /// `false`. A step looks at 32 groups (8 without the feature `alloc`), O(1) each, and changes
    /// nothing.
    ///
    /// Groups come in no order. One that is there from the first step to the last is passed exactly
    /// once; one that comes or goes between two steps may or may not be.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_core::{Fixed, GroupLimits, Groups, Instant, NoLimit, NoMetrics, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// type Tenants = Fixed<8, u8, Groups<&'static str>>;
    /// let mut queue: Queue<(&'static str, u32), Tenants, NoLimit> =
    ///     Queue::with_groups(NoLimit, NoMetrics, |key| key.0);
    /// let _ = queue.at(now).add_many([("a", 1), ("a", 2), ("b", 1)], |_| {});
    ///
    /// let mut longest = None;
    /// let mut sweep = requeue_core::Sweep::new();
    /// while queue.groups_some(&mut sweep, |name, group| {
    ///     longest = longest.max(Some((group.ready, *name)));
    /// }) {}
    /// assert_eq!(longest, Some((2, "a")));
    /// ```
    pub fn groups_some<G>(&self, sweep: &mut Sweep, mut visit: impl FnMut(&G, GroupState)) -> bool
    where
        S: Storage<Lists: GroupControl<Name = G>>,
    {
        sweep.step(self.lists.bound(), |id| {
            if let Some((name, state)) = self.lists.group_at(id) {
                visit(name, state);
            }
        })
    }
}
