//! A span per run of a key, if the feature `tracing` is on: the two files offer the same.

#[cfg(not(feature = "tracing"))]
mod disabled;
#[cfg(feature = "tracing")]
mod enabled;

#[cfg(not(feature = "tracing"))]
pub use disabled::RunSpan;
#[cfg(not(feature = "tracing"))]
pub(crate) use disabled::Trace;
#[cfg(feature = "tracing")]
pub use enabled::RunSpan;
#[cfg(feature = "tracing")]
pub(crate) use enabled::Trace;

/// How a run ended, as its span shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done,
    RequeuedAfter,
    PutOff,
    Failed,
    Panicked,
}
