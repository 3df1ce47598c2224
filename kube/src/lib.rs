#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod context;
mod controller;
mod error;
mod feed;
mod health;
mod keys;
mod lease;
mod metrics;
mod moving;
mod owners;
#[cfg(feature = "shards")]
mod shards;
mod tracker;
mod watching;

pub use context::Context;
pub use controller::Controller;
pub use error::Error;
pub use feed::feed;
pub use health::{Health, Probe};
pub use keys::{CHANGED, Keys, LISTED};
pub use lease::Leader;
#[cfg(feature = "metrics")]
pub use metrics::RECONCILE_BUCKETS;
pub use moving::{ActionExt, finalizer, with_error_policy};
#[cfg(feature = "shards")]
pub use shards::{LeaseSession, Leases};

#[cfg(feature = "metrics")]
pub use requeue::tokio::metrics::DURATION_BUCKETS;
pub use requeue::tokio::{Action, CancellationToken, Failure, IntoAction, Leftover, Workers};
