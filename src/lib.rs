#![cfg_attr(feature = "std", doc = include_str!("../README.md"))]
#![cfg_attr(
    not(feature = "std"),
    doc = "The keyed work queue that every reconciler needs."
)]
#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub use requeue_core::*;

/// The queue for threads: the crate `requeue-std`.
#[cfg(feature = "std")]
pub mod std {
    pub use requeue_std::*;
}

/// The queue for tasks: the crate `requeue-tokio`.
#[cfg(feature = "tokio")]
pub mod tokio {
    pub use requeue_tokio::*;
}

/// The queue for tasks on microcontrollers: the crate `requeue-embassy`.
#[cfg(feature = "embassy")]
pub mod embassy {
    pub use requeue_embassy::*;
}
