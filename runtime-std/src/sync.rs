//! The lock of threads, and how they sleep: parking_lot's `Mutex`, and std's `park`.
//!
//! Everything here that synchronises, the threads that it starts and the time come through this
//! file, so that another library can be put in its place: `--cfg shuttle` explores schedules.
//! parking_lot's mutex is not poisoned by a panic, which suits a queue that is valid wherever
//! foreign code may panic.

use requeue_core::binding::Lock;

#[cfg(not(shuttle))]
mod parker;
#[cfg(shuttle)]
mod shuttle;

#[cfg(shuttle)]
pub use self::shuttle::refuse_threads;
#[cfg(shuttle)]
pub(crate) use self::shuttle::{Instant, Mutex, Parker, RwLock, thread};
#[cfg(not(shuttle))]
pub(crate) use parker::Parker;
#[cfg(not(shuttle))]
pub(crate) use parking_lot::Mutex;
#[cfg(not(shuttle))]
pub(crate) use std::{sync::RwLock, thread, time::Instant};

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
