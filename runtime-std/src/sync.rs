//! The lock of threads, and how they sleep: parking_lot's `Mutex`, and std's `park`.
//!
//! All locks, threads and time of this crate come through this file, so that `--cfg shuttle` can
//! replace them and explore schedules. parking_lot's mutex is not poisoned by a panic, which suits
//! a queue that stays valid when a key's code panics.

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
