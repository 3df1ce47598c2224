#![doc = include_str!("../README.md")]
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
pub use requeue_core::binding::Clock;
pub use requeue_core::{
    Action, AddOptions, Added, AddedMany, Finished, GroupLimits, GroupState, Instant, IntoAction,
    KeyState, Leftover, Merge, Policy, Producer, Queue, Rejected, RunContext, Scheduled, Stats,
    WaitError, Why,
};
pub use waiting::Look;

/// For authors of a runtime binding, and for those who bind this queue to a library of their own.
/// May change in a minor version.
pub mod binding {
    pub use crate::queue::{BareHost, Section};
    pub use requeue_core::binding::*;
}
