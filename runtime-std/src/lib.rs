#![doc = include_str!("../README.md")]
//! # Where to look
//!
//! | you want to | use |
//! |---|---|
//! | run a reconciler on several threads | [`WorkQueue::run`]; [`run_with`](WorkQueue::run_with) also passes a [`RunContext`] |
//! | set retries, timeouts, hooks and the drain | [`Workers`]; [`Concurrency`] to change their number, [`DeadKeys`] to keep what is given up |
//! | take keys yourself | [`get`](WorkQueue::get), [`get_timeout`](WorkQueue::get_timeout), [`try_get`](WorkQueue::try_get), [`get_many`](WorkQueue::get_many) |
//! | end a run | the [`Guard`]: `success()`, `retry()` and the rest of [`Action`]. Dropping it counts as a failure |
//! | choose the backoff, a bound, metrics or the clock | [`WorkQueue::builder`]. The type stays `WorkQueue<String>` |
//! | use priorities or groups | [`priority`] |
//! | give an event source a handle | [`WorkQueue::producer`] |
//! | see what the queue does | [`why`](WorkQueue::why), [`stats`](WorkQueue::stats), [`snapshot`](WorkQueue::snapshot) |
//! | test without waiting | [`ManualClock`] |
//! | stop in order on ctrl-c or SIGTERM | `on_ctrl_c`, with the feature `ctrlc` |
//! | repeat work with growing pauses, without a queue | [`backoff_until`] |
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
