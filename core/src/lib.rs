#![doc = include_str!("../README.md")]
//! # Where to look
//!
//! There are three layers, each tested without the next. [`Queue`] is the state machine, with plain
//! `&mut self` and the time as an argument. [`Shared`](binding::Shared) is a queue behind a
//! [`Lock`](binding::Lock), with a [`Clock`](binding::Clock), and [`Wait`](binding::Wait) is a call
//! that waits. A runtime adds its lock, its clock, and how it parks a thread or sets a timer.
//!
//! | you want to | use |
//! |---|---|
//! | keep a queue behind your own lock | [`Queue`], and [`Queue::at`] for each access |
//! | call its operations | [`Session`] |
//! | say how a run ended | [`Action`] |
//! | choose how long a failed key waits | [`limiter`]; without a queue [`KeyedLimiter`](limiter::KeyedLimiter) |
//! | choose priorities, groups or a policy | [`priority`], [`Policy`] |
//! | choose where keys are stored | [`storage`] |
//! | receive figures | [`metrics`] |
//! | retry a call with apimachinery's backoff | [`backoff`] |
//! | bind the queue to a runtime | [`binding`], which says how |
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

#[cfg(feature = "alloc")]
extern crate alloc;
// What core's macros write into other crates links to its items by this name.
extern crate self as requeue_core;
#[cfg(any(test, feature = "std"))]
extern crate std;

mod action;
mod array;
pub mod backoff;
#[cfg(feature = "alloc")]
mod batch;
pub mod binding;
#[cfg(feature = "alloc")]
mod builder;
#[doc(hidden)]
pub mod chunks;
mod delay;
mod face;
mod failure;
mod group;
mod guard;
mod id;
mod keyed;
mod levels;
pub mod limiter;
mod lists;
pub mod metrics;
mod options;
mod outcome;
mod policy;
mod producer;
mod queue;
mod rate;
#[cfg(feature = "alloc")]
mod ring;
#[cfg(feature = "alloc")]
mod segments;
mod shared;
mod sleepers;
pub mod storage;
mod store;
mod time;
mod timer;
mod wait;
mod wait_list;
mod work;
#[cfg(feature = "std")]
mod workers;

/// Keeps other crates from implementing a trait.
mod sealed {
    pub trait Sealed {}
}

/// The order in which a queue serves its keys: [`Priorities`](priority::Priorities), the second
/// parameter of its type.
pub mod priority {
    pub use crate::group::{Grouped, Groups};
    pub use crate::levels::{
        Aging, Levels, Plain, Priorities, WithPolicy, WithSlack, WithSuspension,
    };
    pub use crate::lists::grouped::rates::Rates;
}

pub use action::{Action, IntoAction, RunContext};
#[cfg(feature = "alloc")]
pub use batch::Batch;
#[cfg(feature = "alloc")]
pub use builder::Builder;
pub use failure::Failure;
pub use guard::Guard;
pub use lists::grouped::{GroupLimits, GroupState};
pub use options::{AddOptions, Merge};
pub use outcome::{
    Added, AddedMany, Finished, KeyState, Leftover, Rejected, Scheduled, Stats, WaitError, Why,
};
pub use policy::Policy;
pub use producer::Producer;
pub use queue::{Queue, Session};
pub use time::Instant;
#[cfg(feature = "std")]
pub use workers::{Concurrency, DeadKeys, RunEvent, Workers};
