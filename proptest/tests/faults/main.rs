//! What a queue survives. `REQUEUE_SOAK` multiplies the rounds of tests of chance.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that panics has failed"
)]

mod clock;
mod keys;
mod run;
