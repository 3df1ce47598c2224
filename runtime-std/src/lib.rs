#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod backoff;
mod clock;
mod drain;
mod get;
mod queue;
mod sync;
mod workers;

pub use requeue_core as core;

pub use backoff::{Stop, backoff_until};
pub use clock::{ManualClock, SystemClock, Timer};
pub use queue::{Batch, Guard, Shared, WorkQueue};
pub use requeue_core::{
    Action, AddOptions, Added, Completion, Drained, Failure, Finished, GetError, Leftover, Queue,
    Rejected, Workers,
};
#[cfg(feature = "metrics")]
pub use requeue_core::{DURATION_BUCKETS, NamedMetrics};
#[cfg(shuttle)]
pub use sync::refuse_threads;
pub use sync::{Condvars, Locked};
