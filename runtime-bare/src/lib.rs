#![doc = include_str!("../README.md")]
//! # Where to look
//!
//! | you want to | use |
//! |---|---|
//! | make a queue in a `static` | [`WorkQueue::new`] |
//! | describe your hardware | [`Board`], [`Clock`] |
//! | add from an interrupt | [`WorkQueue::add`]; a `&'static dyn` [`Producer`] hides the types |
//! | run a reconciler | [`WorkQueue::run`] |
//! | take keys yourself | [`get`](WorkQueue::get), [`get_timeout`](WorkQueue::get_timeout), [`try_get`](WorkQueue::try_get), [`look`](WorkQueue::look) |
//! | end a run | the [`Guard`]: `success()`, `retry()` and the rest of [`Action`]. Dropping it counts as a failure |
//! | choose how long a failed key waits | [`limiter`] |
//! | use priorities, groups or a policy | [`priority`], the parameter `P` |
//! | know why a key does not run | [`why`](WorkQueue::why), [`stats`](WorkQueue::stats) |
//! | test without waiting | [`ManualClock`] |
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod board;
mod queue;
mod waiting;

pub use requeue_core::{backoff, limiter, metrics, priority, storage};

pub use board::{Board, ManualClock};
pub use queue::{Guard, WorkQueue};
#[doc(hidden)]
pub use queue::{example, example_groups};
pub use requeue_core::binding::{Clock, Next};
pub use requeue_core::{
    Action, AddOptions, Added, AddedMany, Finished, GroupLimits, GroupState, Instant, IntoAction,
    KeyState, Leftover, Merge, Policy, Producer, Queue, Rejected, RunContext, Scheduled, Stats,
    WaitError, Why,
};

/// For authors of a runtime binding, and for those who bind this queue to a library of their own.
/// May change in a minor version.
pub mod binding {
    pub use crate::queue::{BareHost, Section};
    pub use requeue_core::binding::*;
}
