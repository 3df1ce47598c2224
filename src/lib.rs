#![doc = include_str!("../README.md")]
#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub use requeue_core::*;

/// The queue for threads: the crate `requeue-std`.
#[cfg(feature = "std")]
pub mod std {
    pub use requeue_std::*;
}
