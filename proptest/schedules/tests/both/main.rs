//! Scenarios of threads and of tasks alike. That no thread sleeps for ever is checked throughout: a
//! schedule that ends with every thread asleep has failed.
#![cfg(shuttle)]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that panics has failed"
)]

mod deadlines;
mod drains;
mod getters;
mod groups;
mod rates;
mod room;
mod run;
mod suspensions;
mod watching;
mod workers;
