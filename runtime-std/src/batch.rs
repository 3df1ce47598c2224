//! Many keys in work, completed under one lock.

use std::fmt;
use std::hash::Hash;

use requeue_core::{
    Clock, Completion, DefaultController, Metrics, NoMetrics, NotActive, RateLimiter, Waker, Work,
};

use crate::clock::SystemClock;
use crate::queue::{Guard, Shared};

/// Keys in work, handed out by [`WorkQueue::get_many`](crate::WorkQueue::get_many).
///
/// Dropping the batch completes its keys, as [`done`](Self::done) does. Dropped while its thread
/// unwinds from a panic, it counts a failure of every key and requeues them rate-limited, since
/// nobody knows how far the worker came.
#[must_use = "dropping a batch completes its keys"]
pub struct Batch<'q, K, L = DefaultController, M = NoMetrics, C = SystemClock>
where
    K: Eq + Hash,
    L: RateLimiter,
    M: Metrics,
    C: Clock,
{
    work: Vec<Work<K>>,
    queue: &'q Shared<K, L, M, C>,
}

impl<'q, K, L, M, C> Batch<'q, K, L, M, C>
where
    K: Eq + Hash,
    L: RateLimiter,
    M: Metrics,
    C: Clock,
{
    pub(crate) fn new(work: Vec<Work<K>>, queue: &'q Shared<K, L, M, C>) -> Self {
        Self { work, queue }
    }

    /// The keys, in the order in which they were ready.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &K> {
        self.work.iter().map(|work| &work.key)
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.work.len()
    }

    /// Whether there are none: never so for a batch that was handed out.
    pub fn is_empty(&self) -> bool {
        self.work.is_empty()
    }

    /// Completes all keys under one lock. O(1) per key.
    ///
    /// # Errors
    ///
    /// [`NotActive`] if any key was completed by name meanwhile; the others are completed.
    pub fn done(mut self) -> Result<(), NotActive> {
        let tickets = self.work.drain(..).map(|work| work.ticket);
        self.queue.done_many(tickets)
    }

    /// Makes a guard of each key, so that each can be completed in its own way.
    pub fn into_guards(mut self) -> Vec<Guard<'q, K, L, M, C>> {
        let queue = self.queue;
        let guard = |work| Guard::new(work, queue);
        self.work.drain(..).map(guard).collect()
    }
}

impl<K, L, M, C> Drop for Batch<'_, K, L, M, C>
where
    K: Eq + Hash,
    L: RateLimiter,
    M: Metrics,
    C: Clock,
{
    fn drop(&mut self) {
        if self.work.is_empty() {
            return;
        }
        let tickets = self.work.drain(..).map(|work| work.ticket);
        // A key that was completed by name meanwhile needs nothing more.
        if self.queue.waker().unwinding() {
            for ticket in tickets {
                let _ = self.queue.complete(ticket, Completion::Retry);
            }
        } else {
            let _ = self.queue.done_many(tickets);
        }
    }
}

impl<K, L, M, C> fmt::Debug for Batch<'_, K, L, M, C>
where
    K: Eq + Hash + fmt::Debug,
    L: RateLimiter,
    M: Metrics,
    C: Clock,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.keys()).finish()
    }
}
