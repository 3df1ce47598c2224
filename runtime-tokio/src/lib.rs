#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

#[cfg(all(target_family = "wasm", target_os = "unknown"))]
compile_error!(
    "requeue-tokio needs Tokio's clock, which panics on wasm32-unknown-unknown. Use `Queue` of requeue-core, and pass it the time that JavaScript has."
);

mod clock;
mod queue;
mod sync;
mod until;
mod workers;
// After `workers`, because the documentation shows the methods in this order.
mod waiting;

pub use requeue_core::{backoff, limiter, metrics, priority, storage};

pub use clock::QueueClock;
pub use queue::{Batch, Guard, WorkQueue};
#[doc(hidden)]
pub use queue::{example, example_groups};
pub use requeue_core::{
    Action, AddOptions, Added, AddedMany, Builder, Concurrency, DeadKeys, Failure, Finished,
    GroupLimits, GroupState, Instant, IntoAction, KeyState, Leftover, Merge, Policy, Producer,
    Queue, Rejected, RunContext, RunEvent, Scheduled, Stats, WaitError, Why, Workers,
};
pub use tokio_util::sync::CancellationToken;
pub use until::backoff_until;
pub use workers::Run;

/// For authors of a runtime binding, and for those who bind this queue to a library of their own.
/// May change in a minor version.
pub mod binding {
    pub use crate::queue::{Locked, TaskHost, Tasks};
    pub use crate::waiting::Guards;
    pub use requeue_core::binding::*;
}
