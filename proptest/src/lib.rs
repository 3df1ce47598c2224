#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod cases;
mod caught;
pub mod conformance;
mod figures;
pub mod histories;
pub mod linear;
mod model;
pub mod simulation;
mod soak;
pub mod subject;
pub mod suite;
pub mod trace;
mod watched;

pub use proptest;

pub use figures::Figures;
pub use model::{Model, ModelDrain, ModelTicket, Rules};
pub use soak::rounds;
