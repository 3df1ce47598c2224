//! The tests of core that use it as others do, in one program: it is linked once.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that panics has failed"
)]

mod common {
    pub(crate) mod clock;
    #[cfg(feature = "std")]
    pub(crate) mod idle;
    pub(crate) mod lock;
}

mod backlog;
mod bare_loop;
#[cfg(feature = "alloc")]
mod bound;
#[cfg(feature = "alloc")]
mod embedding;
#[cfg(feature = "std")]
mod failures;
#[cfg(feature = "alloc")]
mod groups;
#[cfg(feature = "std")]
mod handed;
#[cfg(feature = "alloc")]
mod holds;
#[cfg(feature = "std")]
mod hooks;
mod keys;
#[cfg(feature = "alloc")]
mod polling;
#[cfg(feature = "alloc")]
mod priority;
#[cfg(feature = "alloc")]
mod protocol;
#[cfg(feature = "alloc")]
mod records;
#[cfg(feature = "alloc")]
mod reporter;
#[cfg(feature = "alloc")]
mod running;
#[cfg(feature = "serde")]
mod saved;
#[cfg(feature = "std")]
mod seeds;
mod slack;
#[cfg(feature = "alloc")]
mod snapshot;
#[cfg(feature = "alloc")]
mod suspended;
mod unlocked;
mod waiting;
#[cfg(feature = "alloc")]
mod watching;
#[cfg(feature = "alloc")]
mod why;
#[cfg(feature = "alloc")]
mod worker;
#[cfg(feature = "std")]
mod workers;
