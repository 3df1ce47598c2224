//! What members promise, with one or two of them, on virtual time.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that panics has failed"
)]

mod bad_input;
mod hand_over;
mod marks;
mod replica;
mod switch;
