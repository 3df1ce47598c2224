#![doc = include_str!("../README.md")]
//! # Where to look
//!
//! | you want to | use |
//! |---|---|
//! | make a queue in a `static` | [`WorkQueue::new`] |
//! | add from an interrupt | [`WorkQueue::add`]; a `&'static dyn` [`Producer`] hides the types |
//! | run a reconciler | [`WorkQueue::run`]; [`run_with`](WorkQueue::run_with) also passes a [`RunContext`] |
//! | give up, or stop runs that take too long | [`RunLimits`] |
//! | take keys yourself | [`get`](WorkQueue::get), [`get_timeout`](WorkQueue::get_timeout), [`try_get`](WorkQueue::try_get) |
//! | end a run | the [`Guard`]: `success()`, `retry()` and the rest of [`Action`]. Dropping it counts as a failure |
//! | choose how long a failed key waits | [`limiter`] |
//! | use priorities, groups or a policy | [`priority`], the parameter `P` |
//! | know why a key does not run | [`why`](WorkQueue::why), [`stats`](WorkQueue::stats) |
//! | let more calls wait | the parameter `WAITERS`, three by default. One more returns [`WaitError::TooManyWaiters`] |
//! | test without waiting | [`ManualClock`], without embassy-time's driver |
//!
//! Every method that waits may be dropped at any `await`. Its page says what happens then.
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod clock;
mod limits;
mod parts;
mod queue;
#[cfg(feature = "rtic")]
mod rtic;
mod sync;
mod workers;
// After `workers`, because the documentation shows the methods in this order.
mod waiting;

#[doc(no_inline)]
pub use embassy_sync::blocking_mutex::raw;
pub use requeue_core::{backoff, limiter, metrics, priority, storage};

pub use clock::{ManualClock, QueueClock};
pub use limits::RunLimits;
pub use queue::{Guard, WorkQueue};
#[doc(hidden)]
pub use queue::{example, example_groups};
pub use requeue_core::binding::backoff_until;
pub use requeue_core::{
    Action, AddOptions, Added, AddedMany, Failure, Finished, GroupLimits, GroupState, Instant,
    IntoAction, KeyState, Leftover, Merge, Policy, Producer, Queue, Rejected, RunContext,
    Scheduled, Stats, WaitError, Why,
};
#[cfg(feature = "rtic")]
pub use rtic::RticClock;

/// For authors of a runtime binding, and for those who bind this queue to a library of their own.
/// May change in a minor version.
pub mod binding {
    pub use crate::clock::ManualAlarm;
    pub use crate::limits::RunTimeout;
    pub use crate::parts::Parts;
    pub use crate::queue::EmbassyHost;
    pub use crate::sync::Locked;
    pub use requeue_core::binding::*;
}
