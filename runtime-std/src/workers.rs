//! A reconciler's workers: threads that work on keys until the queue is shut down.

use std::any::Any;
use std::fmt;
use std::hash::Hash;
use std::io;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::RwLock;
use std::thread;
use std::time::Duration;

use requeue_core::{Action, Clock, Completion, Instant, Leftover, Metrics, RateLimiter, Retries};

use crate::clock::Timer;
use crate::queue::{Guard, WorkQueue};

/// How [`WorkQueue::run`] works: made from a number of threads.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use requeue_std::{Failure, Workers};
///
/// let workers = Workers::new(4)
///     .max_retries(5)
///     .drain_deadline(Duration::from_secs(10))
///     .on_give_up(|key: &u32, failure: Failure<String>| eprintln!("gave up {key}: {failure}"));
/// ```
#[must_use = "workers do nothing until `WorkQueue::run`"]
pub struct Workers<'w, K, E> {
    threads: NonZeroUsize,
    retries: Retries,
    drain_deadline: Option<Duration>,
    give_up: GiveUp<'w, K, E>,
}

type GiveUp<'w, K, E> = Box<dyn Fn(&K, Failure<E>) + Send + Sync + 'w>;

/// Why a run failed.
#[derive(Debug)]
pub enum Failure<E> {
    /// The reconciler answered with an error.
    Error(E),
    /// The reconciler panicked, with this payload.
    Panic(Box<dyn Any + Send>),
}

impl<E: fmt::Display> fmt::Display for Failure<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Error(error) => error.fmt(f),
            Self::Panic(payload) => {
                let message = payload.downcast_ref::<&str>().copied();
                let message = message.or_else(|| payload.downcast_ref::<String>().map(|s| &**s));
                write!(f, "panicked: {}", message.unwrap_or("(no message)"))
            }
        }
    }
}

impl<'w, K, E> Workers<'w, K, E> {
    /// This many threads, one at least.
    pub fn new(threads: usize) -> Self {
        Self {
            threads: NonZeroUsize::new(threads).unwrap_or(NonZeroUsize::MIN),
            retries: Retries::UNLIMITED,
            drain_deadline: None,
            give_up: Box::new(|_, _| {}),
        }
    }

    /// How many times a key that failed is tried again before it is given up. At first there is no
    /// limit.
    pub fn max_retries(mut self, retries: u32) -> Self {
        self.retries = Retries::at_most(retries);
        self
    }

    /// Called with a key that is given up, and why its last run failed. Its failures are forgotten:
    /// whoever adds it again finds it as new.
    ///
    /// Runs on the worker's thread while the key counts as in work. A hook that panics is taken as
    /// one that returned.
    pub fn on_give_up(mut self, hook: impl Fn(&K, Failure<E>) + Send + Sync + 'w) -> Self {
        self.give_up = Box::new(hook);
        self
    }

    /// For how long after shutdown ready keys are still worked on; what is left then is handed
    /// back. At first there is no limit. A run that has begun is always waited for.
    pub fn drain_deadline(mut self, deadline: Duration) -> Self {
        self.drain_deadline = Some(deadline);
        self
    }
}

impl<K, E> From<usize> for Workers<'_, K, E> {
    fn from(threads: usize) -> Self {
        Self::new(threads)
    }
}

impl<K, E> fmt::Debug for Workers<'_, K, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workers")
            .field("threads", &self.threads)
            .field("retries", &self.retries)
            .field("drain_deadline", &self.drain_deadline)
            .finish_non_exhaustive()
    }
}

impl<K, L, M, C> WorkQueue<K, L, M, C>
where
    K: Eq + Hash + Clone + Send,
    L: RateLimiter + Send,
    L::Memory: Send,
    M: Metrics + Send,
    M::Stamps: Send,
    C: Timer + Send + Sync,
{
    /// Works on keys with `reconcile` on several threads until the queue is shut down; then drains
    /// it, and hands back what was not worked on: keys that were ready when the
    /// [deadline](Workers::drain_deadline) passed, keys that failed while it drained, and delayed
    /// keys.
    ///
    /// | `reconcile` answers | and the key |
    /// |---|---|
    /// | `Ok(Action::Done)` | is at rest; its failures are forgotten |
    /// | `Ok(Action::RequeueAfter(d))` | runs again after `d`; its failures are forgotten |
    /// | `Err(_)`, or panics | runs again when its rate limiter says so |
    /// | the same, after [`max_retries`](Workers::max_retries) | is given up |
    ///
    /// Two runs of one key never overlap. Returns when all threads have ended.
    ///
    /// # Errors
    ///
    /// If a thread cannot be started: then none works, and the queue is as it was.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::atomic::{AtomicU32, Ordering};
    /// use requeue_std::{Action, WorkQueue};
    ///
    /// let queue = WorkQueue::new();
    /// queue.add_many(1..=100, |_| {});
    /// queue.shut_down();
    ///
    /// let sum = AtomicU32::new(0);
    /// let leftovers = queue.run(4, |key: &u32| {
    ///     sum.fetch_add(*key, Ordering::Relaxed);
    ///     Ok::<_, std::convert::Infallible>(Action::Done)
    /// })?;
    /// assert_eq!(sum.into_inner(), 5050);
    /// assert!(leftovers.is_empty());
    /// # Ok::<_, std::io::Error>(())
    /// ```
    pub fn run<'w, E>(
        &self,
        workers: impl Into<Workers<'w, K, E>>,
        reconcile: impl Fn(&K) -> Result<Action, E> + Sync,
    ) -> io::Result<Vec<Leftover<K>>>
    where
        E: 'w,
        K: 'w,
    {
        let workers = workers.into();
        // Nobody begins before everybody has been started: written `false` if that fails.
        let gate = RwLock::new(true);
        thread::scope(|scope| {
            let mut may_work = gate.write().unwrap_or_else(|broken| broken.into_inner());
            for index in 0..workers.threads.get() {
                let thread = thread::Builder::new().name(format!("requeue-worker-{index}"));
                let worker = || {
                    let may_work = *gate.read().unwrap_or_else(|broken| broken.into_inner());
                    if may_work {
                        self.work(&workers, &reconcile);
                    }
                };
                if let Err(error) = thread.spawn_scoped(scope, worker) {
                    *may_work = false;
                    return Err(error);
                }
            }
            Ok(())
        })?;
        Ok(self.leftovers())
    }

    /// One worker's loop: each turn completes a key and takes the next under one lock.
    fn work<E>(
        &self,
        workers: &Workers<'_, K, E>,
        reconcile: &(impl Fn(&K) -> Result<Action, E> + Sync),
    ) {
        let mut next = self.get();
        while let Some(guard) = next {
            if self.is_too_late(workers) {
                // It goes back among the leftovers, without a failure.
                let _ = guard.retry_after(Duration::ZERO);
                return;
            }
            let completion = judge(workers, &guard, reconcile);
            next = self.next(guard, completion);
        }
    }

    fn is_too_late<E>(&self, workers: &Workers<'_, K, E>) -> bool {
        let Some(deadline) = workers.drain_deadline else {
            return false;
        };
        let closed_at = self.lock().lock().closed_at();
        closed_at != Instant::NEVER && self.clock().now() >= closed_at + deadline
    }
}

/// Works on one key and says how its run is completed.
fn judge<K, L, M, C, E>(
    workers: &Workers<'_, K, E>,
    guard: &Guard<'_, K, L, M, C>,
    reconcile: &(impl Fn(&K) -> Result<Action, E> + Sync),
) -> Completion
where
    K: Eq + Hash,
    L: RateLimiter,
    M: Metrics,
    C: Clock,
{
    // The reconciler's own state is its own affair, as after a panic on any thread.
    let failure = match catch_unwind(AssertUnwindSafe(|| reconcile(guard.key()))) {
        Ok(Ok(action)) => return action.completion(),
        Ok(Err(error)) => Failure::Error(error),
        Err(payload) => Failure::Panic(payload),
    };
    match workers.retries.completion(guard.requeues()) {
        Some(completion) => completion,
        None => {
            // A hook that panics must not take its worker, and the key, with it.
            let hook = AssertUnwindSafe(|| (workers.give_up)(guard.key(), failure));
            let _ = catch_unwind(hook);
            Completion::Succeeded
        }
    }
}
