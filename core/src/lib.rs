#![doc = include_str!("../README.md")]
#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(any(test, feature = "metrics"))]
extern crate std;

mod action;
mod backoff;
#[cfg(feature = "alloc")]
mod batch;
#[cfg(feature = "alloc")]
mod builder;
mod delay;
mod guard;
mod id;
mod keyed;
mod limiter;
mod lists;
mod lock;
mod metrics;
mod options;
mod outcome;
mod priority;
mod queue;
mod slots;
mod time;
#[cfg(feature = "alloc")]
mod trace;
mod turn;
mod waiting;
mod waker;
mod work;
mod work_queue;
#[cfg(feature = "alloc")]
mod workers;

pub use rand_core;

pub use action::{Action, Retries};
pub use backoff::{
    Attempt, Attempts, Backoff, BackoffManager, BackoffUntil, DelayWithReset,
    ExponentialBackoffManager, NoJitter, jitter,
};
#[cfg(feature = "alloc")]
pub use batch::Batch;
#[cfg(feature = "alloc")]
pub use builder::Builder;
pub use guard::{Complete, Guard};
pub use id::Index;
pub use keyed::KeyedLimiter;
pub use limiter::{
    Bucket, DefaultController, DefaultItemBased, ItemExponentialFailure, ItemFastSlow, NoLimit,
    RateLimiter, WithMaxWait, default_controller, default_item_based,
};
pub use lock::Lock;
#[cfg(feature = "metrics")]
pub use metrics::named::{DURATION_BUCKETS, NamedMetrics};
pub use metrics::{Metrics, NoMetrics, Stamps, Timed, Times};
pub use options::AddOptions;
pub use outcome::{
    Added, AddedMany, Completion, Drain, Drained, Effect, Finished, GetError, KeyState, Leftover,
    Limited, Next, NotActive, Rejected, Step, Wake,
};
pub use priority::{Levels, NoPriorities, Priorities};
pub use queue::Queue;
pub use slots::Storage;
pub use slots::fixed::Fixed;
#[cfg(feature = "alloc")]
pub use slots::growable::{Growable, RandomState};
pub use time::{Clock, Instant};
#[cfg(feature = "alloc")]
pub use trace::RunSpan;
pub use turn::Turn;
pub use waiting::Getter;
pub use waker::Waker;
pub use work::{Facts, FactsOf, Ticket, Told, Work, WorkOf};
pub use work_queue::WorkQueue;
#[cfg(feature = "alloc")]
pub use workers::{Failure, Workers};
