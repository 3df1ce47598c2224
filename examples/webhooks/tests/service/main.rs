//! The service as its users meet it: the program, a client, and receivers, all on loopback.
#![cfg(unix)]
#![allow(
    missing_docs,
    unreachable_pub,
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic, and its support is shared"
)]

mod converge;
mod crowd;
mod origins;
mod readme;
mod requests;
mod signatures;
mod starve;
mod stop;
#[path = "../support/mod.rs"]
mod support;
