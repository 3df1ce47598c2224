#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod backoff;
mod clock;
#[cfg(feature = "ctrlc")]
mod ctrl_c;
mod queue;
mod sync;
mod waiting;
mod workers;

pub use requeue_core as core;

pub use backoff::{Stop, backoff_until};
pub use clock::{ManualClock, QueueClock};
#[cfg(feature = "ctrlc")]
pub use ctrl_c::on_ctrl_c;
pub use queue::{Batch, Guard, Shared, ThreadHost, Threads, WorkQueue};
pub use requeue_core::{
    Action, AddOptions, Added, AddedMany, Builder, Concurrency, DeadKeys, Drained, Entry, Failure,
    Finished, GetError, IntoAction, KeyState, Leftover, Merge, NotActive, Producer, Queue,
    Rejected, RunContext, RunEvent, Scheduled, Workers,
};
#[cfg(feature = "metrics")]
pub use requeue_core::{DURATION_BUCKETS, NamedMetrics};
pub use sync::Locked;
#[cfg(shuttle)]
pub use sync::refuse_threads;
