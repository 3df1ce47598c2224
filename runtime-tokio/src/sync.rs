//! The lock of tasks: parking_lot's `Mutex`.
//!
//! Everything here that synchronises, and the tasks that it starts, come through this file, so that
//! another library can be put in its place: `--cfg shuttle` explores schedules. parking_lot's mutex
//! is not poisoned by a panic, which suits a queue that is valid wherever foreign code may panic.

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
#[derive(Debug)]
pub struct Locked<T>(Mutex<T>);

impl<T> Locked<T> {
    pub(crate) const fn new(state: T) -> Self {
        Self(Mutex::new(state))
    }
}

impl<T> Lock for Locked<T> {
    type State = T;

    #[inline]
    fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        work(&mut self.0.lock())
    }
}
