//! A key in work, completed when it goes out of scope.

use core::fmt;
use core::hash::Hash;
use core::ops::Deref;
use core::time::Duration;

use crate::limiter::RateLimiter;
use crate::lock::Lock;
use crate::metrics::Metrics;
use crate::outcome::{Completion, Finished, NotActive};
use crate::queue::Queue;
use crate::slots::Storage;
use crate::time::Clock;
use crate::waker::Waker;
use crate::work::{Facts, FactsOf, Ticket, Work};
use crate::work_queue::WorkQueue;

/// Completes runs: the part of a [`WorkQueue`] that a [`Guard`] needs.
///
/// The types of a queue are many, and a guard shows only the key. Every [`WorkQueue`] implements
/// this.
///
/// # Examples
///
/// Code that takes any guard, of whatever queue and runtime:
///
/// ```
/// use core::ops::Deref;
/// use requeue_core::{Complete, Guard};
///
/// fn work_on<H: Deref<Target: Complete>>(guard: Guard<&str, H>) {
///     let is_known = guard.starts_with("node-");
///     // If somebody completed the key by name there is nothing left to do.
///     let _ = if is_known { guard.forget() } else { guard.retry() };
/// }
#[doc = include_str!("work_queue/example.txt")]
///
/// queue.add("node-7").unwrap();
/// work_on(queue.try_get().unwrap());
/// assert!(!queue.contains(&"node-7"));
/// ```
pub trait Complete {
    /// What the queue tells of a key beside the key itself: [`FactsOf`] its storage and metrics.
    type Facts: Facts;

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
    type Facts = FactsOf<S, M>;

    #[inline]
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
        if self.waker().is_abandoned() {
            Completion::Retry
        } else {
            Completion::Done
        }
    }
}

/// A key that its owner works on. Dereferences to the key.
///
/// Dropping the guard completes the run, as [`done`](Self::done) does. Dropped where its runtime
/// calls it [abandoned](crate::Waker::is_abandoned), it counts a failure and requeues the key
/// rate-limited instead ([`retry`](Self::retry)), so that a worker that panics or is cancelled
/// loses nothing: on threads while they unwind from a panic, in tasks always. While the queue shuts
/// down such a key is kept for [`take_delayed`](crate::Queue::take_delayed).
///
/// `H` is how the guard holds its queue: a reference, or a counted pointer for a guard that lives
/// on its own.
///
/// # Examples
///
/// ```
#[doc = include_str!("work_queue/example.txt")]
/// fn reconcile(node: &str, attempt: u32) -> Result<(), &'static str> {
///     if node == "node-7" && attempt == 1 { Err("no route") } else { Ok(()) }
/// }
///
/// queue.add("node-7").unwrap();
/// let guard = queue.try_get().unwrap();
/// let finished = match reconcile(&guard, guard.attempt()) {
///     Ok(()) => guard.forget(),
///     Err(_) => guard.retry(),
/// };
/// assert!(matches!(finished, Ok(Finished::Delayed(_))));
/// assert_eq!(queue.num_requeues(&"node-7"), 1);
/// ```
#[must_use = "dropping a guard completes its key"]
pub struct Guard<K, H>
where
    H: Deref<Target: Complete>,
{
    /// Dropped first: the code of a key that is dropped may panic.
    run: Run<H>,
    key: K,
    facts: FactsFrom<H>,
    /// Last, since rustc 1.95 breaks down over a guard in a vector that ends in `FactsFrom`.
    requeues: u32,
}

/// A run that is completed when this is dropped.
struct Run<H: Deref<Target: Complete>> {
    /// Present until the run is completed.
    ticket: Option<Ticket>,
    queue: H,
}

/// What the queue behind a handle tells of a key.
pub(crate) type FactsFrom<H> = <<H as Deref>::Target as Complete>::Facts;

impl<K, H: Deref<Target: Complete>> Guard<K, H> {
    /// The guard of a run that has been handed out by `queue`; for runtimes.
    /// [`WorkQueue::poll_get`] has an example.
    pub fn new(work: Work<K, FactsFrom<H>>, queue: H) -> Self {
        Self {
            run: Run {
                ticket: Some(work.ticket),
                queue,
            },
            key: work.key,
            requeues: work.requeues,
            facts: work.facts,
        }
    }

    /// The key, to which the guard also dereferences.
    pub fn key(&self) -> &K {
        &self.key
    }

    /// The queue that handed the key out.
    pub fn queue(&self) -> &H::Target {
        &self.run.queue
    }

    /// How many failures the limiter remembered of the key when this run began. Always zero with
    /// limiters that remember none: [`NoLimit`](crate::NoLimit), [`Bucket`](crate::Bucket).
    pub fn requeues(&self) -> u32 {
        self.requeues
    }

    /// Which attempt this run is: one more than the [failures before it](Self::requeues).
    pub fn attempt(&self) -> u32 {
        self.requeues.saturating_add(1)
    }

    /// How long the key was ready, or dirty, before it was handed out; zero where the queue's
    /// metrics keep no [`Times`](crate::Times).
    pub fn waited(&self) -> Duration {
        self.facts.waited()
    }

    /// The priority level of the key, which is also the one at which it comes back if it is
    /// retried; 0 in a queue without [`Levels`](crate::Levels).
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("work_queue/example.txt")]
    /// queue.add("node-7").unwrap();
    /// assert_eq!(queue.try_get().unwrap().priority(), 0);
    /// ```
    pub fn priority(&self) -> u8 {
        self.facts.priority()
    }

    /// Completes the run: the key may be worked on again, and its failures stay remembered. O(1).
    ///
    /// # Errors
    ///
    /// As [`complete`](Self::complete).
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("work_queue/example.txt")]
    /// queue.add("node-7").unwrap();
    /// let guard = queue.try_get().unwrap();
    /// queue.add("node-7").unwrap();
    /// assert_eq!(guard.done(), Ok(Finished::Ready), "it was added meanwhile");
    /// ```
    pub fn done(self) -> Result<Finished, NotActive> {
        self.complete(Completion::Done)
    }

    /// Completes the run and forgets the key's failures: it succeeded. O(1).
    ///
    /// # Errors
    ///
    /// As [`complete`](Self::complete).
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("work_queue/example.txt")]
    /// queue.add("node-7").unwrap();
    /// queue.add_rate_limited("node-7").unwrap();
    /// assert_eq!(queue.num_requeues(&"node-7"), 1);
    /// queue.try_get().unwrap().forget().unwrap();
    /// assert_eq!(queue.num_requeues(&"node-7"), 0);
    /// ```
    pub fn forget(self) -> Result<Finished, NotActive> {
        self.complete(Completion::Succeeded)
    }

    /// Completes the run, counts a failure, and lets the key come back when its limiter says so.
    /// O(log n).
    ///
    /// # Errors
    ///
    /// As [`complete`](Self::complete).
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("work_queue/example.txt")]
    /// use core::time::Duration;
    ///
    /// queue.add("node-7").unwrap();
    /// let finished = queue.try_get().unwrap().retry();
    /// assert_eq!(finished, Ok(Finished::Delayed(Duration::from_millis(1))));
    /// ```
    pub fn retry(self) -> Result<Finished, NotActive> {
        self.complete(Completion::Retry)
    }

    /// Completes the run and lets the key come back after `delay`, without counting a failure.
    /// O(log n).
    ///
    /// # Errors
    ///
    /// As [`complete`](Self::complete).
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("work_queue/example.txt")]
    /// use core::time::Duration;
    ///
    /// queue.add("volume-4").unwrap();
    /// // It is still being attached: not a failure, only too early.
    /// queue.try_get().unwrap().retry_after(Duration::from_secs(5)).unwrap();
    /// assert_eq!(queue.num_requeues(&"volume-4"), 0);
    /// assert!(queue.contains(&"volume-4"));
    /// ```
    pub fn retry_after(self, delay: Duration) -> Result<Finished, NotActive> {
        self.complete(Completion::RetryAfter(delay))
    }

    /// Completes the run as told. Costs as [`WorkQueue::complete`].
    ///
    /// # Errors
    ///
    /// [`NotActive`] if the run was completed by name meanwhile: nothing changes.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("work_queue/example.txt")]
    /// use core::time::Duration;
    ///
    /// queue.add("lease-3").unwrap();
    /// let again = Completion::SucceededAgainAfter(Duration::from_secs(60));
    /// let finished = queue.try_get().unwrap().complete(again);
    /// assert_eq!(finished, Ok(Finished::Delayed(Duration::from_secs(60))));
    /// ```
    #[inline]
    pub fn complete(mut self, completion: Completion) -> Result<Finished, NotActive> {
        let ticket = self.run.ticket.take().ok_or(NotActive)?;
        self.run.queue.complete(ticket, completion)
    }

    /// Takes the ticket out: the guard does nothing any more, and whoever holds the ticket has to
    /// complete the run. [`WorkQueue::complete`] has an example.
    pub fn into_ticket(self) -> Option<Ticket> {
        let Self { mut run, key, .. } = self;
        // If its code panics, the run is completed as that of any guard that is dropped.
        drop(key);
        run.ticket.take()
    }
}

impl<K, H: Deref<Target: Complete>> Deref for Guard<K, H> {
    type Target = K;

    fn deref(&self) -> &K {
        &self.key
    }
}

impl<H: Deref<Target: Complete>> Run<H> {
    /// A function of its own, so that a guard which was completed costs no more than one question.
    #[inline(never)]
    fn drop_in_work(&self, ticket: Ticket) {
        let completion = self.queue.completion_on_drop();
        // Somebody may have completed the key by name: then there is nothing left to do.
        let _ = self.queue.complete(ticket, completion);
    }
}

impl<H: Deref<Target: Complete>> Drop for Run<H> {
    #[inline]
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.drop_in_work(ticket);
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

#[cfg(feature = "defmt")]
impl<K: defmt::Format, H: Deref<Target: Complete>> defmt::Format for Guard<K, H> {
    fn format(&self, f: defmt::Formatter<'_>) {
        let Self { key, requeues, .. } = self;
        defmt::write!(f, "Guard {{ key: {}, requeues: {}, .. }}", key, requeues);
    }
}
