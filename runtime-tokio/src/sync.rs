//! The lock of tasks: parking_lot's `Mutex`.
//!
//! All locks of this crate, and the tasks that it spawns, come through this file, so that `--cfg
//! shuttle` can replace them and explore schedules. parking_lot's mutex is not poisoned by a panic,
//! which suits a queue that stays valid when a key's code panics.

#[cfg(shuttle)]
mod shuttle;

#[cfg(shuttle)]
pub(crate) use self::shuttle::{JoinSet, Mutex};
#[cfg(not(shuttle))]
pub(crate) use parking_lot::Mutex;
#[cfg(not(shuttle))]
pub(crate) use tokio::task::JoinSet;
