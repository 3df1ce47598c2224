//! The requeue work queue on several machines.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod engine;
mod error;
mod shard;
mod view;

pub use engine::{Engine, Mark, NewMark};
pub use error::{EngineError, Source};
pub use shard::{Fence, Shard, ShardKey, shard_of};
pub use view::{Membership, Owner, View};
