//! Taking keys: the getters, and how they wait.

use std::hash::Hash;
use std::time::Duration;

use requeue_core::binding::{Access, Getter, Look, Next, Wait};
use requeue_core::{Action, GetError, Instant, RateLimiter, Storage};

use crate::queue::{Batch, Guard, Shared, ThreadHost, WorkQueue};
use crate::sync::Parker;

impl<K: Eq + Hash, L: RateLimiter, S: Storage> WorkQueue<K, L, S> {
    /// Returns the first ready key; waits for one if there is none. `None` once the queue is shut
    /// down and no key is ready.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_std::WorkQueue;
    ///
    /// let queue = WorkQueue::new();
    /// let _ = queue.add("node-7");
    /// let guard = queue.get().unwrap();
    /// assert_eq!((*guard, guard.attempt()), ("node-7", 1));
    /// guard.success().unwrap();
    ///
    /// queue.shut_down();
    /// assert!(queue.get().is_none());
    /// ```
    #[must_use = "a guard that is dropped unreported counts as failed, and its key is retried"]
    pub fn get(&self) -> Option<Guard<'_, K, L, S>>
    where
        K: Clone,
    {
        match self.try_get() {
            Some(guard) => Some(guard),
            None => self.wait_for_key(None).ok(),
        }
    }

    /// As [`get`](Self::get), but waits no longer than `timeout`. [`Duration::MAX`] waits as
    /// [`get`](Self::get) does.
    ///
    /// # Errors
    ///
    /// [`GetError`]: no key was ready in time, or the queue is shut down.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use requeue_std::{GetError, WorkQueue};
    ///
    /// let queue = WorkQueue::new();
    /// let _ = queue.add("node-7");
    /// match queue.get_timeout(Duration::from_secs(1)) {
    ///     Ok(guard) => guard.success().map(drop).unwrap(),
    ///     Err(GetError::TimedOut) => println!("nothing to do: time for something else"),
    ///     Err(error) => println!("stopping: {error}"),
    /// }
    /// assert!(!queue.contains(&"node-7"));
    /// ```
    pub fn get_timeout(&self, timeout: Duration) -> Result<Guard<'_, K, L, S>, GetError>
    where
        K: Clone,
    {
        self.get_deadline(self.clock().now() + timeout)
    }

    /// As [`get`](Self::get), but waits no longer than until `deadline` of the queue's clock. A key
    /// that is ready is returned even if the deadline has passed.
    ///
    /// # Errors
    ///
    /// As [`get_timeout`](Self::get_timeout).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use requeue_std::core::binding::Clock;
    /// use requeue_std::{ManualClock, WorkQueue};
    ///
    /// let clock = ManualClock::new();
    /// let queue = WorkQueue::builder().clock(clock.clone()).build();
    /// queue.add_many(["node-7", "node-8"], |_| {});
    ///
    /// // One second for a whole round, however long each key takes.
    /// let deadline = clock.now() + Duration::from_secs(1);
    /// let mut seen = Vec::new();
    /// while let Ok(guard) = queue.get_deadline(deadline) {
    ///     seen.push(*guard);
    ///     guard.success().unwrap();
    ///     clock.advance(Duration::from_millis(500));
    /// }
    /// assert_eq!(seen, ["node-7", "node-8"]);
    /// ```
    pub fn get_deadline(&self, deadline: Instant) -> Result<Guard<'_, K, L, S>, GetError>
    where
        K: Clone,
    {
        let tried = self.try_get();
        tried.map_or_else(|| self.wait_for_key(Some(deadline)), Ok)
    }

    /// Returns up to `max` ready keys, at least one; waits for the first if there is none. `None`
    /// once the queue is shut down and no key is ready. O(1) per key.
    ///
    /// Takes the lock once for up to [`KEYS_PER_LOCK`](requeue_core::binding::KEYS_PER_LOCK) keys.
    /// Of more, another worker may get some in between.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_std::WorkQueue;
    ///
    /// let queue = WorkQueue::new();
    /// queue.add_many(0..5, |rejected| panic!("{rejected}"));
    /// let batch = queue.get_many(3).unwrap();
    /// assert_eq!(batch.keys().copied().collect::<Vec<_>>(), [0, 1, 2]);
    /// batch.success().unwrap();
    /// assert_eq!(queue.len(), 2);
    /// ```
    #[must_use = "a batch that is dropped unreported counts as failed, and its keys are retried"]
    pub fn get_many(&self, max: usize) -> Option<Batch<'_, K, L, S>>
    where
        K: Clone,
    {
        let mut batch = Batch::take(&*self.shared, max);
        if batch.is_empty() {
            let call = Wait::for_key(&*self.shared);
            self.wait(call, None, |session, getter| {
                batch.poll_get(max, session, getter)
            })
            .ok()?;
            batch.fill_further(max);
        }
        Some(batch)
    }

    /// Ends a run and returns the next key, under one lock: what a worker's loop does. Waits as
    /// [`get`](Self::get).
    ///
    /// A guard of another queue ends its run in that queue. Finish the guard yourself to learn what
    /// became of the key.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_std::{Action, WorkQueue};
    ///
    /// let queue = WorkQueue::new();
    /// queue.add_many(["a", "b"], |_| {});
    /// queue.shut_down();
    ///
    /// let mut seen = Vec::new();
    /// let mut next = queue.get();
    /// while let Some(guard) = next {
    ///     seen.push(*guard);
    ///     next = queue.next(guard, Action::Success);
    /// }
    /// assert_eq!(seen, ["a", "b"]);
    /// ```
    #[must_use = "a guard that is dropped unreported counts as failed, and its key is retried"]
    pub fn next(&self, guard: Guard<'_, K, L, S>, action: Action) -> Option<Guard<'_, K, L, S>>
    where
        K: Clone,
    {
        match self.try_next(guard, action) {
            Some(guard) => Some(guard),
            None => self.wait_for_key(None).ok(),
        }
    }

    /// Waits for a key, of which most calls find one without.
    #[cold]
    fn wait_for_key(&self, deadline: Option<Instant>) -> Result<Guard<'_, K, L, S>, GetError>
    where
        K: Clone,
    {
        let call = Wait::for_key(&*self.shared);
        let work = self.wait(call, deadline, |session, getter| session.poll_get(getter))?;
        Ok(Guard::new(work, &*self.shared))
    }

    /// Looks until there is a result, and sleeps in between.
    pub(crate) fn wait<T>(
        &self,
        mut call: Call<'_, K, L, S>,
        deadline: Option<Instant>,
        mut look: impl FnMut(&mut Access<'_, ThreadHost<K, L, S>>, &mut Getter) -> Next<T>,
    ) -> Result<T, GetError> {
        Parker::with(|parker| {
            loop {
                match call.look(parker.waker(), deadline, &mut look) {
                    Look::Done(result) => return result,
                    Look::Sleep { until } => self.clock().park(parker, until),
                }
            }
        })
    }
}

/// A call that waits.
pub(crate) type Call<'q, K, L, S> = Wait<ThreadHost<K, L, S>, &'q Shared<K, L, S>>;
