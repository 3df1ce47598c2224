//! The workers that run a reconciler, the same for every runtime. Owns their settings, and contains
//! the panics of hooks; never starts a thread or a task.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use core::mem;
use core::time::Duration;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::failure::Failure;

mod concurrency;
mod dead_keys;
mod first_failures;
mod give_up;
#[cfg(feature = "metrics")]
mod metrics;
mod run;
mod slots;
mod trace;

pub use concurrency::{Changes, Concurrency};
pub use dead_keys::DeadKeys;
use give_up::IsTooOld;
use run::Observer;
pub use run::{BegunRun, RunEvent, Runs};
pub use slots::{Slots, Worker};
use trace::{Trace, log_failure};

/// How many workers a runtime's `run` has, and what they do with keys that fail.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use requeue::{Failure, Workers};
///
/// let workers = Workers::new(4)
///     .max_retries(5)
///     .drain_timeout(Duration::from_secs(10))
///     .on_give_up(|key: &u32, failure: Failure<String>| eprintln!("gave up {key}: {failure}"));
/// assert_eq!(workers.count(), 4);
/// ```
#[must_use = "workers do nothing until they are run"]
pub struct Workers<'w, K, E> {
    count: Concurrency,
    max_retries: Option<u32>,
    /// How long a run may take.
    timeout: Option<Duration>,
    drain_timeout: Option<Duration>,
    /// The hook for every failure.
    fail: Option<Box<OnError<'w, K, E>>>,
    /// Logs a failure, or that a key is given up, if there is no hook.
    log: fn(&Failure<E>, u32, bool),
    /// Whether a key is given up because of this error.
    give_up_if: Option<Box<GiveUpIf<'w, K, E>>>,
    give_up: Option<Box<OnGiveUp<'w, K, E>>>,
    overdue: Option<Box<OnOverdue<'w, K>>>,
    is_too_old: Option<Box<IsTooOld<'w, K>>>,
    observers: Vec<Box<Observer<'w, K, E>>>,
    trace: Trace<'w, K>,
}

type OnError<'w, K, E> = dyn Fn(&K, &Failure<E>, u32) + Send + Sync + 'w;
type GiveUpIf<'w, K, E> = dyn Fn(&K, &E) -> bool + Send + Sync + 'w;
type OnOverdue<'w, K> = dyn Fn(&K, Duration) + Send + Sync + 'w;
type OnGiveUp<'w, K, E> = dyn Fn(&K, Failure<E>) + Send + Sync + 'w;

impl<'w, K, E: fmt::Debug> Workers<'w, K, E> {
    /// Creates settings for `count` workers, at least one. A plain number converts into this. O(1).
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::Workers;
    ///
    /// let workers: Workers<'_, String, std::io::Error> = 4.into();
    /// assert_eq!(workers.count(), 4);
    /// ```
    pub fn new(count: usize) -> Self {
        Self {
            count: Concurrency::new(count.max(1)),
            max_retries: None,
            timeout: None,
            drain_timeout: None,
            fail: None,
            log: log_failure::<E>,
            give_up_if: None,
            give_up: None,
            overdue: None,
            is_too_old: None,
            observers: Vec::new(),
            trace: Trace::new(),
        }
    }
}

impl<'w, K, E> Workers<'w, K, E> {
    /// Sets the hook for overdue runs of threads: the [`timeout`](Self::timeout) has passed, and the
    /// run continues. It receives the key and the timeout. Without this hook an overdue run
    /// is logged as a warning, if the feature `tracing` is on. Tasks are stopped instead. O(1).
    ///
    /// The hook runs on the thread that called `run`, at the deadline, once per run. While it runs,
    /// no other overdue run is reported. A panic in the hook is caught and ignored.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue::Workers;
    ///
    /// let workers: Workers<'_, u32, String> = Workers::new(4)
    ///     .timeout(Duration::from_secs(30))
    ///     .on_overdue(|key, limit| eprintln!("node {key} takes longer than {limit:?}"));
    /// # workers.overdue(&17);
    /// ```
    pub fn on_overdue(mut self, hook: impl Fn(&K, Duration) + Send + Sync + 'w) -> Self {
        self.overdue = Some(Box::new(hook));
        self
    }

    /// Sets how long workers take ready keys after shutdown. There is no limit by default. O(1).
    ///
    /// The keys that are left then are returned as leftovers, in their order, also those that wait
    /// for a token of a [rate of runs](crate::Policy::run_rate) or for a run of their group to end.
    /// They are not taken: they use no token, and start no [cool-down](crate::Policy::cool_down).
    ///
    /// `run` always waits for the runs that have begun, so a run that hangs keeps it from
    /// returning. `WorkQueue::drain_timeout` on threads is another timeout: it limits the call that
    /// waits.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue::Workers;
    ///
    /// let workers: Workers<'_, &str, String> =
    ///     Workers::new(2).drain_timeout(Duration::from_secs(10));
    /// assert_eq!(workers.drain_limit(), Some(Duration::from_secs(10)));
    /// ```
    pub fn drain_timeout(mut self, deadline: Duration) -> Self {
        self.drain_timeout = Some(deadline);
        self
    }

    /// Sets how long a run may take. There is no limit by default. O(1).
    ///
    /// The reconciler receives its [`deadline`](crate::RunContext::deadline). The runtime decides what
    /// happens after it:
    ///
    /// - A task is stopped at its next `await`: its future is dropped, and the run has failed with
    ///   [`Failure::TimedOut`]. If the task has a result when it is polled, the result
    ///   counts, even a late one.
    /// - A thread cannot be stopped. The run is [reported](Self::on_overdue) as overdue, once, and
    ///   continues. Its result counts.
    ///
    /// [`Duration::ZERO`] lets a task run until it first waits. [`Duration::MAX`] sets no limit.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue::Workers;
    ///
    /// let workers: Workers<'_, &str, String> = Workers::new(2).timeout(Duration::from_secs(30));
    /// assert_eq!(workers.run_limit(), Some(Duration::from_secs(30)));
    /// ```
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = Some(limit).filter(|limit| *limit != Duration::MAX);
        self
    }

    /// Returns for how long a run may go on, `None` if there is no limit. For runtimes. O(1).
    pub fn run_limit(&self) -> Option<Duration> {
        self.timeout
    }

    /// Returns the number of workers. O(1).
    pub fn count(&self) -> usize {
        self.count.get()
    }

    /// Returns for how long after shutdown keys are still taken, `None` if there is no limit. For
    /// runtimes. O(1).
    pub fn drain_limit(&self) -> Option<Duration> {
        self.drain_timeout
    }

    /// Sets the hook for every failure. It receives the key, why its run failed, and which attempt
    /// that was, counted from 1. Without this hook failures are logged as warnings, if the feature
    /// `tracing` is on. `trace_keys`, of the same feature, adds the key.
    ///
    /// The hook runs on the worker while the key is active, before
    /// [`on_give_up`](Self::on_give_up). A panic in the hook is caught and ignored.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::{Failure, Workers};
    ///
    /// let workers = Workers::new(4).on_error(|key: &u32, failure: &Failure<String>, attempt| {
    ///     eprintln!("node {key}, attempt {attempt}: {failure}");
    /// });
    /// assert_eq!(workers.count(), 4);
    /// ```
    pub fn on_error(mut self, hook: impl Fn(&K, &Failure<E>, u32) + Send + Sync + 'w) -> Self {
        self.fail = Some(Box::new(hook));
        self
    }
}

#[cfg(feature = "tracing")]
impl<'w, K, E> Workers<'w, K, E> {
    /// Shows the key in the span of each run, as `show` writes it, and so with what is logged in
    /// it. By default it is not shown, because a key may contain data that does not belong in a
    /// log.
    ///
    /// The spans are named `reconcile`, with the target `requeue` and the level `INFO`. They have
    /// the fields `key`, `attempt`, `queue_latency`, `reasons` and `outcome`. `queue_latency` is
    /// empty unless the queue's metrics keep times, as [`Times`](crate::metrics::Times) does, and
    /// if the key did not wait. `reasons` is empty until your reconciler records it in its current
    /// span. The outcome is `success`, `requeued`, `retried later`, `released`, `failed`,
    /// `panicked` or `timed out`, the last three with `, given up` if the key is given up. A run
    /// that is aborted has no outcome. O(1).
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::Workers;
    ///
    /// let workers: Workers<u32, String> =
    ///     Workers::new(4).trace_keys(|key, f| write!(f, "node-{key}"));
    /// ```
    pub fn trace_keys(
        mut self,
        show: impl Fn(&K, &mut fmt::Formatter<'_>) -> fmt::Result + Send + Sync + 'w,
    ) -> Self {
        self.trace.show = Some(Box::new(show));
        self
    }

    /// Returns whether spans show keys, because [`trace_keys`](Self::trace_keys) said how. For
    /// what runs workers of its users, and would otherwise say how itself. O(1).
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::Workers;
    ///
    /// fn with_keys(workers: Workers<'_, u32, String>) -> Workers<'_, u32, String> {
    ///     if workers.shows_keys() {
    ///         return workers;
    ///     }
    ///     workers.trace_keys(|key, f| write!(f, "node-{key}"))
    /// }
    /// assert!(with_keys(Workers::new(4)).shows_keys());
    /// ```
    pub fn shows_keys(&self) -> bool {
        self.trace.show.is_some()
    }
}

impl<K, E: fmt::Debug> From<usize> for Workers<'_, K, E> {
    fn from(count: usize) -> Self {
        Self::new(count)
    }
}

impl<K, E> fmt::Debug for Workers<'_, K, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workers")
            .field("count", &self.count())
            .field("max_retries", &self.max_retries)
            .field("timeout", &self.timeout)
            .field("drain_timeout", &self.drain_timeout)
            .finish_non_exhaustive()
    }
}

/// Calls a hook. A panic in it ends only the hook.
fn contain(hook: impl FnOnce()) {
    // A hook is responsible for its own state, as after any panic on a thread.
    if let Err(payload) = catch_unwind(AssertUnwindSafe(hook)) {
        // The payload's `Drop` is foreign code too. If it panics, the second payload is leaked.
        let dropped = catch_unwind(AssertUnwindSafe(|| drop(payload)));
        mem::forget(dropped);
    }
}
