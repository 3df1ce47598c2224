//! The proof of requeue's queues.
//!
//! - [`Model`]: the reference model, slow and obviously right.
//! - [`Subject`](subject::Subject): what an implementation shows to be tested.
//! - [`trace`]: replays what the real client-go was recorded doing.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod figures;
mod model;
pub mod subject;
pub mod trace;

pub use figures::Figures;
pub use model::{Model, ModelDrain, ModelTicket, Rules};
