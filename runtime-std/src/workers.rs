//! A reconciler's workers: threads that work on keys until the queue is shut down.

use std::hash::Hash;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use requeue_core::{Action, Completion, Failure, Leftover, Metrics, RateLimiter, Storage, Workers};

use crate::clock::Timer;
use crate::queue::{Shared, WorkQueue};
use crate::sync::{RwLock, thread};

impl<K, L, M, C, S> WorkQueue<K, L, M, C, S>
where
    K: Eq + Hash + Clone,
    L: RateLimiter,
    M: Metrics,
    C: Timer,
    S: Storage,
    Shared<K, L, M, C, S>: Send + Sync,
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
    /// | `Ok(Action::PutOff(d))` | runs again after `d`; its failures stay remembered |
    /// | `Err(_)`, or panics | runs again when its rate limiter says so |
    /// | the same, after [`max_retries`](Workers::max_retries) | is given up |
    ///
    /// Two runs of one key never overlap. Returns when all threads have ended.
    ///
    /// # Errors
    ///
    /// If a thread cannot be started: then none works, and the queue is as it was.
    ///
    /// # Panics
    ///
    /// If a key's `Clone` or `Drop` panics, which ends its worker: once the others have ended.
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
    pub fn run<'w, E: 'w>(
        &self,
        workers: impl Into<Workers<'w, K, E>>,
        reconcile: impl Fn(&K) -> Result<Action, E> + Sync,
    ) -> io::Result<Vec<Leftover<K>>>
    where
        K: 'w,
    {
        let workers = workers.into();
        // Nobody begins before everybody has been started: written `false` if that fails.
        let gate = RwLock::new(true);
        thread::scope(|scope| {
            let mut may_work = gate.write().unwrap_or_else(|broken| broken.into_inner());
            for index in 0..workers.count().get() {
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
            // The reconciler's own state is its own affair, as after a panic on any thread.
            let span = workers.span(&guard, guard.attempt(), guard.waited());
            let run = || span.in_scope(|| reconcile(&guard));
            let result = match catch_unwind(AssertUnwindSafe(run)) {
                Ok(result) => result.map_err(Failure::Error),
                Err(payload) => Err(Failure::Panic(payload)),
            };
            // A hook that panics must not take its worker, and the key, with it.
            let judge = || workers.judge(&guard, guard.requeues(), result, span);
            let completion = catch_unwind(AssertUnwindSafe(judge));
            next = self.next(guard, completion.unwrap_or(Completion::Succeeded));
        }
    }

    fn is_too_late<E>(&self, workers: &Workers<'_, K, E>) -> bool {
        let Some(limit) = workers.drain_limit() else {
            return false;
        };
        let closed_at = self.lock().lock().closed_at();
        !closed_at.is_never() && self.clock().now() >= closed_at + limit
    }
}
