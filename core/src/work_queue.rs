//! The queue behind a lock: everything but waiting, written once for every runtime.

use core::hash::Hash;
use core::time::Duration;

use crate::Instant;
use crate::guard::Guard;
use crate::limiter::RateLimiter;
use crate::lock::Lock;
use crate::metrics::Metrics;
use crate::options::AddOptions;
use crate::outcome::{
    Added, AddedMany, Completion, Drain, Drained, Effect, Finished, KeyState, Leftover, Limited,
    Next, NotActive, Rejected, Wake,
};
use crate::queue::Queue;
use crate::slots::Storage;
use crate::time::Clock;
use crate::waiting::Getter;
use crate::waker::Waker;
use crate::work::{Ticket, WorkOf};

/// A [`Queue`] with its runtime's [`Lock`], [`Clock`] and [`Waker`].
///
/// Each method reads the clock where time matters, runs the state machine under the lock, unlocks,
/// and wakes whom the state machine names. What is left to a runtime is to wait: its `get` calls
/// [`poll_get`](Self::poll_get) until there is work, and sleeps in between.
///
/// # Panics
///
/// A panic in a key's `Hash`, `Eq`, `Clone` or `Drop` reaches the caller: see
/// [`Queue`](Queue#keys). The methods themselves do not panic.
///
/// # Examples
///
/// A queue for a bare loop, without threads. The examples of the methods use this one, with
/// [`default_item_based`](crate::default_item_based) for a limiter:
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
    /// Puts a queue together, as in the example of the [type](Self). O(1).
    pub const fn from_parts(lock: Q, clock: C, waker: W) -> Self {
        Self { lock, clock, waker }
    }

    /// The lock, for the runtime that waits on it. O(1).
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("work_queue/example.txt")]
    /// // The state machine tells more than the methods here.
    /// let held = queue.lock().with(|queue| queue.held_len());
    /// assert_eq!(held, 0);
    /// ```
    pub const fn lock(&self) -> &Q {
        &self.lock
    }

    /// The clock, by which the deadlines of [`add_at`](Self::add_at) are reckoned. O(1).
    pub const fn clock(&self) -> &C {
        &self.clock
    }

    /// The waker. O(1).
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
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("work_queue/example.txt")]
    /// assert_eq!(queue.add("node-7"), Ok(Added::Ready));
    /// assert_eq!(queue.add("node-7"), Ok(Added::Coalesced));
    /// queue.shut_down();
    /// assert_eq!(queue.add("node-7"), Err(Rejected::Closed("node-7")));
    /// ```
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
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("work_queue/example.txt")]
    /// use core::time::Duration;
    ///
    /// let minute = Duration::from_secs(60);
    /// assert_eq!(queue.add_after("lease-3", minute), Ok(Added::Delayed));
    /// assert_eq!(queue.add_after("lease-3", minute / 2), Ok(Added::Sooner));
    /// assert_eq!(queue.add("lease-3"), Ok(Added::Ready), "it runs now, and once more in 30 s");
    /// ```
    pub fn add_after(&self, key: K, delay: Duration) -> Result<Added, Rejected<K>> {
        self.act_now(|queue, now| queue.add_after(key, delay, now))
    }

    /// Adds a key at a point in time of this queue's clock, at once if that has come. O(log n).
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("work_queue/example.txt")]
    /// use core::time::Duration;
    ///
    /// let full_hour = Instant::EPOCH + Duration::from_secs(3600);
    /// assert_eq!(queue.add_at("report", full_hour), Ok(Added::Delayed));
    /// assert_eq!(queue.state(&"report").unwrap().due, Some(full_hour));
    /// ```
    pub fn add_at(&self, key: K, due: Instant) -> Result<Added, Rejected<K>> {
        self.act_now(|queue, now| queue.add_at(key, due, now))
    }

    /// Counts a failure of a key and adds it once its limiter says so. O(log n).
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add); the limiter is then not charged.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("work_queue/example.txt")]
    /// let first = queue.add_rate_limited("node-7").unwrap().delay;
    /// let second = queue.add_rate_limited("node-7").unwrap().delay;
    /// assert_eq!((first.as_millis(), second.as_millis()), (1, 2));
    /// ```
    pub fn add_rate_limited(&self, key: K) -> Result<Limited, Rejected<K>> {
        self.act_now(|queue, now| queue.add_rate_limited(key, now))
    }

    /// [`Queue::add_with`].
    ///
    /// # Errors
    ///
    /// [`Rejected`] hands the key back; nothing has changed.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("work_queue/example.txt")]
    /// let once = AddOptions { expedite: true, ..AddOptions::new() };
    /// queue.add_after("node-7", core::time::Duration::from_secs(60)).unwrap();
    /// queue.add_with("node-7", once).unwrap();
    /// assert_eq!(queue.state(&"node-7").unwrap().due, None, "it is worked on now, and only now");
    /// ```
    pub fn add_with(&self, key: K, options: AddOptions) -> Result<Limited, Rejected<K>> {
        let add = |queue: &mut Queue<K, S, L, M>, now| queue.add_with(key, options, now);
        if options.needs_time() {
            self.act_now(add)
        } else {
            self.act(add)
        }
    }

    /// Adds many keys under one lock. O(1) per key.
    ///
    /// Every key that is not taken is given to `rejected`. Both the iterator and `rejected` run
    /// while the queue is locked: they must not touch it.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("work_queue/example.txt")]
    /// let nodes = ["node-1", "node-2", "node-3", "node-4", "node-5"];
    /// let mut refused = Vec::new();
    /// let many = queue.add_many(nodes, |rejected| refused.push(rejected.into_key()));
    /// assert_eq!(many.ready, 4);
    /// assert_eq!(refused, ["node-5"]);
    /// ```
    pub fn add_many(
        &self,
        keys: impl IntoIterator<Item = K>,
        rejected: impl FnMut(Rejected<K>),
    ) -> AddedMany {
        self.act(|queue, now| queue.add_many(keys, now, rejected))
    }

    /// Forgets the failures of a key and answers how many there were. O(1).
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("work_queue/example.txt")]
    /// queue.add_rate_limited("node-7").unwrap();
    /// assert_eq!(queue.num_requeues(&"node-7"), 1);
    /// assert_eq!(queue.forget(&"node-7"), 1);
    /// assert_eq!(queue.num_requeues(&"node-7"), 0);
    /// ```
    pub fn forget(&self, key: &K) -> u32 {
        self.lock.with(|queue| queue.forget(key))
    }

    /// How many failures the limiter remembers of a key; [`forget`](Self::forget) has an example.
    /// O(1).
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
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("work_queue/example.txt")]
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
    #[doc = include_str!("work_queue/example.txt")]
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
    #[doc = include_str!("work_queue/example.txt")]
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
    #[doc = include_str!("work_queue/example.txt")]
    /// let mut getter = Getter::new();
    /// assert_eq!(queue.poll_get(&mut getter), Next::Wait { until: None });
    /// // What a runtime does when the task that waits is dropped.
    /// queue.leave(&mut getter);
    /// ```
    pub fn leave(&self, getter: &mut Getter) {
        self.act(|queue, _| queue.leave(getter));
    }

    /// How many keys are ready: client-go's `Len`. Keys in work and delayed keys do not count.
    /// O(1), and O(log n) for each deadline that has come.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("work_queue/example.txt")]
    /// queue.add_many(["node-7", "node-8"], |_| {});
    /// let guard = queue.try_get().unwrap();
    /// assert_eq!(queue.len(), 1, "a key in work is not ready");
    /// drop(guard);
    /// ```
    pub fn len(&self) -> usize {
        self.act(|queue, now| queue.len(now))
    }

    /// Whether no key is ready. Costs as [`len`](Self::len).
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What the queue knows of a key; nothing if it does not hold the key. Costs as
    /// [`len`](Self::len).
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("work_queue/example.txt")]
    /// queue.add("node-7").unwrap();
    /// let guard = queue.try_get().unwrap();
    /// queue.add("node-7").unwrap();
    /// let state = queue.state(&guard).unwrap();
    /// assert!(state.active && state.dirty);
    /// assert!(queue.state(&"node-8").is_none());
    /// ```
    pub fn state(&self, key: &K) -> Option<KeyState> {
        self.act(|queue, now| queue.state(key, now))
    }

    /// Whether a key is ready, in work or delayed. O(1).
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("work_queue/example.txt")]
    /// queue.add("node-7").unwrap();
    /// assert!(queue.contains(&"node-7"));
    /// queue.try_get().unwrap().forget().unwrap();
    /// assert!(!queue.contains(&"node-7"));
    /// ```
    pub fn contains(&self, key: &K) -> bool {
        self.lock.with(|queue| queue.contains(key))
    }

    /// Takes no more keys, and tells getters that the queue is closed once nothing is ready. Ends
    /// every wait for a drain. O(1), beside waking everybody who waits.
    ///
    /// Keys that are delayed stay until they are [taken](Self::take_delayed) or the queue is
    /// dropped.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("work_queue/example.txt")]
    /// queue.add("node-7").unwrap();
    /// queue.shut_down();
    /// assert!(queue.shutting_down());
    /// assert_eq!(*queue.try_get().unwrap(), "node-7", "what was ready is handed out");
    /// assert_eq!(queue.poll_get(&mut Getter::new()), Next::Closed);
    /// ```
    pub fn shut_down(&self) {
        self.act_now(Queue::shut_down);
    }

    /// As [`shut_down`](Self::shut_down), but lets drains wait: what a runtime's waiting form
    /// begins with. O(1), beside waking everybody who waits.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("work_queue/example.txt")]
    /// queue.add("node-7").unwrap();
    /// let drain = queue.begin_drain();
    /// assert_eq!(queue.drained(&drain), Drained::Pending);
    /// queue.try_get().unwrap().forget().unwrap();
    /// assert_eq!(queue.drained(&drain), Drained::Complete);
    /// ```
    pub fn begin_drain(&self) -> Drain {
        self.act_now(Queue::shut_down_with_drain)
    }

    /// How a drain stands; [`begin_drain`](Self::begin_drain) has an example. O(1).
    pub fn drained(&self, drain: &Drain) -> Drained {
        self.lock.with(|queue| queue.drained(drain))
    }

    /// Whether the queue has been shut down; [`shut_down`](Self::shut_down) has an example. O(1).
    pub fn shutting_down(&self) -> bool {
        self.lock.with(|queue| queue.shutting_down())
    }

    /// Sets the two gauges of work that is under way, which client-go sets every 500 ms:
    /// [`Queue::report_running`] has an example. O(slots).
    pub fn report_running(&self) {
        self.act_now(Queue::report_running);
    }

    /// Runs `work` on the state machine, then wakes whom it names. For runtimes; `now` is the time
    /// only if [`Queue::needs_time`] says that it matters.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("work_queue/example.txt")]
    /// // Two looks at one moment, under one lock.
    /// let (ready, active) = queue.act(|queue, now| {
    ///     let active = queue.active_len();
    ///     queue.len(now).map(|ready| (ready, active))
    /// });
    /// assert_eq!((ready, active), (0, 0));
    /// ```
    #[inline]
    pub fn act<T>(&self, work: impl FnOnce(&mut Queue<K, S, L, M>, Instant) -> Effect<T>) -> T {
        self.run(|queue| {
            let now = if queue.needs_time() {
                self.clock.now()
            } else {
                Instant::EPOCH
            };
            work(queue, now)
        })
    }

    /// As [`act`](Self::act), for operations that complete a run: the clock is read also if
    /// [the completion](Completion::needs_time) needs it. [`complete`](Self::complete) is made of
    /// it.
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
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("work_queue/example.txt")]
    /// use core::time::Duration;
    ///
    /// let minute = Duration::from_secs(60);
    /// let added = queue.act_now(|queue, now| queue.add_at("lease-3", now + minute, now));
    /// assert_eq!(added, Ok(Added::Delayed));
    /// ```
    #[inline]
    pub fn act_now<T>(&self, work: impl FnOnce(&mut Queue<K, S, L, M>, Instant) -> Effect<T>) -> T {
        self.run(|queue| work(queue, self.clock.now()))
    }

    #[inline]
    fn run<T>(&self, work: impl FnOnce(&mut Queue<K, S, L, M>) -> Effect<T>) -> T {
        let unwound = Unwound(&self.waker);
        let Effect { value, wake } = self.lock.with(work);
        core::mem::forget(unwound);
        // Most operations wake nobody: no call is made for that.
        if wake != Wake::None {
            self.waker.obey(wake);
        }
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
    /// Hands out the first ready key, if there is one. O(1), and O(log n) for each deadline that
    /// has come. Never waits but for the lock.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("work_queue/example.txt")]
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
    #[doc = include_str!("work_queue/example.txt")]
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

    /// After shutdown: takes out the delayed key with the earliest deadline. O(log n).
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("work_queue/example.txt")]
    /// use core::time::Duration;
    ///
    /// queue.add_after("lease-3", Duration::from_secs(60)).unwrap();
    /// assert_eq!(queue.take_delayed(), None, "not before shutdown");
    /// queue.shut_down();
    /// let leftover = queue.take_delayed().unwrap();
    /// assert_eq!((leftover.key, leftover.left.as_secs()), ("lease-3", 60));
    /// ```
    pub fn take_delayed(&self) -> Option<Leftover<K>> {
        self.lock.with(|queue| queue.take_delayed(self.clock.now()))
    }

    /// After shutdown: takes out the first ready key before a worker gets it. O(log n).
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("work_queue/example.txt")]
    /// queue.add_many(["node-7", "node-8"], |_| {});
    /// queue.shut_down();
    /// assert_eq!(queue.take_ready().unwrap().key, "node-7");
    /// assert_eq!(queue.len(), 1);
    /// ```
    pub fn take_ready(&self) -> Option<Leftover<K>> {
        self.act(|queue, _| queue.take_ready())
    }
}

/// Dropped only if a key's code, a limiter or metrics have panicked under the lock: nobody has said
/// then whom to wake, and so everybody looks for himself.
struct Unwound<'w, W: Waker>(&'w W);

impl<W: Waker> Drop for Unwound<'_, W> {
    fn drop(&mut self) {
        self.0.wake_all();
    }
}
