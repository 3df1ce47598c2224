#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod backoff;
mod clock;
mod queue;
mod sync;
mod waiting;
mod workers;

pub use requeue_core as core;

pub use backoff::backoff_until;
pub use clock::TokioClock;
pub use queue::{Batch, Guard, Shared, TaskHost, Tasks, WorkQueue};
pub use requeue_core::{
    Action, AddOptions, Added, AddedMany, Builder, Concurrency, DeadKeys, Drained, Entry, Failure,
    Finished, GetError, IntoAction, KeyState, Leftover, Merge, NotActive, Producer, Queue,
    Rejected, RunContext, RunEvent, Scheduled, Workers,
};
#[cfg(feature = "metrics")]
pub use requeue_core::{DURATION_BUCKETS, NamedMetrics};
pub use sync::Locked;
pub use tokio_util::sync::CancellationToken;
pub use waiting::Guards;
pub use workers::Run;
