#![doc = include_str!("../README.md")]
//! # Where to look
//!
//! | you want to | use |
//! |---|---|
//! | run a reconciler in several tasks | [`WorkQueue::run`], a future; [`run_with`](WorkQueue::run_with) also passes a [`RunContext`] |
//! | shut it down by a token | [`Run::shut_down_on`] |
//! | set retries, timeouts, hooks and the drain | [`Workers`]; [`Concurrency`] to change their number, [`DeadKeys`] to keep what is given up |
//! | take keys yourself | [`get`](WorkQueue::get), [`get_timeout`](WorkQueue::get_timeout), [`try_get`](WorkQueue::try_get), [`get_many`](WorkQueue::get_many); [`guards`](WorkQueue::guards) is a `Stream` |
//! | end a run | the [`Guard`]: `success()`, `retry()` and the rest of [`Action`]. Dropping it counts as a failure |
//! | choose the backoff, a bound or metrics | [`WorkQueue::builder`]. The type stays `WorkQueue<String>` |
//! | use priorities or groups | [`priority`] |
//! | give an event source a handle | [`WorkQueue::producer`] |
//! | see what the queue does | [`why`](WorkQueue::why), [`stats`](WorkQueue::stats), [`snapshot`](WorkQueue::snapshot) |
//! | test without waiting | Tokio's own `pause` and `advance` |
//! | repeat work with growing pauses, without a queue | [`backoff_until`] |
//!
//! Every method that waits may be dropped at any `await`. Its page says what happens then.
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
#[doc(no_inline)]
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
