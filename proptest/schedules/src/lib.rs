//! The queues for threads, for tasks and for microcontrollers under many schedules: how they wait,
//! and how their workers end.
//!
//! A schedule says which thread runs next, wherever it could matter: before each lock, unlock,
//! notification and wake. [shuttle](https://docs.rs/shuttle) runs a scenario under one schedule
//! after the other, and reports the first in which an assertion fails or every thread sleeps for
//! ever. The adapters are compiled as they are, but that `--cfg shuttle` gives them another lock,
//! and other threads and tasks to start; to threads also another way to park and a time that a test
//! moves: see `sync.rs` in either. Tokio's own timers run, on a clock that stands still, and so do
//! its tokens and watches, each step of which is one.
//!
//! ```sh
//! RUSTFLAGS="--cfg shuttle" cargo test --release -p requeue-schedules -- --nocapture
//! ```
//!
//! Each test prints how many schedules it has tried. They are the same in every run: one that fails
//! fails again. `SCHEDULES=10` tries ten times as many, `SCHEDULES_SEED=7` others.
//!
//! On a microcontroller each task of a scenario has an executor of its own. Another one can come
//! between any two critical sections, which `requeue_interrupts` makes interruptible.
//!
//! Where the runtimes have the same to do the scenario is written once, for any queue that
//! waits (`Waits`), and stands in `tests/both`. What only one can do, as tasks that are aborted,
//! stands in `tests/threads` and `tests/tasks`.

#![cfg_attr(
    shuttle,
    allow(
        clippy::unwrap_used,
        clippy::panic,
        reason = "a scenario that panics has failed"
    )
)]

/// Tests each scenario with each queue: `explore` under schedules that are drawn, `explore_all`
/// under every one.
#[cfg(shuttle)]
#[macro_export]
macro_rules! scenarios {
    ([$threads:ident, $tasks:ident, $boards:ident] $($rest:tt)+) => {
        $crate::scenarios!([$threads, $tasks] $($rest)+);
        $crate::scenarios!(boards, $boards, $($rest)+);
    };
    ([$threads:ident, $tasks:ident] $($explore:ident: $($scenario:ident),+);+ $(;)?) => {
        $crate::scenarios!(threads, $threads, $($explore: $($scenario),+);+);
        $crate::scenarios!(tasks, $tasks, $($explore: $($scenario),+);+);
    };
    ($name:ident, $queue:ident, $($explore:ident: $($scenario:ident),+);+ $(;)?) => {
        mod $name {
            use $crate::$queue as Queue;
            $($(
                #[test]
                fn $scenario() {
                    $crate::$explore::<Queue>(stringify!($scenario), || {
                        $crate::Scene::<Queue>::play(super::$scenario)
                    });
                }
            )+)+
        }
    };
    ($($explore:ident: $($scenario:ident),+);+ $(;)?) => {
        $crate::scenarios!([Threads, Tasks, Boards] $($explore: $($scenario),+);+);
    };
}

#[cfg(shuttle)]
mod boards;
#[cfg(shuttle)]
mod explore;
#[cfg(shuttle)]
mod fragile;
#[cfg(shuttle)]
mod ledger;
#[cfg(shuttle)]
mod scene;
#[cfg(shuttle)]
mod waits;

#[cfg(shuttle)]
pub use boards::Board;
#[cfg(shuttle)]
pub use explore::{explore, explore_all, explore_each};
#[cfg(shuttle)]
pub use fragile::Fragile;
#[cfg(shuttle)]
pub use ledger::{Ending, Ledger, Run, uneven};
#[cfg(shuttle)]
pub use scene::{
    SECOND, Scene, at_any_moment, finish, full, interrupt, is_at_rest, join, run, with,
};
#[cfg(shuttle)]
pub use waits::{
    Boards, Grouped, GroupedTasks, GroupedThreads, Keys, Limiter, Ordered, PacedBoards, PacedTasks,
    PacedThreads, Runs, Shared, Tasks, Threads, Waits, curious,
};
