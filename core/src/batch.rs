//! Many keys in work, completed under one lock.

use alloc::vec::Vec;
use core::fmt;
use core::mem;
use core::ops::Deref;

use crate::guard::{Complete, FactsFrom, Guard};
use crate::outcome::{Completion, NotActive};
use crate::work::{Ticket, Work};

/// Keys in work that were handed out together.
///
/// Dropping the batch completes its keys, as [`done`](Self::done) does. Dropped where its runtime
/// calls it [abandoned](crate::Waker::is_abandoned), it counts a failure of every key and requeues
/// them rate-limited, since nobody knows how far the worker came.
///
/// `H` is how the batch holds its queue, as with a [`Guard`].
///
/// # Examples
///
/// How a runtime makes one; `requeue-std` does it in `get_many`:
///
/// ```
#[doc = include_str!("work_queue/example.txt")]
/// queue.add_many(["node-7", "node-8", "node-9"], |_| {});
///
/// let mut getter = Getter::new();
/// let mut work = Vec::new();
/// let _ = queue.act(|queue, now| queue.get_many(2, now, &mut getter, |one| work.push(one)));
/// let batch = Batch::new(work, &queue);
/// assert_eq!(batch.len(), 2);
/// assert!(batch.keys().eq(&["node-7", "node-8"]));
/// batch.done().unwrap();
/// assert_eq!(queue.len(), 1);
/// ```
#[must_use = "dropping a batch completes its keys"]
pub struct Batch<K, H>
where
    H: Deref<Target: Complete>,
{
    work: Vec<Work<K, FactsFrom<H>>>,
    queue: H,
}

impl<K, H: Deref<Target: Complete>> Batch<K, H> {
    /// The batch of runs that have been handed out by `queue`; for runtimes. O(1).
    pub fn new(work: Vec<Work<K, FactsFrom<H>>>, queue: H) -> Self {
        Self { work, queue }
    }

    /// Takes another run of the same queue in.
    pub fn push(&mut self, work: Work<K, FactsFrom<H>>) {
        self.work.push(work);
    }

    /// The keys, in the order in which they were ready. The example of the [type](Self) looks at
    /// them.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &K> {
        self.work.iter().map(|work| &work.key)
    }

    /// How many keys there are. O(1).
    pub fn len(&self) -> usize {
        self.work.len()
    }

    /// Whether there are none: never so for a batch that a queue has handed out. O(1).
    pub fn is_empty(&self) -> bool {
        self.work.is_empty()
    }

    /// Completes all keys under one lock. O(1) per key.
    ///
    /// # Errors
    ///
    /// [`NotActive`] if any key was completed by name meanwhile; the others are completed all the
    /// same.
    pub fn done(mut self) -> Result<(), NotActive> {
        self.complete(Completion::Done)
    }

    /// Completes all keys, also those behind one whose code panics.
    fn complete(&mut self, completion: Completion) -> Result<(), NotActive> {
        let rest = Rest {
            work: &self.work,
            queue: &*self.queue,
            completion,
        };
        let outcome = self.queue.complete_many(rest.tickets(), completion);
        mem::forget(rest);
        // Only now, as their code may panic, too.
        self.work.clear();
        outcome
    }

    /// Makes a guard of each key, so that each can be completed in its own way. O(1) per key.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("work_queue/example.txt")]
    /// queue.add_many(["node-7", "disk-1"], |_| {});
    /// let mut getter = Getter::new();
    /// let mut work = Vec::new();
    /// let _ = queue.act(|queue, now| queue.get_many(2, now, &mut getter, |one| work.push(one)));
    ///
    /// for guard in Batch::new(work, &queue).into_guards() {
    ///     let is_node = guard.starts_with("node-");
    ///     let finished = if is_node { guard.forget() } else { guard.retry() };
    ///     finished.unwrap();
    /// }
    /// assert_eq!(queue.num_requeues(&"node-7"), 0);
    /// assert_eq!(queue.num_requeues(&"disk-1"), 1);
    /// ```
    pub fn into_guards(mut self) -> Vec<Guard<K, H>>
    where
        H: Clone,
    {
        let queue = self.queue.clone();
        let guard = |work| Guard::new(work, queue.clone());
        self.work.drain(..).map(guard).collect()
    }
}

impl<K, H: Deref<Target: Complete>> Drop for Batch<K, H> {
    fn drop(&mut self) {
        if !self.work.is_empty() {
            let completion = self.queue.completion_on_drop();
            // A key that was completed by name meanwhile needs nothing more.
            let _ = self.complete(completion);
        }
    }
}

/// Dropped only if a key's code has panicked while its batch was completed.
struct Rest<'b, K, F, Q: Complete + ?Sized> {
    work: &'b [Work<K, F>],
    queue: &'b Q,
    completion: Completion,
}

impl<K, F, Q: Complete + ?Sized> Rest<'_, K, F, Q> {
    /// Copies: that of a run which is over by then is stale.
    fn tickets(&self) -> impl Iterator<Item = Ticket> {
        let copy = |ticket: &Ticket| Ticket {
            id: ticket.id,
            run: ticket.run,
        };
        self.work.iter().map(move |work| copy(&work.ticket))
    }
}

impl<K, F, Q: Complete + ?Sized> Drop for Rest<'_, K, F, Q> {
    fn drop(&mut self) {
        let _ = self.queue.complete_many(self.tickets(), self.completion);
    }
}

impl<K: fmt::Debug, H: Deref<Target: Complete>> fmt::Debug for Batch<K, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.keys()).finish()
    }
}
