//! The queue behind a lock: everything but waiting, written once for every runtime.

use core::hash::Hash;
use core::time::Duration;

use crate::Instant;
use crate::guard::Guard;
use crate::limiter::RateLimiter;
use crate::lock::Lock;
use crate::metrics::Metrics;
use crate::outcome::{
    Added, AddedMany, Completion, Drain, Drained, Effect, Finished, KeyState, Leftover, Limited,
    Next, NotActive, Rejected, Ticket, Work,
};
use crate::queue::Queue;
use crate::slots::Storage;
use crate::time::Clock;
use crate::waiting::Getter;
use crate::waker::Waker;

/// A [`Queue`] with its runtime's [`Lock`], [`Clock`] and [`Waker`].
///
/// Each method reads the clock where time matters, runs the state machine under the lock, unlocks,
/// and wakes whom the state machine names. What is left to a runtime is to wait: its `get` calls
/// [`poll_get`](Self::poll_get) until there is work, and sleeps in between.
///
/// # Examples
///
/// A queue for a bare loop, without threads:
///
/// ```
/// use std::cell::RefCell;
/// use requeue_core::{Clock, Fixed, Instant, Lock, NoLimit, Queue, Waker, WorkQueue};
///
/// struct Single<T>(RefCell<T>);
/// impl<T> Lock for Single<T> {
///     type State = T;
///     fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
///         work(&mut self.0.borrow_mut())
///     }
/// }
///
/// struct Stopped;
/// impl Clock for Stopped {
///     fn now(&self) -> Instant {
///         Instant::EPOCH
///     }
/// }
///
/// struct Restless;
/// impl Waker for Restless {
///     fn wake_one(&self) {}
///     fn wake_all(&self) {}
/// }
///
/// let queue: Queue<&str, Fixed<4>, NoLimit> = Queue::new(NoLimit);
/// let queue = WorkQueue::from_parts(Single(RefCell::new(queue)), Stopped, Restless);
///
/// queue.add("valve").unwrap();
/// let guard = queue.try_get().unwrap();
/// assert_eq!(*guard, "valve");
/// guard.done();
/// assert!(queue.is_empty());
/// ```
#[derive(Debug)]
pub struct WorkQueue<Q, C, W> {
    lock: Q,
    clock: C,
    waker: W,
}

impl<Q, C, W> WorkQueue<Q, C, W> {
    /// Puts a queue together.
    pub const fn from_parts(lock: Q, clock: C, waker: W) -> Self {
        Self { lock, clock, waker }
    }

    /// The lock, for the runtime that waits on it.
    pub const fn lock(&self) -> &Q {
        &self.lock
    }

    /// The clock.
    pub const fn clock(&self) -> &C {
        &self.clock
    }

    /// The waker.
    pub const fn waker(&self) -> &W {
        &self.waker
    }
}

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
    /// Marks a key as having work to do. O(1). Never waits but for the lock.
    ///
    /// # Errors
    ///
    /// [`Rejected`] hands the key back: the queue is shutting down, or the key is new and there is
    /// no room. Nothing has changed then.
    pub fn add(&self, key: K) -> Result<Added, Rejected<K>> {
        self.act(|queue, now| queue.add(key, now))
    }

    /// Adds a key after a delay; of two delays the one that ends first counts. O(log n).
    ///
    /// As in client-go this changes nothing for a key that is ready or in work until the delay is
    /// over, and an [`add`](Self::add) meanwhile does not end it. [`Duration::MAX`] is never.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    pub fn add_after(&self, key: K, delay: Duration) -> Result<Added, Rejected<K>> {
        self.act_now(|queue, now| queue.add_after(key, delay, now))
    }

    /// Adds a key at a point in time of this queue's clock, at once if that has come. O(log n).
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    pub fn add_at(&self, key: K, due: Instant) -> Result<Added, Rejected<K>> {
        self.act_now(|queue, now| queue.add_at(key, due, now))
    }

    /// Counts a failure of a key and adds it once its limiter says so. O(log n).
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add); the limiter is then not charged.
    pub fn add_rate_limited(&self, key: K) -> Result<Limited, Rejected<K>> {
        self.act_now(|queue, now| queue.add_rate_limited(key, now))
    }

    /// Adds many keys under one lock. O(1) per key.
    ///
    /// Every key that is not taken is given to `rejected`. Both the iterator and `rejected` run
    /// while the queue is locked: they must not touch it.
    pub fn add_many(
        &self,
        keys: impl IntoIterator<Item = K>,
        rejected: impl FnMut(Rejected<K>),
    ) -> AddedMany {
        self.act(|queue, now| queue.add_many(keys, now, rejected))
    }

    /// Forgets the failures of a key and answers how many there were. O(1).
    pub fn forget(&self, key: &K) -> u32 {
        self.lock.with(|queue| queue.forget(key))
    }

    /// How many failures the limiter remembers of a key. O(1).
    pub fn num_requeues(&self, key: &K) -> u32 {
        self.lock.with(|queue| queue.num_requeues(key))
    }

    /// Completes the run of a key by name, as client-go's `Done`. O(1).
    ///
    /// The guard that `get` returned does this by itself when it is dropped; a guard whose key was
    /// completed by name has no effect any more.
    ///
    /// # Errors
    ///
    /// [`NotActive`] if the key is not in work: nothing changes.
    pub fn done(&self, key: &K) -> Result<(), NotActive> {
        self.act(|queue, now| queue.done_key(key, now))
    }

    /// Completes a run by its ticket, and says what is to become of the key. O(log n). Guards do
    /// this by themselves.
    ///
    /// # Errors
    ///
    /// [`NotActive`] if the run was completed otherwise: nothing changes.
    pub fn complete(&self, ticket: Ticket, completion: Completion) -> Result<Finished, NotActive> {
        self.act_for(completion, |queue, now| {
            queue.complete(ticket, completion, now)
        })
    }

    /// Completes many runs under one lock. Costs per key as [`complete`](Self::complete). The
    /// iterator must not touch the queue.
    ///
    /// # Errors
    ///
    /// [`NotActive`] if any run was completed otherwise; the others are completed all the same.
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
    pub fn leave(&self, getter: &mut Getter) {
        self.act(|queue, _| queue.leave(getter));
    }

    /// How many keys are ready: client-go's `Len`. O(1).
    pub fn len(&self) -> usize {
        self.act(|queue, now| queue.len(now))
    }

    /// Whether no key is ready. O(1).
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What the queue knows of a key; nothing if it does not hold the key. O(1).
    pub fn state(&self, key: &K) -> Option<KeyState> {
        self.act(|queue, now| queue.state(key, now))
    }

    /// Whether a key is ready, in work or delayed. O(1).
    pub fn contains(&self, key: &K) -> bool {
        self.lock.with(|queue| queue.contains(key))
    }

    /// Takes no more keys, and tells getters that the queue is closed once nothing is ready. Ends
    /// every wait for a drain. O(1), beside waking everybody who waits.
    ///
    /// Keys that are delayed stay until they are [taken](Self::take_delayed) or the queue is
    /// dropped.
    pub fn shut_down(&self) {
        self.act_now(Queue::shut_down);
    }

    /// As [`shut_down`](Self::shut_down), but lets drains wait: what a runtime's waiting form
    /// begins with. O(1), beside waking everybody who waits.
    pub fn begin_drain(&self) -> Drain {
        self.act_now(Queue::shut_down_with_drain)
    }

    /// How a drain stands. O(1).
    pub fn drained(&self, drain: &Drain) -> Drained {
        self.lock.with(|queue| queue.drained(drain))
    }

    /// Whether the queue has been shut down. O(1).
    pub fn shutting_down(&self) -> bool {
        self.lock.with(|queue| queue.shutting_down())
    }

    /// Sets the two gauges of work that is under way, which client-go sets every 500 ms. O(slots).
    pub fn report_running(&self) {
        self.act_now(Queue::report_running);
    }

    /// Runs `work` on the state machine, then wakes whom it names. For runtimes; `now` is the time
    /// only if [`Queue::needs_time`] says that it matters.
    #[inline]
    pub fn act<T>(&self, work: impl FnOnce(&mut Queue<K, S, L, M>, Instant) -> Effect<T>) -> T {
        let Effect { value, wake } = self.lock.with(|queue| {
            let now = if queue.needs_time() {
                self.clock.now()
            } else {
                Instant::EPOCH
            };
            work(queue, now)
        });
        self.waker.obey(wake);
        value
    }

    /// As [`act`](Self::act), for operations that complete a run: most need the time.
    #[inline]
    pub fn act_for<T>(
        &self,
        completion: Completion,
        work: impl FnOnce(&mut Queue<K, S, L, M>, Instant) -> Effect<T>,
    ) -> T {
        if completion.needs_time() {
            self.act_now(work)
        } else {
            self.act(work)
        }
    }

    /// As [`act`](Self::act), for operations that need the time in any case.
    #[inline]
    pub fn act_now<T>(&self, work: impl FnOnce(&mut Queue<K, S, L, M>, Instant) -> Effect<T>) -> T {
        let Effect { value, wake } = self.lock.with(|queue| work(queue, self.clock.now()));
        self.waker.obey(wake);
        value
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
    /// Hands out the first ready key, if there is one. O(1). Never waits but for the lock.
    pub fn try_get(&self) -> Option<Guard<K, &Self>> {
        let work = self.act(Queue::try_get)?;
        Some(Guard::new(work, self))
    }

    /// One look of a getter at the queue: the first step of a runtime's `get`. O(1).
    pub fn poll_get(&self, getter: &mut Getter) -> Next<Work<K>> {
        self.act(|queue, now| queue.get(now, getter))
    }

    /// After shutdown: takes out the delayed key with the earliest deadline. O(log n).
    pub fn take_delayed(&self) -> Option<Leftover<K>> {
        self.lock.with(|queue| queue.take_delayed(self.clock.now()))
    }

    /// After shutdown: takes out the first ready key before a worker gets it. O(log n).
    pub fn take_ready(&self) -> Option<Leftover<K>> {
        self.act(|queue, _| queue.take_ready())
    }
}
