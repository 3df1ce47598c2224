//! A span per run of a key, if the feature `tracing` is on. Both files have the same interface.
//! Owns the names of outcomes; never decides an outcome.

#[cfg(not(feature = "tracing"))]
mod disabled;
#[cfg(feature = "tracing")]
mod enabled;

use crate::action::Action;
use crate::failure::Failure;

#[cfg(not(feature = "tracing"))]
pub(super) use disabled::{RunSpan, Trace};
#[cfg(feature = "tracing")]
pub(super) use enabled::{RunSpan, Trace};

#[cfg(not(feature = "tracing"))]
pub(super) use disabled::log_failure;
#[cfg(feature = "tracing")]
pub(super) use enabled::log_failure;

/// The outcome of a run, for its span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Outcome(&'static str);

impl Outcome {
    pub(super) const fn name(self) -> &'static str {
        self.0
    }

    /// The outcome of a run that has not failed.
    pub(super) const fn of(action: Action) -> Self {
        Self(match action.into_parts().0 {
            Action::Success => "success",
            Action::RequeueAfter(_) => "requeued",
            Action::Snooze(_) => "retried later",
            Action::Suspend(_) => "suspended",
            Action::Poll(..) => "polls",
            Action::Retry => "failed",
            Action::GiveUp => "failed, given up",
            _ => "released",
        })
    }

    pub(super) const fn of_failure<E>(failure: &Failure<E>, gives_up: bool) -> Self {
        Self(match (failure, gives_up) {
            (Failure::Panic(_), false) => "panicked",
            (Failure::Panic(_), true) => "panicked, given up",
            (Failure::TimedOut(_), false) => "timed out",
            (Failure::TimedOut(_), true) => "timed out, given up",
            (_, false) => "failed",
            (_, true) => "failed, given up",
        })
    }
}
