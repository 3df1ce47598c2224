#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

#[cfg(all(target_family = "wasm", target_os = "unknown"))]
compile_error!(
    "requeue-std needs threads and a clock, and wasm32-unknown-unknown has neither. Use `Queue` of requeue-core, and pass it the time that JavaScript has."
);

mod clock;
#[cfg(feature = "ctrlc")]
mod ctrl_c;
mod queue;
mod sync;
mod until;
mod workers;
// After `workers`, because the documentation shows the methods in this order.
mod waiting;

pub use requeue_core::{backoff, limiter, metrics, priority, storage};

pub use clock::{ManualClock, QueueClock};
#[cfg(feature = "ctrlc")]
pub use ctrl_c::on_ctrl_c;
pub use queue::{Batch, Guard, WorkQueue};
#[doc(hidden)]
pub use queue::{example, example_groups};
pub use requeue_core::{
    Action, AddOptions, Added, AddedMany, Builder, Concurrency, DeadKeys, Failure, Finished,
    GroupLimits, GroupState, Instant, IntoAction, KeyState, Leftover, Merge, Policy, Producer,
    Queue, Rejected, RunContext, RunEvent, Scheduled, Stats, WaitError, Why, Workers,
};
#[cfg(shuttle)]
pub use sync::refuse_threads;
pub use until::{Stop, backoff_until};

/// For authors of a runtime binding, and for those who bind this queue to a library of their own.
/// May change in a minor version.
pub mod binding {
    pub use crate::queue::{Locked, ThreadHost, Threads};
    pub use requeue_core::binding::*;
}
