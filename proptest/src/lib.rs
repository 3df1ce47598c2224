#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod caught;
pub mod combinations;
pub mod conformance;
mod figures;
pub mod histories;
pub mod limiter;
mod model;
mod operation;
pub mod simulation;
mod soak;
mod stories;
pub mod subject;
mod watched;

pub use proptest;

pub use caught::guarded;
pub use figures::Figures;
pub use model::{Fingerprint, Model};
pub use soak::rounds;
