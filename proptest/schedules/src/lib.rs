//! How the queues for threads and for tasks wait, under many schedules of their threads.
//!
//! A schedule says which thread runs next, wherever it could matter: before each lock, unlock,
//! notification and wake. [shuttle](https://docs.rs/shuttle) runs a scenario under one schedule
//! after the other, and reports the first in which an assertion fails or everybody sleeps for ever.
//! The adapters are compiled as they are, but that `--cfg shuttle` gives them another lock, and
//! threads another condition variable and a time that a test moves: see `sync.rs` in either.
//!
//! ```sh
//! RUSTFLAGS="--cfg shuttle" cargo test --release -p requeue-schedules -- --nocapture
//! ```
//!
//! Each test prints how many schedules it has tried. They are the same in every run: one that fails
//! fails again. `SCHEDULES=10` tries ten times as many, `SCHEDULES_SEED=7` others.
//!
//! Not explored: `run`, whose workers are threads of the system, or tasks of a runtime.

#[cfg(shuttle)]
mod explore;

#[cfg(shuttle)]
pub use explore::{explore, explore_all};
