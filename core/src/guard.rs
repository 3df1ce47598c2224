//! A key in work, completed when it goes out of scope.

use core::fmt;
use core::hash::Hash;
use core::ops::Deref;
use core::time::Duration;

use crate::limiter::RateLimiter;
use crate::lock::Lock;
use crate::metrics::Metrics;
use crate::outcome::{Completion, Finished, NotActive, Ticket, Work};
use crate::queue::Queue;
use crate::slots::Storage;
use crate::time::Clock;
use crate::waker::Waker;
use crate::work_queue::WorkQueue;

/// Completes runs: the part of a [`WorkQueue`] that a [`Guard`] needs.
///
/// The types of a queue are many, and a guard shows only the key. Every [`WorkQueue`] implements
/// this.
pub trait Complete {
    /// Completes a run.
    ///
    /// # Errors
    ///
    /// [`NotActive`] if the run was completed otherwise: nothing changes.
    fn complete(&self, ticket: Ticket, completion: Completion) -> Result<Finished, NotActive>;

    /// Completes many runs under one lock.
    ///
    /// # Errors
    ///
    /// [`NotActive`] if any run was completed otherwise; the others are completed all the same.
    fn complete_many(
        &self,
        tickets: impl IntoIterator<Item = Ticket>,
        completion: Completion,
    ) -> Result<(), NotActive>;

    /// How a run is completed whose owner drops it: as failed, if the thread unwinds from a panic.
    fn completion_on_drop(&self) -> Completion;
}

impl<K, S, L, M, Q, C, W> Complete for WorkQueue<Q, C, W>
where
    K: Eq + Hash,
    S: Storage,
    L: RateLimiter,
    M: Metrics,
    Q: Lock<State = Queue<K, S, L, M>>,
    C: Clock,
    W: Waker,
{
    fn complete(&self, ticket: Ticket, completion: Completion) -> Result<Finished, NotActive> {
        self.complete(ticket, completion)
    }

    fn complete_many(
        &self,
        tickets: impl IntoIterator<Item = Ticket>,
        completion: Completion,
    ) -> Result<(), NotActive> {
        self.complete_many(tickets, completion)
    }

    fn completion_on_drop(&self) -> Completion {
        if self.waker().unwinding() {
            Completion::Retry
        } else {
            Completion::Done
        }
    }
}

/// A key that its owner works on. Dereferences to the key.
///
/// Dropping the guard completes the run, as [`done`](Self::done) does. Dropped while its thread
/// unwinds from a panic, it counts a failure and requeues the key rate-limited instead
/// ([`retry`](Self::retry)), so that a worker that panics loses nothing. While the queue shuts down
/// the key is kept for [`take_delayed`](crate::Queue::take_delayed) instead.
///
/// `H` is how the guard holds its queue: a reference, or a counted pointer for a guard that lives
/// on its own.
#[must_use = "dropping a guard completes its key"]
pub struct Guard<K, H>
where
    H: Deref<Target: Complete>,
{
    key: K,
    /// Present until the run is completed.
    ticket: Option<Ticket>,
    requeues: u32,
    queue: H,
}

impl<K, H: Deref<Target: Complete>> Guard<K, H> {
    /// The guard of a run that has been handed out by `queue`.
    pub fn new(work: Work<K>, queue: H) -> Self {
        Self {
            key: work.key,
            ticket: Some(work.ticket),
            requeues: work.requeues,
            queue,
        }
    }

    /// The key.
    pub fn key(&self) -> &K {
        &self.key
    }

    /// The queue that handed the key out.
    pub fn queue(&self) -> &H::Target {
        &self.queue
    }

    /// How many times the key has failed before this run.
    pub fn requeues(&self) -> u32 {
        self.requeues
    }

    /// Which attempt this run is: one more than the failures before it.
    pub fn attempt(&self) -> u32 {
        self.requeues.saturating_add(1)
    }

    /// Completes the run: the key may be worked on again, and its failures stay remembered.
    pub fn done(self) -> Result<Finished, NotActive> {
        self.complete(Completion::Done)
    }

    /// Completes the run and forgets the key's failures: it succeeded.
    pub fn forget(self) -> Result<Finished, NotActive> {
        self.complete(Completion::Succeeded)
    }

    /// Completes the run, counts a failure, and lets the key come back when its limiter says so.
    pub fn retry(self) -> Result<Finished, NotActive> {
        self.complete(Completion::Retry)
    }

    /// Completes the run and lets the key come back after `delay`, without counting a failure.
    pub fn retry_after(self, delay: Duration) -> Result<Finished, NotActive> {
        self.complete(Completion::RetryAfter(delay))
    }

    /// Completes the run as told.
    ///
    /// # Errors
    ///
    /// [`NotActive`] if the run was completed by name meanwhile.
    pub fn complete(mut self, completion: Completion) -> Result<Finished, NotActive> {
        let ticket = self.ticket.take().ok_or(NotActive)?;
        self.queue.complete(ticket, completion)
    }

    /// Takes the ticket out: the guard does nothing any more, and whoever holds the ticket has to
    /// complete the run.
    pub fn into_ticket(mut self) -> Option<Ticket> {
        self.ticket.take()
    }
}

impl<K, H: Deref<Target: Complete>> Deref for Guard<K, H> {
    type Target = K;

    fn deref(&self) -> &K {
        &self.key
    }
}

impl<K, H: Deref<Target: Complete>> Drop for Guard<K, H> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            let completion = self.queue.completion_on_drop();
            // Somebody may have completed the key by name: then there is nothing left to do.
            let _ = self.queue.complete(ticket, completion);
        }
    }
}

impl<K: fmt::Debug, H: Deref<Target: Complete>> fmt::Debug for Guard<K, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard")
            .field("key", &self.key)
            .field("requeues", &self.requeues)
            .finish_non_exhaustive()
    }
}
