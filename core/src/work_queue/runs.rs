//! What workers do: taking keys and ending their runs.

use core::borrow::Borrow;
use core::hash::Hash;
use core::ops::Deref;

use crate::Instant;
use crate::action::Action;
use crate::guard::Guard;
use crate::limiter::RateLimiter;
use crate::lock::Lock;
use crate::metrics::Metrics;
use crate::outcome::{Finished, NotActive};
use crate::storage::Storage;
use crate::time::Clock;
use crate::wait::WaitList;
use crate::work::{Ticket, Work};

use super::{State, WorkQueue};

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
    /// Takes the first ready key, if there is one. O(log n), and O(log n) for each active key whose
    /// own deadline has passed. Waits for nothing except the lock.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// let _ = queue.add("node-7");
    /// while let Some(guard) = queue.try_get() {
    ///     assert_eq!(*guard, "node-7");
    ///     guard.success().unwrap();
    /// }
    /// assert!(!queue.contains("node-7"));
    /// ```
    #[doc(alias = "Get")]
    #[inline]
    #[must_use = "a guard that is dropped unreported counts as failed, and its key is retried"]
    pub fn try_get(&self) -> Option<Guard<K, &Self>>
    where
        K: Clone,
    {
        self.with(|queue, now| {
            let work = queue.try_get(now);
            work.map(|work| work.map(|work| Guard::new(work, self)))
        })
    }

    /// Ends a run and takes the first ready key, if there is one, under one lock: what a worker's
    /// loop does. Costs as [`finish`](Self::finish) and [`try_get`](Self::try_get) together.
    ///
    /// A guard of another queue ends its run in that queue.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// queue.add_many(["node-7", "node-8"], |_| {});
    /// let mut next = queue.try_get();
    /// while let Some(guard) = next {
    ///     next = queue.try_next(guard, Action::Success);
    /// }
    /// assert!(!queue.contains("node-8"));
    /// ```
    #[inline]
    #[must_use = "a guard that is dropped unreported counts as failed, and its key is retried"]
    pub fn try_next<G>(&self, guard: Guard<K, G>, action: Action) -> Option<Guard<K, &Self>>
    where
        K: Clone,
        G: Deref<Target = Self>,
    {
        if !core::ptr::eq(guard.queue(), self) {
            let _ = guard.finish(action);
            return self.try_get();
        }
        let work = self.end_and_take(guard.into_ticket()?, action);
        work.map(|work| Guard::new(work, self))
    }

    /// [`try_next`](Self::try_next) for a run of this queue.
    #[inline]
    pub(crate) fn end_and_take(&self, ticket: Ticket, action: Action) -> Option<Work<K>>
    where
        K: Clone,
    {
        self.under_lock(|state| {
            let now = if action.needs_time() || state.queue.needs_time() {
                self.clock.now()
            } else {
                Instant::EPOCH
            };
            // An error says that the run was ended by its key: nothing is left to do. The wake
            // comes from what follows, so that none is sent for the key that is taken here.
            let _ = state.queue.finish_quietly(ticket, action, now);
            let taken = state.queue.take(now);
            state.queue.effect(taken)
        })
    }

    /// Ends the run of a key, as client-go's `Done`: the key's failures stay as they are. O(1).
    ///
    /// A worker that has the key's guard uses that. A guard whose run was ended by its key has no
    /// effect any more.
    ///
    /// # Errors
    ///
    /// [`NotActive`] if the key is not active: nothing changes.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// let _ = queue.add("node-7");
    /// let guard = queue.try_get().unwrap();
    /// assert_eq!(queue.release_key("node-7"), Ok(()));
    /// assert_eq!(queue.release_key("node-7"), Err(NotActive));
    /// assert_eq!(guard.release(), Err(NotActive), "the guard has nothing left to do");
    /// ```
    #[doc(alias = "Done")]
    pub fn release_key<B>(&self, key: &B) -> Result<(), NotActive>
    where
        K: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        self.with(|queue, now| queue.release_key(key, now))
    }

    /// Ends a run by its ticket. O(log n) if the key runs again after a delay, else O(1). A guard
    /// does this by itself.
    ///
    /// # Errors
    ///
    /// [`NotActive`] if the run was ended otherwise: nothing changes.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// let _ = queue.add("node-7");
    /// // The ticket travels further than the guard, which borrows the queue.
    /// let ticket = queue.try_get().unwrap().into_ticket().unwrap();
    /// let finished = queue.finish(ticket, Action::Success);
    /// assert_eq!(finished, Ok(Finished::Idle));
    /// ```
    #[doc(alias = "Done")]
    #[inline]
    pub fn finish(&self, ticket: Ticket, action: Action) -> Result<Finished, NotActive> {
        if L::HOLDS || action.needs_time() {
            self.with_now(|queue, now| queue.finish(ticket, action, now))
        } else {
            self.end(ticket, action.forgets()).map(Finished::at_once)
        }
    }

    fn end(&self, ticket: Ticket, forgets: bool) -> Result<bool, NotActive> {
        self.with(|queue, now| queue.end(ticket, forgets, now))
    }
}
