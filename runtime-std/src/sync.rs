//! The lock of threads, and how they sleep: parking_lot's `Mutex`, and std's `park`.
//!
//! All locks, threads and time of this crate come through this file, so that `--cfg shuttle` can
//! replace them and explore schedules. parking_lot's mutex is not poisoned by a panic, which suits
//! a queue that stays valid when a key's code panics.

use requeue_core::binding::Lock;

#[cfg(not(shuttle))]
mod parker;
#[cfg(shuttle)]
mod shuttle;

#[cfg(shuttle)]
pub use self::shuttle::refuse_threads;
#[cfg(shuttle)]
pub(crate) use self::shuttle::{Instant, Mutex, Parker, thread};
#[cfg(not(shuttle))]
pub(crate) use parker::Parker;
#[cfg(not(shuttle))]
pub(crate) use parking_lot::Mutex;
#[cfg(not(shuttle))]
pub(crate) use std::{thread, time::Instant};

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
