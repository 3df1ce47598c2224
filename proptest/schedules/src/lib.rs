//! The queues for threads, for tasks and for microcontrollers under many schedules: how they wait,
//! and how their workers end.
//!
//! A schedule says which thread runs next, wherever it could matter: before each lock, unlock,
//! notification and wake. [shuttle](https://docs.rs/shuttle) runs a scenario under one schedule
//! after the other, and reports the first in which an assertion fails. The adapters are compiled as
//! they are, but that `--cfg shuttle` gives them another lock, and other threads and tasks. To
//! threads it also gives another way to park and a time that a test moves: see `sync.rs` in each.
//! Tokio's own timers run, on a clock that stands still. So do its tokens and watches, each step of
//! which is one. On a microcontroller each task has an executor of its own. Another one can come
//! between any two critical sections, which `requeue_interrupts` makes interruptible.
//!
//! ```sh
//! RUSTFLAGS="--cfg shuttle" cargo test --release -p requeue-schedules -- --nocapture
//! ```
//!
//! Each test prints how many schedules it has tried. They are the same in every run: one that fails
//! fails again. `SCHEDULES=10` tries ten times as many, `SCHEDULES_SEED=7` others.
//!
//! What the threads do is drawn. The first thread conducts: it runs only while no other can, so it
//! knows when nothing moves any more.
#![cfg(shuttle)]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a scenario that panics has failed"
)]

mod boards;
mod caller;
mod explore;
mod queues;
mod search;

use std::time::Duration;

pub use caller::{Caller, Order};
pub use explore::{begin, drawn, explore, quiet};
pub use queues::{Boards, Runs, Shares, Tasks, Threads, interrupt};
pub use search::{Called, History, Outcome, Step, explain};

/// The unit of all times.
pub const SECOND: Duration = Duration::from_secs(1);
