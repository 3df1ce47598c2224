//! The lock and the waker of threads: parking_lot's `Mutex` and `Condvar`.
//!
//! Everything here that synchronises, the threads that it starts and the time come through this
//! file, so that another library can be put in its place: `--cfg shuttle` explores schedules.
//! parking_lot's mutex is not poisoned by a panic, which suits a queue that is valid wherever
//! foreign code may panic.

use requeue_core::{Lock, Waker};

#[cfg(shuttle)]
mod shuttle;

#[cfg(shuttle)]
pub use self::shuttle::refuse_threads;
#[cfg(shuttle)]
pub(crate) use self::shuttle::{Condvar, Instant, Mutex, MutexGuard, RwLock, thread};
#[cfg(not(shuttle))]
pub(crate) use parking_lot::{Condvar, Mutex, MutexGuard};
#[cfg(not(shuttle))]
pub(crate) use std::{sync::RwLock, thread, time::Instant};

/// A [`Mutex`] as core's [`Lock`]. [`Shared`](crate::Shared) has an example.
#[derive(Debug)]
pub struct Locked<T>(Mutex<T>);

impl<T> Locked<T> {
    pub(crate) const fn new(state: T) -> Self {
        Self(Mutex::new(state))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock()
    }
}

impl<T> Lock for Locked<T> {
    type State = T;

    #[inline]
    fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        work(&mut self.lock())
    }
}

/// Wakes threads: those that wait for a key, and those that wait for the drain. Part of
/// [`Shared`](crate::Shared).
#[derive(Debug, Default)]
pub struct Condvars {
    pub(crate) getters: Condvar,
    pub(crate) drains: Condvar,
}

impl Waker for Condvars {
    fn wake_one(&self) {
        self.getters.notify_one();
    }

    fn wake_all(&self) {
        self.getters.notify_all();
        self.drains.notify_all();
    }

    fn is_abandoned(&self) -> bool {
        std::thread::panicking()
    }
}
