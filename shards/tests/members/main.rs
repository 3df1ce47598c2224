//! The promises of members and engines, on virtual time.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that panics has failed"
)]

mod bad_input;
#[cfg(feature = "conformance")]
mod engines;
mod hand_over;
mod lost_state;
mod marks;
#[cfg(feature = "metrics")]
mod metrics;
mod replica;
mod simulation;
mod switch;
mod unreadable;
