//! Concurrent histories of a queue. Threads and tasks share it, and some order of their calls has to
//! explain the answers.
//!
//! A [`Trial`] is a queue that several [workers](Worker) call at once. It records a [`History`],
//! which [`explain`] judges by the reference model. `proptest/interrupts` uses this for interrupts
//! on a microcontroller. The rest needs `--cfg shuttle`: the queues for threads, for tasks and for
//! microcontrollers under many schedules.
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
//! RUSTFLAGS="--cfg shuttle" cargo test --profile schedules -p requeue-schedules -- --nocapture
//! ```
//!
//! Each test prints how many schedules it has tried. They are the same in every run: one that fails
//! fails again. `SCHEDULES=10` tries ten times as many, `SCHEDULES_SEED=7` others.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a scenario that panics has failed"
)]

mod caller;
#[cfg(shuttle)]
mod explore;
mod queues;
#[cfg(shuttle)]
mod runtimes;
mod search;
mod trial;

use std::time::Duration;

pub use caller::{Caller, Order};
#[cfg(shuttle)]
pub use explore::{begin, explore, quiet};
pub use queues::{Boards, Runs, Shares};
#[cfg(shuttle)]
pub use runtimes::{Tasks, Threads};
pub use search::{History, explain};
pub use trial::{Trial, Worker};

/// The unit of all times.
pub const SECOND: Duration = Duration::from_secs(1);
