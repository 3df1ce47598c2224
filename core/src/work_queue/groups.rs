//! Groups: their limits, and what they hold.

use core::borrow::Borrow;
use core::hash::Hash;

use crate::group::{GroupLimits, GroupState};
use crate::limiter::RateLimiter;
use crate::lists::grouped::GroupControl;
use crate::lock::Lock;
use crate::metrics::Metrics;
use crate::storage::Storage;
use crate::time::Clock;
use crate::wait::WaitList;

use super::snapshot::pages;
use super::{State, WorkQueue};

/// What concerns groups is for queues with [`Groups`](crate::Groups).
impl<K, S, L, M, W, Q, C> WorkQueue<Q, C>
where
    K: Eq + Hash,
    S: Storage,
    L: RateLimiter,
    M: Metrics,
    W: WaitList,
    Q: Lock<State = State<K, S, L, M, W>>,
    C: Clock,
{
    /// Sets the limits of the groups that have none of their own, present and future, and wakes a
    /// call that waits if there is something for it now. O(levels) for at most eight groups. The
    /// next get looks at the groups in front that the new limits block, each once.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example_groups.txt")]
    /// queue.limit_groups(GroupLimits::new().max_active(1));
    /// queue.add_many([("a", 1), ("a", 2), ("b", 1)], |_| {});
    /// let (first, second) = (queue.try_get().unwrap(), queue.try_get().unwrap());
    /// assert_eq!((*first, *second), (("a", 1), ("b", 1)));
    /// assert!(queue.try_get().is_none());
    /// ```
    pub fn limit_groups(&self, limits: GroupLimits)
    where
        S: Storage<Lists: GroupControl>,
    {
        self.with(|queue, now| queue.limit_groups(limits, now));
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
    #[doc = include_str!("example_groups.txt")]
    /// // At most ten keys of it a second, and up to three at once after a pause.
    /// queue.limit_group("a", GroupLimits::new().rate(10.0, 3)).unwrap();
    /// assert_eq!(queue.limit_group("a", None), Ok(()));
    /// ```
    pub fn limit_group<G>(&self, name: G, limits: impl Into<Option<GroupLimits>>) -> Result<(), G>
    where
        S: Storage<Lists: GroupControl<Name = G>>,
    {
        let limits = limits.into();
        self.with(|queue, now| queue.limit_group(name, limits, now))
    }

    /// Hands out no more keys of a group until [`resume_group`](Self::resume_group). Everything
    /// else goes on, and shutdown ends the pause. O(levels).
    ///
    /// # Errors
    ///
    /// The name, if there is no room for one more group. Nothing changes then.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example_groups.txt")]
    /// let _ = queue.add(("a", 1));
    /// queue.pause_group("a").unwrap();
    /// assert!(queue.try_get().is_none());
    /// queue.resume_group("a");
    /// assert_eq!(*queue.try_get().unwrap(), ("a", 1));
    /// ```
    pub fn pause_group<G>(&self, name: G) -> Result<(), G>
    where
        S: Storage<Lists: GroupControl<Name = G>>,
    {
        self.with(|queue, now| queue.pause_group(name, now))
    }

    /// Hands out keys of a group again, at the end of the turn, and wakes a call that waits if
    /// there is something for it. O(levels).
    /// [`pause_group`](Self::pause_group) has an example.
    pub fn resume_group<B, G>(&self, name: &B)
    where
        S: Storage<Lists: GroupControl<Name = G>>,
        G: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        self.with(|queue, now| queue.resume_group(name, now));
    }

    /// Returns the figures of a group, `None` if it has neither keys nor limits of its own. A due
    /// key counts as ready once an operation has made it so. O(1) expected.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example_groups.txt")]
    /// let _ = queue.add(("a", 1));
    /// queue.pause_group("a").unwrap();
    /// let a = queue.group("a").unwrap();
    /// assert!(a.ready == 1 && a.paused);
    /// ```
    pub fn group<B, G>(&self, name: &B) -> Option<GroupState>
    where
        S: Storage<Lists: GroupControl<Name = G>>,
        G: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        self.lock.with(|state| state.queue.group(name))
    }

    /// Returns the groups, with the figures of each: an iterator that looks at 32 of them (8
    /// without the feature `alloc`) under each lock, O(1) each. Changes nothing.
    ///
    /// Groups come in no order. One that is there from the first step to the last comes exactly
    /// once. Names are cloned while the queue is locked.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example_groups.txt")]
    /// queue.add_many([("a", 1), ("a", 2), ("b", 1)], |_| {});
    /// let longest = queue.groups().max_by_key(|(_, group)| group.ready);
    /// assert_eq!(longest.unwrap().0, "a");
    /// ```
    pub fn groups<G>(&self) -> impl Iterator<Item = (G, GroupState)>
    where
        S: Storage<Lists: GroupControl<Name = G>>,
        G: Clone,
    {
        pages(|sweep, page| {
            // There is room for as many as a step looks at.
            let visit = |name: &G, group| drop(page.push((name.clone(), group)));
            self.lock
                .with(|state| state.queue.groups_some(sweep, visit))
        })
    }
}
