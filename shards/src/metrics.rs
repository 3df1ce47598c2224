//! The figures of a member, if the feature `metrics` is on. Both files have the same interface.

#[cfg(not(feature = "metrics"))]
mod disabled;
#[cfg(feature = "metrics")]
mod enabled;

#[cfg(not(feature = "metrics"))]
pub(crate) use disabled::MemberMetrics;
#[cfg(feature = "metrics")]
pub(crate) use enabled::MemberMetrics;
