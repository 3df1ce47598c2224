#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod cases;
mod caught;
pub mod conformance;
mod figures;
pub mod histories;
pub mod limiter;
#[cfg(all(feature = "std", feature = "tokio"))]
pub mod linear;
mod model;
mod rules;
pub mod simulation;
mod soak;
pub mod subject;
#[cfg(all(feature = "std", feature = "tokio", feature = "embassy"))]
pub mod trace;
mod watched;

pub use proptest;

pub use figures::Figures;
pub use model::{Fingerprint, Model, Rules};
pub use soak::rounds;
