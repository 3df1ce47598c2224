//! The tests of the queue for threads, in one program: it is linked once. Signals are the affair of a
//! whole process, so `ctrl_c.rs` is one of its own.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that panics has failed"
)]

mod batches;
mod bounds;
mod builder;
mod history;
mod instants;
mod threads;
mod workers;
