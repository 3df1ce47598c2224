//! Spans of the crate `tracing`.

use alloc::boxed::Box;
use core::fmt;
use core::time::Duration;

use tracing::field::{Empty, display};
use tracing::{Instrument, Span, error, info_span, warn};

use super::Outcome;
use crate::workers::{Failure, Workers};

/// How the spans of runs show their keys.
pub(crate) struct Trace<'w, K> {
    show: Option<Box<Show<'w, K>>>,
}

type Show<'w, K> = dyn Fn(&K, &mut fmt::Formatter<'_>) -> fmt::Result + Send + Sync + 'w;

impl<K> Trace<'_, K> {
    pub(crate) fn new() -> Self {
        Self { show: None }
    }

    pub(crate) fn span(&self, key: &K, attempt: u32, waited: Duration) -> RunSpan {
        let span = info_span!(
            target: "requeue",
            "reconcile",
            key = Empty,
            attempt,
            queue_latency = (!waited.is_zero()).then(|| debug(waited)),
            outcome = Empty
        );
        if let Some(show) = &self.show {
            span.record("key", display(Shown { key, show }));
        }
        RunSpan(span)
    }

    /// Logs a run that goes on after its deadline.
    pub(crate) fn log_overdue(&self, key: &K, limit: Duration) {
        let key = self.show.as_ref().map(|show| display(Shown { key, show }));
        warn!(target: "requeue", key, ?limit, "reconcile is overdue");
    }
}

struct Shown<'a, 'w, K> {
    key: &'a K,
    show: &'a Show<'w, K>,
}

impl<K> fmt::Display for Shown<'_, '_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (self.show)(self.key, f)
    }
}

/// The span of one run of a key.
#[derive(Debug)]
pub(crate) struct RunSpan(Span);

impl RunSpan {
    /// Runs `run` inside the span.
    pub(crate) fn in_scope<T>(&self, run: impl FnOnce() -> T) -> T {
        self.0.in_scope(run)
    }

    /// Runs `run` inside the span.
    ///
    /// # Cancel safety
    ///
    /// That of `run`.
    pub(crate) async fn contain<F: Future>(&self, run: F) -> F::Output {
        run.instrument(self.0.clone()).await
    }

    pub(crate) fn end(self, Outcome(outcome): Outcome) {
        self.0.record("outcome", outcome);
    }
}

/// Logs a failure, or that a key is given up for it, if there is no hook for that.
pub(crate) fn log_failure<E: fmt::Debug>(failure: &Failure<E>, attempt: u32, is_given_up: bool) {
    let error = display(Logged(failure));
    if is_given_up {
        error!(target: "requeue", attempt, error, "gave the key up");
    } else {
        warn!(target: "requeue", attempt, error, "reconcile failed");
    }
}

/// A failure whose error is shown by its `Debug`, because it may have no `Display`.
struct Logged<'a, E>(&'a Failure<E>);

impl<E: fmt::Debug> fmt::Display for Logged<'_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.show(f, E::fmt)
    }
}

impl<'w, K, E> Workers<'w, K, E> {
    /// Shows the key in the span of each run, as `show` writes it, and so with what is logged in
    /// it. By default it is not shown, because a key may contain data that does not belong in a
    /// log.
    ///
    /// The spans are named `reconcile`, with the target `requeue` and the level `INFO`. They have
    /// the fields `key`, `attempt`, `queue_latency` and `outcome`. `queue_latency` is empty unless
    /// the queue's metrics keep times, as [`Timed`](crate::Timed) does, and if the key did not
    /// wait. The outcome is `success`, `requeued`, `retried later`, `released`, `failed`,
    /// `panicked` or `timed out`, the last three with `, given up` if the key is given up. A run
    /// that is aborted has no outcome. O(1).
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_core::Workers;
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
    /// use requeue_core::Workers;
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
