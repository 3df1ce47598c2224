#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod cache;
mod context;
mod controller;
mod error;
mod events;
mod feed;
mod health;
mod keys;
mod lease;
mod manager;
mod metrics;
mod moving;
mod owners;
mod reasons;
#[cfg(feature = "shards")]
mod shards;
mod shared;
mod signal;
mod tracker;
mod wait_for;
mod waiting;
mod wakers;
mod writes;

pub use context::Context;
pub use controller::Controller;
pub use error::Error;
pub use events::{EventsExt, Judged, OnlyChanged, WatchItem, watch};
pub use feed::feed;
pub use health::{Health, Probe};
pub use keys::{CHANGED, KeyQueue, Keys, LISTED};
pub use lease::Leader;
pub use manager::Manager;
#[cfg(feature = "metrics")]
pub use metrics::RECONCILE_BUCKETS;
pub use moving::{ActionExt, finalizer, with_error_policy};
pub use reasons::{Cause, Reason, Reasons};
#[cfg(feature = "shards")]
pub use shards::{LeaseSession, Leases};
pub use shared::{SharedEvent, SharedWatch, Subscription};
pub use signal::shutdown_on_signal;
pub use wait_for::WaitFor;
pub use writes::{NotCached, Writes, record_writes};

#[cfg(feature = "metrics")]
pub use requeue::tokio::metrics::DURATION_BUCKETS;
pub use requeue::tokio::{
    Action, CancellationToken, DeadKeys, Failure, GroupLimits, IntoAction, Leftover, Workers,
};

/// The code of the guide that is not in its programs.
#[cfg(doctest)]
#[doc = include_str!("../../docs/book/src/own-writes.md")]
mod guide {}
