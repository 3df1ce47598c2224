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

pub use embassy_sync::blocking_mutex::raw;
pub use requeue_core as core;

pub use clock::{EmbassyClock, ManualAlarm, ManualClock};
pub use limits::{Limits, RunLimits};
pub use parts::{Parts, With};
pub use queue::{EmbassyHost, Guard, Shared, WorkQueue};
pub use requeue_core::binding::backoff_until;
pub use requeue_core::{
    Action, AddOptions, Added, AddedMany, Drained, Entry, Failure, Finished, GetError, IntoAction,
    KeyState, Leftover, Merge, NotActive, Producer, Queue, Rejected, Retries, RunContext,
    Scheduled, TooManyWaiters,
};
pub use sync::Locked;
