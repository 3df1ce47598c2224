//! A keyed work queue for code that reconciles.
//!
//! You add *keys*, and workers run them. All adds before a run make one run. An add during a run
//! makes one more. No key runs twice at once. A failed run is retried with backoff. It is
//! Kubernetes' `client-go/util/workqueue` for Rust.
//!
//! | you want to | see |
//! |---|---|
//! | use threads | [`requeue::std`](crate::std), the default |
//! | use tasks on Tokio | [`requeue::tokio`](crate::tokio), feature `tokio` |
//! | use a microcontroller | [`requeue::embassy`](crate::embassy) with tasks, [`requeue::bare`](crate::bare) with a loop |
//! | add, take and run keys | the `WorkQueue` of your runtime |
//! | say how a run ended | [`Action`] |
//! | choose workers, retries and timeouts | [`Workers`] |
//! | choose how long a failed key waits | [`limiter`] |
//! | use priorities or groups | [`priority`] |
//! | see why a key does not run | [`Why`], [`Stats`], [`metrics`] |
//! | bring your own clock and lock | [`Queue`], and [`binding`] for a whole runtime |
//!
//! The module of a runtime also has everything that is here. So `requeue::std::Action` is
//! [`Action`], and one `use` is enough.
//!
//! # Examples
//!
//! Threads that work until ctrl-c, with the feature `ctrlc`:
//!
//! ```no_run
//! use requeue::std::{WorkQueue, on_ctrl_c};
//!
//! fn main() -> std::io::Result<()> {
//!     let queue = WorkQueue::new();
//!     for _ in 0..10 {
//!         let _ = queue.add("default/web"); // Ten changes make one run.
//!     }
//!     let stopping = queue.clone();
//!     on_ctrl_c(move || stopping.shut_down())?;
//!     queue.run(4, |key| println!("making {key} what it should be"))?;
//!     Ok(())
//! }
//! ```
//!
//! Do not write `use requeue::*`: it hides the crate `std` behind a module.
//!
//! # Features
//!
//! | feature | adds |
//! |---|---|
//! | `std` (default), `tokio`, `embassy`, `bare` | the module of a runtime |
//! | `metrics` | figures under Kubernetes' names, through the `metrics` facade: `.metrics("name")` of a builder and of [`Workers`]. Turns on the standard library |
//! | `tracing` | a span per run, and a log line for each failure without a hook. `Workers::trace_keys` adds the key. Turns on the standard library |
//! | `serde` | `Serialize` and `Deserialize` on [`Leftover`] |
//! | `ctrlc` | `requeue::std::on_ctrl_c`. Turns on `std` |
//! | `defmt` | `defmt::Format` on the types of boards |
//! | `log` | log lines for failures on Embassy |
//! | `rtic` | `requeue::embassy::RticClock`, the clock of an RTIC monotonic. Turns on `embassy` |
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub use requeue_core::{backoff, binding, limiter, metrics, priority, storage};

pub use requeue_core::{
    Action, AddOptions, Added, AddedMany, Failure, Finished, GroupLimits, GroupState, Instant,
    IntoAction, KeyState, Leftover, Merge, Policy, Producer, Queue, Rejected, RunContext,
    Scheduled, Stats, WaitError, Why,
};
#[cfg(any(feature = "std", feature = "tokio"))]
pub use requeue_core::{Builder, Concurrency, DeadKeys, RunEvent, Workers};

/// The queue for threads: the crate `requeue-std`.
///
/// ```
/// use requeue::std::WorkQueue;
///
/// fn main() -> std::io::Result<()> {
///     let queue = WorkQueue::new();
///     let _ = queue.add("default/web");
///     // A service does this on SIGTERM. Until then `run` waits for keys.
///     queue.shut_down();
///
///     let leftovers = queue.run(4, |key| {
///         println!("making {key} what it should be");
///     })?;
///     assert!(leftovers.is_empty());
///     Ok(())
/// }
/// ```
#[cfg(feature = "std")]
pub mod std {
    pub use requeue_std::*;
}

/// The queue for tasks: the crate `requeue-tokio`.
///
/// ```
/// use requeue::tokio::WorkQueue;
///
/// #[tokio::main(flavor = "current_thread")]
/// async fn main() {
///     let queue = WorkQueue::new();
///     let _ = queue.add("default/web");
///     // A service does this on SIGTERM. Until then `run` waits for keys.
///     queue.shut_down();
///
///     let run = queue.run(4, |key| async move {
///         println!("making {key} what it should be");
///     });
///     let leftovers = run.await;
///     assert!(leftovers.is_empty());
/// }
/// ```
#[cfg(feature = "tokio")]
pub mod tokio {
    pub use requeue_tokio::*;
}

/// The queue for tasks on microcontrollers: the crate `requeue-embassy`.
///
/// ```
/// use requeue::limiter::default_item_based;
/// use requeue::embassy::raw::CriticalSectionRawMutex;
/// use requeue::embassy::WorkQueue;
///
/// static TO_READ: WorkQueue<CriticalSectionRawMutex, u8, 16> =
///     WorkQueue::new(default_item_based());
///
/// /// Called by an interrupt handler.
/// fn on_data_ready(sensor: u8) {
///     let _ = TO_READ.add(sensor);
/// }
///
/// /// The body of a task. It waits for keys until the queue is shut down.
/// async fn worker() {
///     let _ = TO_READ.run(async |_sensor| {}).await;
/// }
///
/// on_data_ready(3);
/// TO_READ.shut_down();
/// embassy_futures::block_on(worker());
/// ```
#[cfg(feature = "embassy")]
pub mod embassy {
    pub use requeue_embassy::*;
}

/// The queue for loops on microcontrollers: the crate `requeue-bare`.
///
/// ```
/// use requeue::bare::{ManualClock, WorkQueue};
/// use requeue::limiter::default_item_based;
///
/// // Your own type that implements `Board` for your hardware.
/// static BOARD: ManualClock = ManualClock::new();
/// static TO_READ: WorkQueue<&ManualClock, u8, 16> = WorkQueue::new(default_item_based(), &BOARD);
///
/// /// Called by an interrupt handler.
/// fn on_data_ready(sensor: u8) {
///     let _ = TO_READ.add(sensor);
/// }
///
/// on_data_ready(3);
/// TO_READ.shut_down();
/// // Sleeps while there is nothing to do.
/// let _ = TO_READ.run(|_sensor| {});
/// ```
#[cfg(feature = "bare")]
pub mod bare {
    pub use requeue_bare::*;
}

/// The programs of the README.
#[cfg(all(
    doctest,
    feature = "std",
    feature = "tokio",
    feature = "embassy",
    feature = "ctrlc"
))]
#[doc = include_str!("../README.md")]
mod readme {}

/// The code of the guide that is not in its programs.
#[cfg(all(doctest, feature = "std", feature = "tokio"))]
#[doc = include_str!("../docs/book/src/choosing.md")]
mod guide {}
