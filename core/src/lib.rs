#![doc = include_str!("../README.md")]
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(doc)]
extern crate self as requeue_core;
#[cfg(any(test, feature = "std"))]
extern crate std;

mod action;
mod aging;
mod array;
mod backoff;
#[cfg(feature = "alloc")]
mod batch;
pub mod binding;
#[cfg(feature = "alloc")]
mod builder;
mod delay;
mod face;
mod failure;
mod group;
mod guard;
mod id;
mod keyed;
mod limiter;
mod lists;
mod metrics;
mod options;
mod outcome;
mod policy;
mod priority;
mod producer;
mod queue;
#[cfg(feature = "alloc")]
mod segments;
mod shared;
mod sleepers;
#[doc(hidden)]
pub mod steps;
mod storage;
mod time;
mod timer;
mod wait;
mod wait_list;
mod work;
#[cfg(feature = "alloc")]
mod workers;

pub use rand_core;

pub use action::{Action, IntoAction, Retries, RunContext};
pub use aging::Aging;
pub use backoff::{
    Attempt, Attempts, Backoff, BackoffManager, BackoffUntil, DelayWithReset,
    ExponentialBackoffManager, NoJitter, jitter,
};
#[cfg(feature = "alloc")]
pub use batch::Batch;
#[cfg(feature = "alloc")]
pub use builder::{Bare, Builder};
pub use failure::Failure;
pub use group::Groups;
pub use guard::Guard;
pub use id::Index;
pub use keyed::KeyedLimiter;
pub use limiter::{
    DefaultController, DefaultItemBased, Exponential, FastSlow, NoLimit, RateLimiter, TokenBucket,
    WithJitter, WithMaxWait, default_controller, default_item_based,
};
pub use lists::grouped::{GroupLimits, GroupState};
#[cfg(feature = "metrics")]
pub use metrics::named::{DURATION_BUCKETS, NamedMetrics};
#[cfg(feature = "alloc")]
pub use metrics::reporter::Reporter;
pub use metrics::{Metrics, NoMetrics, Timed, Times, Timestamps};
pub use options::{AddOptions, Merge};
pub use outcome::{
    Added, AddedMany, Drained, Entry, Finished, KeyState, Leftover, NotActive, Rejected, Scheduled,
    Stats, WaitError, Why,
};
pub use policy::{Policy, WithPolicy};
pub use priority::{Levels, Plain, Priorities};
pub use producer::Producer;
pub use queue::{Queue, Session, Sweep};
pub use storage::Storage;
pub use storage::fixed::Fixed;
#[cfg(feature = "alloc")]
pub use storage::growable::{Growable, RandomState};
pub use time::Instant;
#[cfg(feature = "std")]
pub use workers::{Concurrency, DeadKeys};
#[cfg(feature = "alloc")]
pub use workers::{RunEvent, Workers};
