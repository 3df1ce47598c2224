//! Metrics under the names of controller-runtime and client-go, if the feature `metrics` is on.
//! Both files have the same interface.

#[cfg(not(feature = "metrics"))]
mod disabled;
#[cfg(feature = "metrics")]
mod enabled;

#[cfg(not(feature = "metrics"))]
pub(crate) use disabled::{LeaderMetrics, WriteMetrics, attach, observe, reports};
#[cfg(feature = "metrics")]
pub use enabled::RECONCILE_BUCKETS;
#[cfg(feature = "metrics")]
pub(crate) use enabled::{LeaderMetrics, WriteMetrics, attach, observe, reports};
