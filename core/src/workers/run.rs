//! One run of a key, from its beginning to the report of its failure.

use alloc::boxed::Box;
use alloc::string::String;
use core::any::Any;
use core::error::Error;
use core::fmt;
use core::time::Duration;

use super::{RunEvent, Workers, contain};
use crate::Instant;
use crate::action::{Action, RunContext};
use crate::shared::{Host, Shared};
use crate::timer::{Timer, timeout_at};
use crate::trace::{Outcome, RunSpan};

/// Why a run failed.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
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
/// assert_eq!(describe(&Failure::TimedOut(Duration::from_secs(5))), "took longer than 5s");
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
    /// The run took longer than this [timeout](Workers::timeout), and was stopped.
    TimedOut(Duration),
}

impl<E> Failure<E> {
    /// Writes why the run failed, with the error as `show` writes it.
    pub(crate) fn show(
        &self,
        f: &mut fmt::Formatter<'_>,
        show: impl FnOnce(&E, &mut fmt::Formatter<'_>) -> fmt::Result,
    ) -> fmt::Result {
        match self {
            Self::Error(error) => show(error, f),
            Self::Retry => f.write_str("asked for a retry"),
            Self::Panic(payload) => {
                let message = payload.downcast_ref::<&str>().copied();
                let message = message.or_else(|| payload.downcast_ref::<String>().map(|s| &**s));
                write!(f, "panicked: {}", message.unwrap_or("(no message)"))
            }
            Self::TimedOut(limit) => write!(f, "took longer than {limit:?}"),
        }
    }
}

impl<E: fmt::Display> fmt::Display for Failure<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.show(f, E::fmt)
    }
}

/// It shows its error, so its source is that of the error.
impl<E: Error + 'static> Error for Failure<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Error(error) => error.source(),
            _ => None,
        }
    }
}

/// What [`Workers`] ask of the queue whose keys they run. Every [`Shared`] implements it. For
/// runtimes.
///
/// # Examples
///
/// ```
#[doc = include_str!("../shared/example.txt")]
/// let _ = queue.add("node-7");
/// let keys: &dyn Runs<&str> = &queue;
/// assert!(keys.holds(&"node-7") && !keys.holds(&"node-8"));
/// ```
pub trait Runs<K> {
    /// Returns the time of the queue's clock.
    fn now(&self) -> Instant;

    /// Returns whether the queue holds a key, if only for its failures.
    fn holds(&self, key: &K) -> bool;
}

impl<H: Host> Runs<H::Key> for Shared<H> {
    fn now(&self) -> Instant {
        self.now()
    }

    fn holds(&self, key: &H::Key) -> bool {
        self.contains(key)
    }
}

/// For how long keys have failed, if workers give them up by that.
pub(super) trait Ages<K> {
    /// Notes a failure. Returns whether the key has failed for too long.
    fn is_too_old(&self, key: &K, is_first: bool, queue: &dyn Runs<K>) -> bool;

    /// Notes that a key has worked, or is given up.
    fn forget(&self, key: &K);
}

/// A run that goes on. Made by [`Workers::begin`], and passed to [`Workers::end`]. For runtimes.
#[derive(Debug)]
#[must_use = "a run that has begun has to be ended"]
pub struct BegunRun {
    context: RunContext,
    /// The epoch, if no limit and no observer needs the time.
    began: Instant,
    span: RunSpan,
}

impl BegunRun {
    /// Returns what the reconciler receives: the run's context, with its deadline. O(1).
    pub fn context(&self) -> RunContext {
        self.context
    }

    /// Runs `run` inside the span of the run. Costs as `run`.
    pub fn in_scope<T>(&self, run: impl FnOnce() -> T) -> T {
        self.span.in_scope(run)
    }

    /// Runs `run` inside the span of the run, until its deadline. Returns `None` if the deadline
    /// comes first: then `run` has been dropped.
    ///
    /// # Cancel safety
    ///
    /// That of `run`.
    pub async fn contain<F: Future>(&self, clock: &impl Timer, run: F) -> Option<F::Output> {
        let run = timeout_at(clock, self.context.deadline, run);
        self.span.contain(run).await
    }
}

impl<K, E> Workers<'_, K, E> {
    /// Begins a run: creates its span, which is empty without the feature `tracing`, sets its
    /// deadline, and reports it to the observers. For runtimes. O(n) in the observers.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("../shared/example.txt")]
    /// use core::time::Duration;
    ///
    /// let minute = Duration::from_secs(60);
    /// let workers = Workers::new(1).max_retries(0).timeout(minute);
    /// let _ = queue.add("node-7");
    /// let guard = queue.try_get().unwrap();
    ///
    /// let run = workers.begin(guard.key(), guard.context(), &queue);
    /// assert_eq!(run.context().deadline, Some(Instant::EPOCH + minute));
    /// let result = run.in_scope(|| Err(Failure::Error("no route")));
    /// let action = workers.end(guard.key(), run, result, &queue);
    /// assert_eq!(action, Action::Success, "it is given up");
    /// assert_eq!(guard.finish(action), Ok(Finished::Idle));
    /// ```
    pub fn begin(&self, key: &K, mut context: RunContext, queue: &impl Runs<K>) -> BegunRun {
        let mut began = Instant::EPOCH;
        if self.timeout.is_some() || !self.observers.is_empty() {
            began = queue.now();
        }
        context.deadline = self.timeout.map(|limit| began + limit);
        let span = self.trace.span(key, context.attempt, context.waited);
        self.observe(key, &RunEvent::Started(context));
        BegunRun {
            context,
            began,
            span,
        }
    }

    /// Ends a run with this result: ends its span, and calls the observers and hooks. Returns how
    /// the run ends for its key. For runtimes. [`begin`](Self::begin) has an example. O(n) in
    /// the observers.
    ///
    /// With the feature `std` a hook or an observer that panics keeps no other from being called.
    pub fn end(
        &self,
        key: &K,
        run: BegunRun,
        result: Result<Action, Failure<E>>,
        queue: &impl Runs<K>,
    ) -> Action {
        let attempt = run.context.attempt;
        let mut took = Duration::ZERO;
        if !self.observers.is_empty() {
            took = queue.now().saturating_since(run.began);
        }
        let failure = match result {
            Err(failure) => failure,
            Ok(Action::Retry) => Failure::Retry,
            Ok(action) => {
                if action.forgets()
                    && let Some(ages) = &self.ages
                {
                    ages.forget(key);
                }
                run.span.end(Outcome::of(action));
                self.observe(key, &RunEvent::Finished { action, took });
                return action;
            }
        };
        let is_given_up = self.gives_up(key, &failure, attempt, queue);
        if self.fail.is_none() {
            contain(|| run.in_scope(|| (self.log)(&failure, attempt, false)));
        }
        if is_given_up && self.give_up.is_none() {
            contain(|| run.in_scope(|| (self.log)(&failure, attempt, true)));
        }
        run.span.end(Outcome::of_failure(&failure, is_given_up));
        let event = RunEvent::Failed {
            failure: &failure,
            attempt,
            is_given_up,
            took,
        };
        self.observe(key, &event);
        if let Some(hook) = &self.fail {
            contain(|| hook(key, &failure, attempt));
        }
        match &self.give_up {
            Some(hook) if is_given_up => contain(|| hook(key, failure)),
            // Its `Drop` is foreign code, too.
            _ => contain(|| drop(failure)),
        }
        if is_given_up {
            Action::Success
        } else {
            Action::Retry
        }
    }

    /// Decides whether a key that has failed is given up.
    fn gives_up(&self, key: &K, failure: &Failure<E>, attempt: u32, queue: &impl Runs<K>) -> bool {
        let mut is_last = !self.retries.allow(attempt.saturating_sub(1));
        if let (Some(ends), Failure::Error(error)) = (&self.give_up_if, failure) {
            contain(|| is_last |= ends(key, error));
        }
        let Some(ages) = &self.ages else {
            return is_last;
        };
        let gives_up = is_last || ages.is_too_old(key, attempt == 1, queue);
        if gives_up {
            ages.forget(key);
        }
        gives_up
    }

    /// Reports a run that is overdue and goes on. For runtimes. O(n) in the observers.
    pub fn overdue(&self, key: &K) {
        let limit = self.timeout.unwrap_or_default();
        self.observe(key, &RunEvent::Overdue(limit));
        contain(|| match &self.overdue {
            Some(hook) => hook(key, limit),
            None => self.trace.log_overdue(key, limit),
        });
    }
}
