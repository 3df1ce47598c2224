//! The metrics of a member, or nothing without the feature `metrics`. Both files have one
//! interface.

#[cfg(not(feature = "metrics"))]
mod disabled;
#[cfg(feature = "metrics")]
mod enabled;

#[cfg(not(feature = "metrics"))]
pub(crate) use disabled::MemberMetrics;
#[cfg(feature = "metrics")]
pub(crate) use enabled::MemberMetrics;
