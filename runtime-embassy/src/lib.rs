#![doc = include_str!("../README.md")]
#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod backoff;
mod clock;
mod drain;
mod get;
mod get_error;
mod queue;
mod sync;
mod told;
mod waiting;
mod workers;

pub use embassy_sync::blocking_mutex::raw;
pub use requeue_core as core;

pub use backoff::backoff_until;
pub use clock::{EmbassyClock, ManualClock, Timer};
pub use get_error::GetError;
pub use queue::{Guard, Shared, WorkQueue};
pub use requeue_core::{
    Action, AddOptions, Added, Completion, Drained, Finished, Leftover, Queue, Rejected, Retries,
};
pub use sync::{Locked, TooManyWaiters, Wakers};
