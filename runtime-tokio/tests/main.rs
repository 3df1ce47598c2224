//! The tests of the queue for tasks, in one program: it is linked once. Subscribers of spans are the
//! affair of a whole process, so `tracing.rs` is one of its own.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that panics has failed"
)]
#![allow(
    clippy::disallowed_methods,
    reason = "tests spawn the tasks of a program"
)]

mod batches;
mod builder;
mod groups;
mod history;
mod hooks;
mod leftovers;
#[cfg(feature = "metrics")]
mod metrics;
mod tasks;
mod times;
mod waiting;
mod workers;
