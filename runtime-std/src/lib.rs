#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod backoff;
mod batch;
mod builder;
mod clock;
mod queue;
mod sync;
mod workers;

pub use requeue_core as core;

pub use backoff::{Stop, backoff_until};
pub use batch::Batch;
pub use builder::Builder;
pub use clock::{ManualClock, SystemClock, Timer};
pub use queue::{GetError, Guard, Shared, WorkQueue};
pub use requeue_core::{Action, Added, Completion, Drained, Finished, Leftover, Rejected};
pub use sync::{Condvars, Locked};
pub use workers::{Failure, Workers};
