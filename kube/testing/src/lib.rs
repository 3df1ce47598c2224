#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod answer;
mod cluster;
mod discovery;
mod fields;
mod kinds;
mod link;
mod request;
mod schema;
mod selector;
mod simulation;
mod store;
mod watching;
mod writes;

pub use cluster::{Cluster, Error, Request};
pub use link::Link;
pub use request::Verb;
pub use simulation::{Checked, Failure, Faults, Outcome, Simulation};

/// The code of the guide.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/book/src/test-your-controller.md")]
mod guide {}
