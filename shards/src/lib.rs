#![doc = include_str!("../README.md")]
//! # Where to look
//!
//! | | |
//! |---|---|
//! | [`Shards`], [`Builder`] | a set of shards: its settings, marks, [`status`](Shards::status) |
//! | [`Member`] | a replica that owns shards and runs their keys |
//! | [`Ownership`], [`Fence`] | passed to each run: the shard, its fence, and whether it was lost |
//! | [`ShardKey`], [`shard_of`] | your key type, and the shard of a key |
//! | [`Etcd`], [`Memory`] | the engines; Leases are in `requeue-kube` |
//! | [`Engine`], [`conformance`], [`View`] | to write another engine |
//! | [`Status`], [`Counters`] | what to show and to watch |
//! | [`EngineError`] | all errors |
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
