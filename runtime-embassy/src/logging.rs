//! What a log is told, if the feature `log` is on: the two files offer the same.

#[cfg(not(feature = "log"))]
mod disabled;
#[cfg(feature = "log")]
mod enabled;

#[cfg(not(feature = "log"))]
pub(crate) use disabled::{gave_up, no_place, run_failed};
#[cfg(feature = "log")]
pub(crate) use enabled::{gave_up, no_place, run_failed};
