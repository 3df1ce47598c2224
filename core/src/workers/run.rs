//! One run of a key, from its beginning to the report of its end. Owns the calls of observers and
//! hooks, and their order; never takes a key or ends its run in the queue.

use alloc::boxed::Box;
use core::time::Duration;

use super::trace::{Outcome, RunSpan};
use super::{Workers, contain};
use crate::Instant;
use crate::action::{Action, RunContext};
use crate::failure::Failure;
use crate::shared::{Host, Shared};
use crate::timer::{Timer, timeout_at};

/// What [`Workers`] ask of the queue whose keys they run. Every [`Shared`] implements it. For
/// runtimes.
///
/// # Examples
///
/// ```
#[doc = include_str!("../shared/example.txt")]
/// let _ = queue.add("node-7");
/// let keys: &dyn Runs<&str> = &queue;
/// assert!(keys.contains(&"node-7") && !keys.contains(&"node-8"));
/// ```
pub trait Runs<K> {
    /// Returns the time of the queue's clock.
    fn now(&self) -> Instant;

    /// Returns whether a key is ready, active, delayed or suspended. Failures alone do not count.
    fn contains(&self, key: &K) -> bool;
}

impl<H: Host> Runs<H::Key> for Shared<H> {
    fn now(&self) -> Instant {
        self.now()
    }

    fn contains(&self, key: &H::Key) -> bool {
        self.contains(key)
    }
}

/// What happens to a run, as [`Workers::on_event`] receives it.
///
/// Each run that has [`Started`](Self::Started) ends with one of [`Finished`](Self::Finished),
/// [`Failed`](Self::Failed) and [`Aborted`](Self::Aborted).
///
/// # Examples
///
/// ```
/// use requeue::{RunEvent, Workers};
///
/// let workers = Workers::new(4).on_event(|key: &u32, event: &RunEvent<'_, String>| match event {
/// RunEvent::Failed { is_given_up: true, failure, .. } => eprintln!("gave up {key}: {failure}"),
///     RunEvent::Finished { took, .. } => println!("{key} took {took:?}"),
///     _ => {}
/// });
/// # let _ = workers;
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum RunEvent<'e, E> {
    /// A run begins.
    Started(RunContext),
    /// A run has not failed, and ends with this action.
    #[non_exhaustive]
    Finished {
        /// How it ends, without the [priority](Action::with_priority) of the next run.
        action: Action,
        /// How long it took, on the queue's clock.
        took: Duration,
    },
    /// A run has failed.
    #[non_exhaustive]
    Failed {
        /// Why.
        failure: &'e Failure<E>,
        /// Which attempt it was, counted from 1.
        attempt: u32,
        /// Whether the key is given up, and not retried.
        is_given_up: bool,
        /// How long it took, on the queue's clock.
        took: Duration,
    },
    /// A run of a thread takes longer than this, and goes on.
    Overdue(Duration),
    /// A run of a task was aborted, because the future of its `run` was dropped. Its key is
    /// retried.
    Aborted,
}

impl<E> RunEvent<'_, E> {
    /// Returns how the run has ended, in the words of its span: "success", "requeued", "failed, given
    /// up" and so on. `None` if it has not ended, or was aborted. O(1).
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::std::{WorkQueue, Workers};
    ///
    /// let queue = WorkQueue::new();
    /// let _ = queue.add("node-7");
    /// queue.shut_down();
    /// let workers = Workers::new(1).on_event(|node, event| {
    ///     if let Some(outcome) = event.outcome() {
    ///         println!("{node}: {outcome}");
    ///     }
    /// });
    /// queue.run(workers, |_: &&str| {})?;
    /// # std::io::Result::Ok(())
    /// ```
    pub fn outcome(&self) -> Option<&'static str> {
        match self {
            Self::Finished { action, .. } => Some(Outcome::of(*action).name()),
            Self::Failed {
                failure,
                is_given_up,
                ..
            } => Some(Outcome::of_failure(failure, *is_given_up).name()),
            _ => None,
        }
    }
}

/// An observer of the runs of workers.
pub(super) type Observer<'w, K, E> = dyn Fn(&K, &RunEvent<'_, E>) + Send + Sync + 'w;

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
    /// assert_eq!(action, Action::GiveUp);
    /// assert_eq!(guard.finish(action), Finished::Idle);
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
        // An error is retried at the priority of its run.
        let asked = *result.as_ref().unwrap_or(&Action::Retry);
        let Some(failure) = result.map_or_else(Some, Failure::of) else {
            let (action, _) = asked.into_parts();
            if action.forgets() {
                self.forget_age(key, queue);
            }
            run.span.end(Outcome::of(action));
            self.observe(key, &RunEvent::Finished { action, took });
            return asked;
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
            // Its `Drop` is foreign code too.
            _ => contain(|| drop(failure)),
        }
        if is_given_up { Action::GiveUp } else { asked }
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

impl<'w, K, E> Workers<'w, K, E> {
    /// Adds an observer, which receives the key and each [event](RunEvent) of its runs. It may be
    /// called several times: observers are called in the order in which they were added, before the
    /// other hooks. Without observers the clock is not read for them. O(1) amortized.
    ///
    /// Adds have no event here, because producers do not pass through workers:
    /// [`Metrics::added`](crate::metrics::Metrics::added) counts them.
    ///
    /// An observer runs on the worker while the key is active. A panic in it is caught and ignored:
    /// the other observers and hooks are called all the same.
    pub fn on_event(mut self, observer: impl Fn(&K, &RunEvent<'_, E>) + Send + Sync + 'w) -> Self {
        self.observers.push(Box::new(observer));
        self
    }

    /// Reports a run that was aborted to the observers. For runtimes. O(n) in the observers.
    pub fn aborted(&self, key: &K) {
        self.observe(key, &RunEvent::Aborted);
    }

    pub(super) fn observe(&self, key: &K, event: &RunEvent<'_, E>) {
        for observer in &self.observers {
            contain(|| observer(key, event));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priority_and_slack_do_not_change_the_name_of_an_outcome() {
        let action = Action::RequeueAfter(Duration::ZERO);
        for action in [action, action.with_priority(1), action.with_slack(20)] {
            let took = Duration::ZERO;
            let event: RunEvent<'_, ()> = RunEvent::Finished { action, took };
            assert_eq!(event.outcome(), Some("requeued"));
        }
        assert_eq!(RunEvent::<()>::Started(RunContext::new(1)).outcome(), None);
    }
}
