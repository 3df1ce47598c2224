//! What a queue survives.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that panics has failed"
)]

mod clock;
mod keys;
mod run;
