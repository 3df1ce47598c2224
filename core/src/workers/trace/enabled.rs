//! Spans of the crate `tracing`.

use alloc::boxed::Box;
use core::fmt;
use core::time::Duration;

use tracing::field::{Empty, display};
use tracing::{Instrument, Span, error, info_span, warn};

use super::Outcome;
use crate::failure::Failure;

/// How the spans of runs show their keys.
pub(in crate::workers) struct Trace<'w, K> {
    pub(in crate::workers) show: Option<Box<Show<'w, K>>>,
}

pub(in crate::workers) type Show<'w, K> =
    dyn Fn(&K, &mut fmt::Formatter<'_>) -> fmt::Result + Send + Sync + 'w;

impl<K> Trace<'_, K> {
    pub(in crate::workers) fn new() -> Self {
        Self { show: None }
    }

    pub(in crate::workers) fn span(&self, key: &K, attempt: u32, waited: Duration) -> RunSpan {
        let span = info_span!(
            target: "requeue",
            "reconcile",
            key = Empty,
            attempt,
            queue_latency = (!waited.is_zero()).then(|| debug(waited)),
            reasons = Empty,
            outcome = Empty
        );
        if let Some(show) = &self.show {
            span.record("key", display(Shown { key, show }));
        }
        RunSpan(span)
    }

    /// Logs a run that continues after its deadline.
    pub(in crate::workers) fn log_overdue(&self, key: &K, limit: Duration) {
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
pub(in crate::workers) struct RunSpan(Span);

impl RunSpan {
    /// Runs `run` inside the span.
    pub(in crate::workers) fn in_scope<T>(&self, run: impl FnOnce() -> T) -> T {
        self.0.in_scope(run)
    }

    /// Runs `run` inside the span.
    ///
    /// # Cancel safety
    ///
    /// That of `run`.
    pub(in crate::workers) async fn contain<F: Future>(&self, run: F) -> F::Output {
        run.instrument(self.0.clone()).await
    }

    pub(in crate::workers) fn end(self, Outcome(outcome): Outcome) {
        self.0.record("outcome", outcome);
    }
}

/// Logs a failure, or that a key is given up because of it, if there is no hook for that.
pub(in crate::workers) fn log_failure<E: fmt::Debug>(
    failure: &Failure<E>,
    attempt: u32,
    is_given_up: bool,
) {
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
