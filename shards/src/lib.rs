#![doc = include_str!("../README.md")]
//! # Where to look
//!
//! | you want to | use |
//! |---|---|
//! | split a key space, or mark keys | [`Shards`], and its [`Builder`] |
//! | own shards and run their keys | [`Member`] |
//! | know in a run whether the shard was lost, and its fence | [`Ownership`], [`Fence`] |
//! | use your own key type | [`ShardKey`]; [`shard_of`] computes the shard of a key |
//! | choose an engine | [`Etcd`], [`Memory`]; Leases are in `requeue-kube` |
//! | write another engine | [`Engine`], [`View`], [`conformance`] |
//! | show the owner of each shard | [`Status`], or the command `shards` |
//! | watch a member | [`Member::health`], [`Counters`], the feature `metrics` |
//! | handle errors | [`EngineError`] |
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod backoff;
#[cfg(feature = "conformance")]
pub mod conformance;
mod engine;
mod error;
#[cfg(feature = "etcd")]
mod etcd;
mod member;
mod memory;
mod metrics;
mod ownership;
mod placement;
mod shard;
mod shards;
mod status;
mod view;

pub use engine::{Engine, Mark, NewMark};
pub use error::{EngineError, Source};
#[cfg(feature = "etcd")]
pub use etcd::{Etcd, EtcdSession};
#[cfg(feature = "etcd")]
pub use etcd_client;
pub use member::{Counters, Member};
pub use memory::{Memory, MemorySession};
pub use ownership::Ownership;
pub use shard::{Fence, Shard, ShardKey, Taken, shard_of};
pub use shards::{Builder, Shards};
pub use status::Status;
pub use view::{Membership, Owner, View};
