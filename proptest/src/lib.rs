//! The proof of requeue's queues.
//!
//! - [`Model`]: the reference model, slow and obviously right.
//! - [`Subject`](subject::Subject): what an implementation shows to be tested.
//! - [`cases`]: one scripted case for each rule.
//! - [`suite`]: any sequence of operations, on a subject and on the model side by side.
//! - [`trace`]: replays what the real client-go was recorded doing.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod cases;
mod figures;
mod model;
pub mod subject;
pub mod suite;
pub mod trace;

pub use figures::Figures;
pub use model::{Model, ModelDrain, ModelTicket, Rules};
