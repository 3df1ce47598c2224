#![doc = include_str!("../README.md")]
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod clock;
mod limits;
mod logging;
mod parts;
mod queue;
mod sync;
mod workers;
// After `workers`, because the documentation shows the methods in this order.
mod waiting;

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
