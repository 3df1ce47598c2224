//! Many keys that were handed out together, and end together. Owns their tickets; never decides how
//! many keys one lock hands out.

use alloc::vec::Vec;
use core::fmt;
use core::mem;
use core::ops::Deref;

use crate::action::Action;
use crate::guard::Guard;
use crate::outcome::{Next, WaitError};
use crate::shared::{Access, Host, Shared};
use crate::sleepers::Getter;
use crate::storage::Storage;
use crate::timer::Timer;
use crate::wait::{Wait, try_in_turn};
use crate::work::{Ticket, Work};

/// Active keys that were handed out together.
///
/// **A batch that is dropped unreported counts as failed**: every key in it is retried when its
/// limiter says so, as with a [`Guard`].
///
/// `H` is how the batch refers to its queue, as with a [`Guard`].
///
/// # Examples
///
/// A runtime makes one like this; `requeue-std` does so in `get_many`:
///
/// ```
#[doc = include_str!("shared/example.txt")]
/// queue.add_many(["node-7", "node-8", "node-9"], |_| {});
///
/// let batch = Batch::take(&queue, 2);
/// assert!(batch.keys().eq(&["node-7", "node-8"]));
/// batch.success();
/// assert_eq!(queue.len(), 1);
/// ```
#[must_use = "a batch that is dropped unreported counts as failed, and its keys are retried"]
pub struct Batch<H: Host, R: Deref<Target = Shared<H>>> {
    work: Vec<Work<H::Key>>,
    queue: R,
}

impl<H: Host, R: Deref<Target = Shared<H>>> Batch<H, R> {
    /// Takes up to `max` keys that are ready, at least one if there is one. The batch is empty if
    /// none is ready. For runtimes. Costs as [`fill`](Self::fill).
    pub fn take(queue: R, max: usize) -> Self
    where
        H::Key: Clone,
    {
        let mut batch = Self::new(queue);
        batch.fill(max);
        batch
    }

    /// An empty batch. It exists before it takes a key, so that it gives its keys back if a key's
    /// clone panics.
    fn new(queue: R) -> Self {
        let work = Vec::new();
        Self { work, queue }
    }

    /// Adds keys that are ready, until the batch has `max` of them, at least one, or none is ready:
    /// up to [`KEYS_PER_LOCK`](Storage::KEYS_PER_LOCK) under one lock. For runtimes. O(1) per key.
    pub fn fill(&mut self, max: usize)
    where
        H::Key: Clone,
    {
        let max = max.max(1);
        let Self { work, queue } = self;
        while work.len() < max {
            let chunk = H::Storage::KEYS_PER_LOCK.min(max - work.len());
            // Done before the lock, because it may copy the batch.
            work.reserve(chunk);
            let take = |run| work.push(run);
            if queue.with(|session| session.try_get_many(chunk, take)) < chunk {
                return;
            }
        }
    }

    /// Looks for the first keys of a batch that is empty: the look of a [`Wait`] that waits for up
    /// to `max` of them. If it took [`KEYS_PER_LOCK`](Storage::KEYS_PER_LOCK), [`fill`](Self::fill)
    /// adds the rest. Otherwise it has taken all there was. For runtimes. Costs as
    /// [`Session::poll_get_many`](crate::Session::poll_get_many).
    pub fn poll_get(
        &mut self,
        max: usize,
        session: &mut Access<'_, H>,
        getter: &mut Getter,
    ) -> Next<usize>
    where
        H::Key: Clone,
    {
        let chunk = max.min(H::Storage::KEYS_PER_LOCK);
        session.poll_get_many(chunk, getter, |run| self.work.push(run))
    }

    /// Takes up to `max` keys, at least one; waits for the first if none is ready. For runtimes of
    /// tasks. Costs as [`fill`](Self::fill).
    ///
    /// # Errors
    ///
    /// [`WaitError`] says why there is no key.
    ///
    /// # Cancel safety
    ///
    /// The future may be dropped at any time, and takes no key then.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("shared/example_tasks.txt")]
    /// let mut batch = pin!(Batch::wait(&queue, 2));
    /// assert!(poll(batch.as_mut()).is_pending());
    /// queue.add_many(["node-7", "node-8", "node-9"], |_| {});
    /// let Poll::Ready(Ok(batch)) = poll(batch) else {
    ///     panic!("keys are ready");
    /// };
    /// assert!(batch.keys().eq(&["node-7", "node-8"]));
    /// # batch.success();
    /// ```
    pub async fn wait(queue: R, max: usize) -> Result<Self, WaitError>
    where
        H: Host<Key: Clone, Clock: Timer>,
    {
        let mut batch = Self::new(queue);
        try_in_turn::<H::Clock, _>(|| batch.fill(max)).await;
        if batch.is_empty() {
            let Self { work, queue } = &mut batch;
            let mut call = Wait::for_key(&**queue);
            let chunk = max.min(H::Storage::KEYS_PER_LOCK);
            call.wait(None, |session, getter| {
                session.poll_get_many(chunk, getter, |run| work.push(run))
            })
            .await?;
            drop(call);
            if batch.len() == H::Storage::KEYS_PER_LOCK {
                batch.fill(max);
            }
        }
        Ok(batch)
    }

    /// Returns the keys, in the order in which they were ready. The [type](Self) has an example.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &H::Key> {
        self.work.iter().map(|work| &work.key)
    }

    /// Returns the keys that were [cancelled](crate::binding::Shared::cancel) since they were
    /// handed out. O(1) per key, each under a lock of its own. See [`Guard::is_cancelled`].
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("shared/example.txt")]
    /// queue.add_many(["node-7", "node-8"], |_| {});
    /// let batch = Batch::take(&queue, 2);
    /// queue.cancel("node-8");
    /// assert!(batch.cancelled().eq(&["node-8"]));
    /// # batch.success();
    /// ```
    pub fn cancelled(&self) -> impl Iterator<Item = &H::Key> {
        let cancelled = |work: &&Work<H::Key>| self.queue.is_cancelled(&work.ticket);
        self.work.iter().filter(cancelled).map(|work| &work.key)
    }

    /// Returns the number of keys. O(1).
    pub fn len(&self) -> usize {
        self.work.len()
    }

    /// Returns whether the batch has no keys. Never true for a batch that a runtime's `get_many`
    /// has returned. O(1).
    pub fn is_empty(&self) -> bool {
        self.work.is_empty()
    }

    /// Ends all runs with [`Action::Success`], and returns what [`finish`](Self::finish) returns.
    /// O(1) per key.
    pub fn success(self) -> usize {
        self.finish(Action::Success)
    }

    /// Ends all runs with [`Action::Release`], and returns what [`finish`](Self::finish) returns.
    /// O(1) per key.
    pub fn release(self) -> usize {
        self.finish(Action::Release)
    }

    /// Ends all runs with one action, up to [`KEYS_PER_LOCK`](Storage::KEYS_PER_LOCK) under one
    /// lock. Costs per key as [`Guard::finish`](crate::Guard::finish).
    ///
    /// Returns how many of the runs [`release_key`](crate::binding::Shared::release_key) had ended
    /// before, usually 0.
    pub fn finish(mut self, action: Action) -> usize {
        self.end(action)
    }

    /// Ends all runs, including those after one whose key panics.
    fn end(&mut self, action: Action) -> usize {
        let rest = Rest {
            work: &self.work,
            queue: &*self.queue,
            action,
        };
        let stale = self.queue.finish_many(rest.tickets(), action);
        mem::forget(rest);
        // The runs have ended, so a key's `Drop` may panic now.
        self.work.clear();
        stale
    }

    /// Turns each run into a guard, so that each can end with its own action. O(1) per key.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("shared/example.txt")]
    /// queue.add_many(["node-7", "disk-1"], |_| {});
    /// let batch = Batch::take(&queue, 2);
    /// for guard in batch.into_guards() {
    ///     let is_node = guard.starts_with("node-");
    ///     guard.finish(if is_node { Action::Success } else { Action::Retry });
    /// }
    /// assert_eq!(queue.failures("node-7"), 0);
    /// assert_eq!(queue.failures("disk-1"), 1);
    /// ```
    pub fn into_guards(mut self) -> Vec<Guard<H, R>>
    where
        R: Clone,
    {
        let queue = self.queue.clone();
        let guard = |work| Guard::new(work, queue.clone());
        self.work.drain(..).map(guard).collect()
    }
}

impl<H: Host, R: Deref<Target = Shared<H>>> Drop for Batch<H, R> {
    fn drop(&mut self) {
        if !self.work.is_empty() {
            self.end(Action::Retry);
        }
    }
}

/// Dropped only if a key panics while its batch is ended.
struct Rest<'b, H: Host> {
    work: &'b [Work<H::Key>],
    queue: &'b Shared<H>,
    action: Action,
}

impl<H: Host> Rest<'_, H> {
    /// Copies the tickets. A copy whose run has already ended is stale.
    fn tickets(&self) -> impl Iterator<Item = Ticket> {
        let copy = |ticket: &Ticket| Ticket {
            id: ticket.id,
            run: ticket.run,
        };
        self.work.iter().map(move |work| copy(&work.ticket))
    }
}

impl<H: Host> Drop for Rest<'_, H> {
    fn drop(&mut self) {
        self.queue.finish_many(self.tickets(), self.action);
    }
}

impl<H: Host<Key: fmt::Debug>, R: Deref<Target = Shared<H>>> fmt::Debug for Batch<H, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.keys()).finish()
    }
}
