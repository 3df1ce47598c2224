//! The tests of the queue for microcontrollers, in one program: it is linked once. The time driver and
//! the logger belong to a whole process, so `timers.rs` and `logging.rs` are programs of their own.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that panics has failed"
)]

mod batches;
mod interrupts;
mod waiting;
mod workers;
