//! What workers do: taking keys and completing them.

use core::hash::Hash;

use crate::guard::Guard;
use crate::limiter::RateLimiter;
use crate::lock::Lock;
use crate::metrics::Metrics;
use crate::outcome::{Completion, Finished, Next, NotActive};
use crate::queue::Queue;
use crate::slots::Storage;
use crate::time::Clock;
use crate::waiting::Getter;
use crate::waker::Waker;
use crate::work::{Ticket, WorkOf};

use super::WorkQueue;

impl<K, S, L, M, Q, C, W> WorkQueue<Q, C, W>
where
    K: Eq + Hash,
    S: Storage,
    L: RateLimiter,
    M: Metrics,
    Q: Lock<State = Queue<K, S, L, M>>,
    C: Clock,
    W: Waker,
{
    /// Completes the run of a key by name, as client-go's `Done`. O(1).
    ///
    /// The guard that `get` returned does this by itself when it is dropped; a guard whose key was
    /// completed by name has no effect any more.
    ///
    /// # Errors
    ///
    /// [`NotActive`] if the key is not in work: nothing changes.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// queue.add("node-7").unwrap();
    /// let guard = queue.try_get().unwrap();
    /// assert_eq!(queue.done(&guard), Ok(()));
    /// assert_eq!(queue.done(&"node-7"), Err(NotActive));
    /// assert_eq!(guard.done(), Err(NotActive), "the guard has nothing left to do");
    /// ```
    pub fn done(&self, key: &K) -> Result<(), NotActive> {
        self.act(|queue, now| queue.done_key(key, now))
    }

    /// Completes a run by its ticket, and says what is to become of the key. O(log n). Guards do
    /// this by themselves.
    ///
    /// # Errors
    ///
    /// [`NotActive`] if the run was completed otherwise: nothing changes.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// queue.add("node-7").unwrap();
    /// // The ticket travels further than the guard, which borrows the queue.
    /// let ticket = queue.try_get().unwrap().into_ticket().unwrap();
    /// let finished = queue.complete(ticket, Completion::Succeeded);
    /// assert_eq!(finished, Ok(Finished::Idle));
    /// ```
    #[inline]
    pub fn complete(&self, ticket: Ticket, completion: Completion) -> Result<Finished, NotActive> {
        if completion.needs_time() {
            self.act_now(|queue, now| queue.complete(ticket, completion, now))
        } else {
            self.end(ticket, completion.forgets())
                .map(Finished::at_once)
        }
    }

    fn end(&self, ticket: Ticket, forgets: bool) -> Result<bool, NotActive> {
        self.act(|queue, now| queue.end(ticket, forgets, now))
    }

    /// Completes many runs under one lock. Costs per key as [`complete`](Self::complete). The
    /// iterator must not touch the queue.
    ///
    /// If a key's `Drop` panics, its own run is over; the tickets behind it are lost with the
    /// iterator, and their keys are completed [by name](Self::done) or stay in work. A batch that a
    /// runtime hands out completes them all.
    ///
    /// # Errors
    ///
    /// [`NotActive`] if any run was completed otherwise; the others are completed all the same.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// queue.add_many(["node-7", "node-8"], |_| {});
    /// let mut tickets = Vec::new();
    /// while let Some(guard) = queue.try_get() {
    ///     tickets.extend(guard.into_ticket());
    /// }
    /// assert_eq!(queue.complete_many(tickets, Completion::Succeeded), Ok(()));
    /// assert!(!queue.contains(&"node-7"));
    /// ```
    pub fn complete_many(
        &self,
        tickets: impl IntoIterator<Item = Ticket>,
        completion: Completion,
    ) -> Result<(), NotActive> {
        self.act_for(completion, |queue, now| {
            queue.complete_many(tickets, completion, now)
        })
    }

    /// A getter goes away without work: the last step of a `get` that is cancelled. O(1).
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// let mut getter = Getter::new();
    /// assert_eq!(queue.poll_get(&mut getter), Next::Wait { until: None });
    /// // What a runtime does when the task that waits is dropped.
    /// queue.leave(&mut getter);
    /// ```
    pub fn leave(&self, getter: &mut Getter) {
        self.act(|queue, _| queue.leave(getter));
    }
}

impl<K, S, L, M, Q, C, W> WorkQueue<Q, C, W>
where
    K: Eq + Hash + Clone,
    S: Storage,
    L: RateLimiter,
    M: Metrics,
    Q: Lock<State = Queue<K, S, L, M>>,
    C: Clock,
    W: Waker,
{
    /// Hands out the first ready key, if there is one. O(1), and O(log n) for each deadline that
    /// has come. Never waits but for the lock.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// queue.add("node-7").unwrap();
    /// while let Some(guard) = queue.try_get() {
    ///     assert_eq!(*guard, "node-7");
    /// }
    /// // Each guard has completed its key when it went out of scope.
    /// assert!(!queue.contains(&"node-7"));
    /// ```
    pub fn try_get(&self) -> Option<Guard<K, &Self>> {
        let work = self.act(Queue::try_get)?;
        Some(Guard::new(work, self))
    }

    /// One look of a getter at the queue: the first step of a runtime's `get`. Costs as
    /// [`try_get`](Self::try_get).
    ///
    /// A getter that is told to wait has to look again, or to [`leave`](Self::leave).
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// queue.add("node-7").unwrap();
    /// let mut getter = Getter::new();
    /// let Next::Work(work) = queue.poll_get(&mut getter) else {
    ///     panic!("a key is ready");
    /// };
    /// // The runtime hands the key out in a guard.
    /// let guard = Guard::new(work, &queue);
    /// assert_eq!(*guard, "node-7");
    /// ```
    pub fn poll_get(&self, getter: &mut Getter) -> Next<WorkOf<K, S, M>> {
        self.act(|queue, now| queue.get(now, getter))
    }
}
