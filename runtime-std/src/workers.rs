//! The workers of a reconciler: threads that process keys until the queue is shut down. Owns the
//! methods that run them; how they work is in `supervisor`.

use std::hash::Hash;
use std::io;

use requeue_core::limiter::RateLimiter;
use requeue_core::priority::Priorities;
use requeue_core::storage::Storage;
use requeue_core::{IntoAction, Leftover, RunContext, Workers};

use crate::queue::{Shared, WorkQueue};

mod supervisor;

use supervisor::Supervised;

/// Running a reconciler.
impl<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage> WorkQueue<K, P, L, S> {
    /// Runs `reconcile` for the keys of the queue, in several threads, until the queue is shut
    /// down. Then drains it, and returns the [leftovers](Self::leftovers): delayed and suspended
    /// keys, also those that a run of the drain delayed or suspended, and keys that were still
    /// ready at the end of [`Workers::drain_timeout`].
    ///
    /// `reconcile` returns `()`, an [`Action`](crate::Action), or a `Result` of either:
    ///
    /// | `reconcile` returns | and the key |
    /// |---|---|
    /// | `()`, `Action::Success` | is idle until it is added; its failures are forgotten |
    /// | `Action::RequeueAfter(d)` | runs again after `d`; its failures are forgotten |
    /// | `Err(_)`, `Action::Retry`, or panics | runs again when its rate limiter says so |
    /// | the same, after [`max_retries`](Workers::max_retries) | is given up |
    /// | `Action::GiveUp` | is given up |
    /// | `Err(_)` that [`give_up_if`](Workers::give_up_if) says is the last | is given up |
    /// | `Action::Snooze(d)` | runs again after `d`; its failures stay |
    /// | `Action::poll(min, max)` | runs again after a pause that grows; its failures stay |
    /// | `Action::Suspend(d)` | runs again when it is resumed, or after `d`; its failures stay |
    /// | `Action::Release` | is idle until it is added; its failures stay |
    ///
    /// A key that was added during its run is **ready when the run ends**, behind the keys that are
    /// ready already. Only `Suspend` and a [hold](requeue_core::Policy) delay it: as in client-go,
    /// an add does not wait for the backoff. So a reconciler that adds its own key and then fails
    /// runs without pause. To run its key again, return `RequeueAfter` instead. The next run has
    /// the priority of this one, or that of [`with_priority`](crate::Action::with_priority).
    ///
    /// Two runs of one key never overlap. Failures are passed to [`on_error`](Workers::on_error);
    /// without that hook they are logged, if the feature `tracing` is on, with the key if
    /// `Workers::trace_keys` shows it. The calling thread
    /// supervises the workers, and sleeps meanwhile. Returns when all threads have ended.
    ///
    /// # Errors
    ///
    /// If a thread cannot be started: then no key is processed, and the queue is unchanged. If one
    /// cannot be started later, because the [number of workers](Workers::concurrency) has grown,
    /// the others finish their keys and end, and what is not processed stays in the queue.
    ///
    /// # Panics
    ///
    /// If a key's `Clone` or `Drop` panics: the worker ends, and the panic is passed on once the
    /// others have ended.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::atomic::{AtomicU32, Ordering};
    /// use requeue::std::WorkQueue;
    ///
    /// let queue = WorkQueue::new();
    /// let _ = queue.add_many(1..=100);
    /// queue.shut_down();
    ///
    /// // The workers borrow the state that they share.
    /// let sum = AtomicU32::new(0);
    /// let leftovers = queue.run(4, |key: &u32| {
    ///     sum.fetch_add(*key, Ordering::Relaxed);
    /// }).unwrap();
    /// assert_eq!(sum.into_inner(), 5050);
    /// assert!(leftovers.is_empty());
    /// ```
    pub fn run<'w, E: 'w, R: IntoAction<Error = E>>(
        &self,
        workers: impl Into<Workers<'w, K, E>>,
        reconcile: impl Fn(&K) -> R + Sync,
    ) -> io::Result<Vec<Leftover<K>>>
    where
        K: Clone + Send + Sync + 'w,
        Shared<K, P, L, S>: Send + Sync,
    {
        self.run_with(workers, |key, _| reconcile(key))
    }

    /// As [`run`](Self::run), but also passes the reconciler a [`RunContext`]: the attempt, the
    /// priority and the deadline, and how long the key waited.
    ///
    /// The wait is zero unless the queue keeps times: with metrics it does, and with
    /// `builder().report_to(Times)`, which only keeps [times](requeue_core::metrics::Times).
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    ///
    /// # Panics
    ///
    /// As [`run`](Self::run).
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::std::{RunContext, WorkQueue};
    ///
    /// let queue = WorkQueue::new();
    /// let _ = queue.add("node-7");
    /// queue.run_with(1, |node: &&str, run: RunContext| {
    ///     println!("{node}: attempt {}", run.attempt);
    ///     queue.shut_down();
    /// }).unwrap();
    /// ```
    pub fn run_with<'w, E: 'w, R: IntoAction<Error = E>>(
        &self,
        workers: impl Into<Workers<'w, K, E>>,
        reconcile: impl Fn(&K, RunContext) -> R + Sync,
    ) -> io::Result<Vec<Leftover<K>>>
    where
        K: Clone + Send + Sync + 'w,
        Shared<K, P, L, S>: Send + Sync,
    {
        let reconcile = |key: &K, run: RunContext| reconcile(key, run).into_action();
        Supervised::new(&*self.shared, workers.into(), reconcile).supervise()?;
        Ok(self.leftovers().collect())
    }
}
