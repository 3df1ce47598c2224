//! The workers that run a reconciler, the same for every runtime.

use alloc::boxed::Box;
use alloc::string::String;
use core::any::Any;
use core::fmt;
use core::hash::Hash;
use core::num::NonZeroUsize;
use core::time::Duration;

use crate::action::{Action, Retries};
use crate::limiter::RateLimiter;
use crate::lock::Lock;
use crate::metrics::Metrics;
use crate::storage::Storage;
use crate::time::Clock;
use crate::trace::{Outcome, RunSpan, Trace, log_failure};
use crate::wait::WaitList;
use crate::work_queue::{State, WorkQueue};

/// How many workers a runtime's `run` has, and what they do with keys that fail.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use requeue_core::{Failure, Workers};
///
/// let workers = Workers::new(4)
///     .max_retries(5)
///     .drain_deadline(Duration::from_secs(10))
///     .on_give_up(|key: &u32, failure: Failure<String>| eprintln!("gave up {key}: {failure}"));
/// assert_eq!(workers.count().get(), 4);
/// ```
#[must_use = "workers do nothing until they are run"]
pub struct Workers<'w, K, E> {
    count: NonZeroUsize,
    retries: Retries,
    drain_deadline: Option<Duration>,
    /// The hook for every failure.
    fail: Option<Box<OnError<'w, K, E>>>,
    /// What logs a failure if there is no hook.
    log: fn(&Failure<E>, u32),
    give_up: Option<Box<OnGiveUp<'w, K, E>>>,
    pub(crate) trace: Trace<'w, K>,
}

type OnError<'w, K, E> = dyn Fn(&K, &Failure<E>, u32) + Send + Sync + 'w;
type OnGiveUp<'w, K, E> = dyn Fn(&K, Failure<E>) + Send + Sync + 'w;

/// Why a run failed.
///
/// # Examples
///
/// ```
/// use requeue_core::Failure;
///
/// fn describe(failure: &Failure<&str>) -> String {
///     match failure {
///         Failure::Error(error) => format!("error: {error}"),
///         other => other.to_string(),
///     }
/// }
///
/// assert_eq!(describe(&Failure::Error("no route to node-7")), "error: no route to node-7");
/// assert_eq!(describe(&Failure::Panic(Box::new("index 3"))), "panicked: index 3");
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Failure<E> {
    /// The reconciler returned an error.
    Error(E),
    /// The reconciler returned [`Action::Retry`], without an error.
    Retry,
    /// The reconciler panicked, with this payload.
    Panic(Box<dyn Any + Send>),
}

/// A failure that has to be passed to [`Workers::report`], which calls the hooks.
#[derive(Debug)]
pub struct Report<E> {
    failure: Failure<E>,
    attempt: u32,
    gives_up: bool,
}

impl<E: fmt::Display> fmt::Display for Failure<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Error(error) => error.fmt(f),
            Self::Retry => f.write_str("asked for a retry"),
            Self::Panic(payload) => {
                let message = payload.downcast_ref::<&str>().copied();
                let message = message.or_else(|| payload.downcast_ref::<String>().map(|s| &**s));
                write!(f, "panicked: {}", message.unwrap_or("(no message)"))
            }
        }
    }
}

impl<'w, K, E: fmt::Debug> Workers<'w, K, E> {
    /// Creates settings for `count` workers, at least one. A plain number converts into this.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_core::Workers;
    ///
    /// let workers: Workers<'_, String, std::io::Error> = 4.into();
    /// assert_eq!(workers.count().get(), 4);
    /// ```
    pub fn new(count: usize) -> Self {
        Self {
            count: NonZeroUsize::new(count).unwrap_or(NonZeroUsize::MIN),
            retries: Retries::UNLIMITED,
            drain_deadline: None,
            fail: None,
            log: log_failure::<E>,
            give_up: None,
            trace: Trace::new(),
        }
    }
}

impl<'w, K, E> Workers<'w, K, E> {
    /// Sets how many times a key that failed is retried before it is given up. There is no limit by
    /// default.
    ///
    /// The count is the rate limiter's. With a limiter that keeps no record of a key
    /// ([`NoLimit`](crate::NoLimit), a [`Bucket`](crate::Bucket) alone) it stays zero, and a key is
    /// given up only if `retries` is zero too.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue_core::{Action, Failure, Workers};
    ///
    /// let workers = Workers::new(1).max_retries(2);
    /// let fail = |requeues: u32| {
    ///     let span = workers.span(&"node-7", requeues + 1, Duration::ZERO);
    ///     workers.judge(requeues, Err(Failure::Error("down")), span).0
    /// };
    /// assert_eq!([fail(0), fail(1)], [Action::Retry; 2]);
    /// assert_eq!(fail(2), Action::Success, "given up after three runs");
    /// ```
    pub fn max_retries(mut self, retries: u32) -> Self {
        self.retries = Retries::at_most(retries);
        self
    }

    /// Sets the hook for keys that are given up. It receives the key, and why its last run failed.
    /// The failures of the key are forgotten: if it is added again, it starts as a new key.
    ///
    /// The hook runs on the worker while the key is active. A panic in the hook is caught and
    /// ignored.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Mutex;
    /// use std::time::Duration;
    /// use requeue_core::{Failure, Workers};
    ///
    /// let given_up = Mutex::new(Vec::new());
    /// let workers = Workers::new(1).max_retries(0).on_give_up(|node: &&str, failure| {
    ///     given_up.lock().unwrap().push(format!("{node}: {failure}"));
    /// });
    /// let span = workers.span(&"node-7", 1, Duration::ZERO);
    /// let (_, report) = workers.judge(0, Err(Failure::Error("no route")), span);
    /// workers.report(&"node-7", report.unwrap());
    /// assert_eq!(*given_up.lock().unwrap(), ["node-7: no route"]);
    /// ```
    pub fn on_give_up(mut self, hook: impl Fn(&K, Failure<E>) + Send + Sync + 'w) -> Self {
        self.give_up = Some(Box::new(hook));
        self
    }

    /// Sets for how long after shutdown ready keys are still worked on. The keys that are left then
    /// are returned as leftovers. There is no limit by default. A run that has begun is always
    /// waited for.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue_core::Workers;
    ///
    /// let workers: Workers<'_, &str, String> =
    ///     Workers::new(2).drain_deadline(Duration::from_secs(10));
    /// assert_eq!(workers.drain_limit(), Some(Duration::from_secs(10)));
    /// ```
    pub fn drain_deadline(mut self, deadline: Duration) -> Self {
        self.drain_deadline = Some(deadline);
        self
    }

    /// Returns the number of workers.
    pub fn count(&self) -> NonZeroUsize {
        self.count
    }

    /// Returns for how long after shutdown keys are still taken, `None` if there is no limit. For
    /// runtimes.
    pub fn drain_limit(&self) -> Option<Duration> {
        self.drain_deadline
    }

    /// Returns whether the [deadline](Self::drain_deadline) has passed, so that a key that was
    /// taken becomes a leftover. For runtimes. O(1).
    pub fn is_past_drain_deadline<S, L, M, W, Q, C>(&self, queue: &WorkQueue<Q, C>) -> bool
    where
        K: Eq + Hash,
        S: Storage,
        L: RateLimiter,
        M: Metrics,
        W: WaitList,
        Q: Lock<State = State<K, S, L, M, W>>,
        C: Clock,
    {
        let Some(limit) = self.drain_deadline else {
            return false;
        };
        let closed_at = queue.closed_at();
        closed_at.is_some_and(|closed_at| queue.clock().now() >= closed_at + limit)
    }

    /// Sets the hook for every failure. It receives the key, why its run failed, and which attempt
    /// that was, counted from 1. Without this hook failures are logged as warnings, if the feature
    /// `tracing` is on.
    ///
    /// The hook runs on the worker while the key is active, before
    /// [`on_give_up`](Self::on_give_up). A panic in the hook is caught and ignored.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_core::{Failure, Workers};
    ///
    /// let workers = Workers::new(4).on_error(|key: &u32, failure: &Failure<String>, attempt| {
    ///     eprintln!("node {key}, attempt {attempt}: {failure}");
    /// });
    /// assert_eq!(workers.count().get(), 4);
    /// ```
    pub fn on_error(mut self, hook: impl Fn(&K, &Failure<E>, u32) + Send + Sync + 'w) -> Self {
        self.fail = Some(Box::new(hook));
        self
    }

    /// Returns how a run with this result ends, for a key that had failed `requeues` times before,
    /// and the failure to [report](Self::report), if any. Ends the run's span. For runtimes.
    /// [`max_retries`](Self::max_retries) and [`on_give_up`](Self::on_give_up) have examples.
    pub fn judge(
        &self,
        requeues: u32,
        result: Result<Action, Failure<E>>,
        span: RunSpan,
    ) -> (Action, Option<Report<E>>) {
        let failure = match result {
            Ok(Action::Retry) => Failure::Retry,
            Err(failure) => failure,
            Ok(action) => {
                span.end(Outcome::of(action));
                return (action, None);
            }
        };
        let report = Report {
            gives_up: !self.retries.allow(requeues),
            attempt: requeues.saturating_add(1),
            failure,
        };
        if self.fail.is_none() {
            span.in_scope(|| (self.log)(&report.failure, report.attempt));
        }
        span.end(Outcome::of_failure(&report.failure, report.gives_up));
        let action = if report.gives_up {
            Action::Success
        } else {
            Action::Retry
        };
        (action, Some(report))
    }

    /// Calls the hooks for a failure. For runtimes, which catch the hooks' panics.
    pub fn report(&self, key: &K, report: Report<E>) {
        if let Some(hook) = &self.fail {
            hook(key, &report.failure, report.attempt);
        }
        if report.gives_up
            && let Some(hook) = &self.give_up
        {
            hook(key, report.failure);
        }
    }

    /// Creates the span of a run that begins. For runtimes. The span is empty without the feature
    /// `tracing`.
    pub fn span(&self, key: &K, attempt: u32, waited: Duration) -> RunSpan {
        self.trace.span(key, attempt, waited)
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
            .field("count", &self.count)
            .field("retries", &self.retries)
            .field("drain_deadline", &self.drain_deadline)
            .finish_non_exhaustive()
    }
}
