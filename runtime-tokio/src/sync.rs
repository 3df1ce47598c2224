//! The lock of tasks: parking_lot's `Mutex`.
//!
//! All locks of this crate, and the tasks that it spawns, come through this file, so that `--cfg
//! shuttle` can replace them and explore schedules. parking_lot's mutex is not poisoned by a panic,
//! which suits a queue that stays valid when a key's code panics.

use requeue_core::binding::Lock;

#[cfg(shuttle)]
mod shuttle;

#[cfg(shuttle)]
pub(crate) use self::shuttle::{JoinSet, Mutex};
#[cfg(not(shuttle))]
pub(crate) use parking_lot::Mutex;
#[cfg(not(shuttle))]
pub(crate) use tokio::task::JoinSet;

/// A [`Mutex`] as core's [`Lock`].
// At the beginning of a cache line, so that the lock and what each add writes are in one.
#[derive(Debug)]
#[repr(align(64))]
pub struct Locked<T>(Mutex<T>);

impl<T> Locked<T> {
    pub(crate) const fn new(state: T) -> Self {
        Self(Mutex::new(state))
    }
}

impl<T> Lock for Locked<T> {
    type State = T;

    #[inline(always)]
    fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        work(&mut self.0.lock())
    }
}
