//! No spans: no room, no code.

use core::marker::PhantomData;
use core::time::Duration;

use super::Outcome;
use crate::failure::Failure;

/// How the spans of runs show their keys: not at all.
pub(in crate::workers) struct Trace<'w, K>(PhantomData<Unused<'w, K>>);

/// Uses the parameters without bounds on them, because a feature must not change bounds.
type Unused<'w, K> = (fn(&K), fn(&'w ()));

impl<K> Trace<'_, K> {
    pub(in crate::workers) fn new() -> Self {
        Self(PhantomData)
    }

    pub(in crate::workers) fn span(&self, _key: &K, _attempt: u32, _waited: Duration) -> RunSpan {
        RunSpan(())
    }

    /// Logs nothing.
    pub(in crate::workers) fn log_overdue(&self, _key: &K, _limit: Duration) {}
}

/// The span of one run of a key: empty, because the feature `tracing` is off.
#[derive(Debug)]
pub(in crate::workers) struct RunSpan(());

impl RunSpan {
    /// Runs `run`.
    pub(in crate::workers) fn in_scope<T>(&self, run: impl FnOnce() -> T) -> T {
        run()
    }

    /// Runs `run`.
    ///
    /// # Cancel safety
    ///
    /// That of `run`.
    pub(in crate::workers) async fn contain<F: Future>(&self, run: F) -> F::Output {
        run.await
    }

    pub(in crate::workers) fn end(self, Outcome(_): Outcome) {}
}

/// Logs nothing.
pub(in crate::workers) fn log_failure<E>(_failure: &Failure<E>, _attempt: u32, _is_given_up: bool) {
}
