//! The lock of tasks on a microcontroller: embassy-sync's blocking mutex.
//!
//! All locks of this crate come through this file. The firmware chooses the mutex kind `R`: a
//! critical section if interrupts add keys, no lock at all if one executor has the queue to itself.

use core::cell::RefCell;

use embassy_sync::blocking_mutex::Mutex;
use embassy_sync::blocking_mutex::raw::RawMutex;
use requeue_core::binding::Lock;

/// A blocking [`Mutex`] as core's [`Lock`].
///
/// # Panics
///
/// If a key's own code (`Hash`, `Eq`, `Clone`, `Drop`) calls the queue.
#[derive(Debug)]
pub struct Locked<R: RawMutex, T>(Mutex<R, RefCell<T>>);

impl<R: RawMutex, T> Locked<R, T> {
    pub(crate) const fn new(state: T) -> Self {
        Self(Mutex::new(RefCell::new(state)))
    }
}

impl<R: RawMutex, T> Lock for Locked<R, T> {
    type State = T;

    #[inline]
    fn with<X>(&self, work: impl FnOnce(&mut T) -> X) -> X {
        self.0.lock(|state| work(&mut state.borrow_mut()))
    }

    #[inline]
    fn no_place(&self, places: usize) {
        #[cfg(feature = "log")]
        log::error!(target: "requeue", "more than {places} calls wait for one queue");
        let _ = places;
    }
}
