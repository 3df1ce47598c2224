//! Taking keys: the getters, and how they wait.

use std::hash::Hash;
use std::time::Duration;

use requeue_core::{
    Clock, Completion, Effect, GetError, Getter, Instant, Leftover, Metrics, Next, Queue,
    RateLimiter, Storage, Turn, Waker,
};

use crate::clock::Timer;
use crate::queue::{Batch, Guard, Shared, State, WorkQueue};

impl<K, L, M, C, S> WorkQueue<K, L, M, C, S>
where
    K: Eq + Hash + Clone,
    L: RateLimiter,
    M: Metrics,
    S: Storage,
    C: Timer,
{
    /// Hands out the first ready key; waits for one if there is none. Nothing once the queue is
    /// shut down and no key is ready.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_std::WorkQueue;
    ///
    /// let queue = WorkQueue::new();
    /// queue.add("node-7").unwrap();
    /// let guard = queue.get().unwrap();
    /// assert_eq!((*guard, guard.attempt()), ("node-7", 1));
    /// guard.forget().unwrap();
    ///
    /// queue.shut_down();
    /// assert!(queue.get().is_none());
    /// ```
    pub fn get(&self) -> Option<Guard<'_, K, L, M, C, S>> {
        let work = self.wait(None, Queue::get).ok()?;
        Some(Guard::new(work, &*self.shared))
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
    /// queue.add("node-7").unwrap();
    /// match queue.get_timeout(Duration::from_secs(1)) {
    ///     Ok(guard) => guard.forget().map(drop).unwrap(),
    ///     Err(GetError::TimedOut) => println!("nothing to do: time for something else"),
    ///     Err(error) => println!("stopping: {error}"),
    /// }
    /// assert!(!queue.contains(&"node-7"));
    /// ```
    pub fn get_timeout(&self, timeout: Duration) -> Result<Guard<'_, K, L, M, C, S>, GetError> {
        self.get_deadline(self.clock().now() + timeout)
    }

    /// As [`get`](Self::get), but waits no longer than until `deadline` of the queue's clock. A key
    /// that is ready is handed out even if the deadline has passed.
    ///
    /// # Errors
    ///
    /// As [`get_timeout`](Self::get_timeout).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use requeue_std::core::Clock;
    /// use requeue_std::{ManualClock, Queue, WorkQueue};
    ///
    /// let clock = ManualClock::new();
    /// let queue = WorkQueue::from_queue(Queue::builder().build(), clock.clone());
    /// queue.add_many(["node-7", "node-8"], |_| {});
    ///
    /// // One second for a whole round, however long each key takes.
    /// let deadline = clock.now() + Duration::from_secs(1);
    /// let mut seen = Vec::new();
    /// while let Ok(guard) = queue.get_deadline(deadline) {
    ///     seen.push(*guard);
    ///     clock.advance(Duration::from_millis(500));
    /// }
    /// assert_eq!(seen, ["node-7", "node-8"]);
    /// ```
    pub fn get_deadline(&self, deadline: Instant) -> Result<Guard<'_, K, L, M, C, S>, GetError> {
        let work = self.wait(Some(deadline), Queue::get)?;
        Ok(Guard::new(work, &*self.shared))
    }

    /// Hands out up to `max` ready keys, one at least, under one lock; waits for the first if there
    /// is none. Nothing once the queue is shut down and no key is ready. O(1) per key.
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
    /// batch.done();
    /// assert_eq!(queue.len(), 2);
    /// ```
    pub fn get_many(&self, max: usize) -> Option<Batch<'_, K, L, M, C, S>> {
        // A batch from the start: if a key's clone panics, those before it are given back.
        let work = Vec::with_capacity(max.min(BATCH_RESERVE_MAX));
        let mut batch = Batch::new(work, &*self.shared);
        self.wait(None, |queue, now, getter| {
            queue.get_many(max, now, getter, |taken| batch.push(taken))
        })
        .ok()?;
        Some(batch)
    }

    /// Completes a key as told and hands out the next, under one lock: what a worker's loop does.
    /// Waits as [`get`](Self::get).
    ///
    /// A guard of another queue is completed there. To learn what became of the key, complete it by
    /// its guard.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_std::{Completion, WorkQueue};
    ///
    /// let queue = WorkQueue::new();
    /// queue.add_many(["a", "b"], |_| {});
    /// queue.shut_down();
    ///
    /// let mut seen = Vec::new();
    /// let mut next = queue.get();
    /// while let Some(guard) = next {
    ///     seen.push(*guard);
    ///     next = queue.next(guard, Completion::Succeeded);
    /// }
    /// assert_eq!(seen, ["a", "b"]);
    /// ```
    pub fn next(
        &self,
        guard: Guard<'_, K, L, M, C, S>,
        completion: Completion,
    ) -> Option<Guard<'_, K, L, M, C, S>> {
        let mut turn = Turn::new(&*self.shared, guard, completion);
        let look = |state: &mut _, now, getter: &mut _| turn.look(state, now, getter);
        let work = self.wait(None, look);
        Some(Guard::new(work.ok()?, &*self.shared))
    }

    /// After shutdown: takes out every key that has not been worked on, ready keys first, then
    /// delayed ones in the order of their deadlines. Keys in work are not touched; nothing comes
    /// out before shutdown. O(log n) per key, each under a lock of its own.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use requeue_std::WorkQueue;
    ///
    /// let queue = WorkQueue::new();
    /// queue.add_after("lease-3", Duration::from_secs(60)).unwrap();
    /// queue.add("node-7").unwrap();
    /// queue.shut_down();
    /// let keys: Vec<_> = queue.leftovers().into_iter().map(|left| left.key).collect();
    /// assert_eq!(keys, ["node-7", "lease-3"]);
    /// ```
    pub fn leftovers(&self) -> Vec<Leftover<K>> {
        self.shared.leftovers().collect()
    }

    /// The loop of every getter: look, return, or sleep until woken or until the deadline.
    fn wait<T>(
        &self,
        deadline: Option<Instant>,
        mut look: impl FnMut(&mut State<K, S, L, M>, Instant, &mut Getter) -> Effect<Next<T>>,
    ) -> Result<T, GetError> {
        let mut sleeper = Sleeper {
            queue: &self.shared,
            getter: Getter::new(),
            is_asleep: false,
        };
        let mut state = self.lock().lock();
        loop {
            let now = if state.needs_time() || deadline.is_some() {
                self.clock().now()
            } else {
                Instant::EPOCH
            };
            let Effect { value, wake } = look(&mut state, now, &mut sleeper.getter);
            let until = match value {
                Next::Wait { until } => until,
                Next::Work(work) => {
                    sleeper.is_asleep = false;
                    drop(state);
                    self.waker().obey(wake);
                    return Ok(work);
                }
                Next::Closed => {
                    sleeper.is_asleep = false;
                    drop(state);
                    self.waker().obey(wake);
                    return Err(GetError::Closed);
                }
            };
            sleeper.is_asleep = true;
            self.waker().obey(wake);
            if deadline.is_some_and(|deadline| now >= deadline) {
                drop(state);
                // Dropping the sleeper wakes another in its place, if need be.
                return Err(GetError::TimedOut);
            }
            let until = [until, deadline].into_iter().flatten().min();
            self.clock().wait(&self.waker().getters, &mut state, until);
        }
    }
}

/// What `get_many` reserves at most before it knows how many keys there are.
const BATCH_RESERVE_MAX: usize = 64;

/// A call that waits. If it gives up while it counts as asleep, the queue is told; if it unwinds
/// from a panic in a key's code, nobody has said whom to wake, and so everybody looks for himself.
struct Sleeper<'q, K: Eq + Hash, L: RateLimiter, M: Metrics, C: Clock, S: Storage> {
    queue: &'q Shared<K, L, M, C, S>,
    getter: Getter,
    is_asleep: bool,
}

impl<K: Eq + Hash, L: RateLimiter, M: Metrics, C: Clock, S: Storage> Drop
    for Sleeper<'_, K, L, M, C, S>
{
    fn drop(&mut self) {
        if self.is_asleep {
            self.queue.leave(&mut self.getter);
        }
        if std::thread::panicking() {
            self.queue.waker().wake_all();
        }
    }
}
