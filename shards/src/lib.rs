#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod backoff;
mod engine;
mod error;
mod held;
mod member;
mod memory;
mod placement;
mod shard;
mod shards;
mod status;
mod view;

pub use engine::{Engine, Mark, NewMark};
pub use error::{EngineError, Source};
pub use held::Held;
pub use member::{Counters, Member};
pub use memory::{Memory, MemorySession};
pub use shard::{Fence, Shard, ShardKey, shard_of};
pub use shards::{Builder, Shards};
pub use status::Status;
pub use view::{Membership, Owner, View};
