//! Spans of the crate `tracing`.

use std::fmt;
use std::hash::Hash;
use std::time::Duration;

use requeue_core::{Completion, Metrics, RateLimiter};
use tracing::field::{Empty, display};
use tracing::{Instrument, Span, info_span};

use super::Outcome;
use crate::workers::Run;

/// How the spans of a run show its keys.
pub(crate) struct Trace<K> {
    show: Option<Box<Show<K>>>,
}

type Show<K> = dyn Fn(&K, &mut fmt::Formatter<'_>) -> fmt::Result + Send + Sync;

impl<K> Trace<K> {
    pub(crate) fn new() -> Self {
        Self { show: None }
    }
}

impl<K: 'static> Trace<K> {
    pub(crate) fn span(&self, key: &K, attempt: u32, waited: Duration) -> RunSpan {
        let span = info_span!(
            "reconcile",
            key = Empty,
            attempt,
            queue_latency = ?waited,
            outcome = Empty
        );
        if let Some(show) = &self.show {
            span.record("key", display(Shown { key, show }));
        }
        RunSpan(span)
    }
}

struct Shown<'a, K> {
    key: &'a K,
    show: &'a Show<K>,
}

impl<K> fmt::Display for Shown<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (self.show)(self.key, f)
    }
}

/// The span of one run of one key.
pub(crate) struct RunSpan(Span);

impl RunSpan {
    pub(crate) async fn contain<F: Future>(&self, run: F) -> F::Output {
        run.instrument(self.0.clone()).await
    }

    pub(crate) fn end(self, outcome: Outcome, completion: Completion) {
        self.0.record(
            "outcome",
            match (outcome, completion) {
                (Outcome::Done, _) => "done",
                (Outcome::RequeuedAfter, _) => "requeued",
                (Outcome::Failed, Completion::Retry) => "failed",
                (Outcome::Failed, _) => "failed, given up",
                (Outcome::Panicked, Completion::Retry) => "panicked",
                (Outcome::Panicked, _) => "panicked, given up",
            },
        );
    }
}

impl<K, L, M, E, F> Run<K, L, M, E, F>
where
    K: Eq + Hash,
    L: RateLimiter,
    M: Metrics,
{
    /// Shows the key in the span of each run, as `show` writes it. At first it is not shown: a key
    /// may be something that does not belong into a log.
    ///
    /// The spans are named `reconcile`, of the level `INFO`, and have the fields `key`, `attempt`,
    /// `queue_latency` (zero unless the queue's metrics keep times:
    /// [`Timed`](requeue_core::Timed) will do) and `outcome`: `done`, `requeued`, `failed` or
    /// `panicked`, the last two with `, given up` where that is so. A run that is aborted has no
    /// outcome.
    pub fn trace_keys(
        mut self,
        show: impl Fn(&K, &mut fmt::Formatter<'_>) -> fmt::Result + Send + Sync + 'static,
    ) -> Self {
        self.trace.show = Some(Box::new(show));
        self
    }
}
