#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod backoff;
mod clock;
mod drain;
mod get;
mod queue;
mod room;
mod sync;
mod watch;
mod workers;

pub use requeue_core as core;

pub use backoff::{Stop, backoff_until};
pub use clock::{ManualClock, QueueClock, SystemClock};
pub use queue::{Batch, Guard, Shared, Threads, WorkQueue};
pub use requeue_core::{
    Action, AddOptions, Added, Builder, Drained, Entry, Failure, Finished, GetError, Leftover,
    Merge, Producer, Queue, Rejected, RunContext, Workers,
};
#[cfg(feature = "metrics")]
pub use requeue_core::{DURATION_BUCKETS, NamedMetrics};
pub use sync::Locked;
#[cfg(shuttle)]
pub use sync::refuse_threads;
