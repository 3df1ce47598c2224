#![cfg_attr(feature = "std", doc = include_str!("../README.md"))]
#![cfg_attr(
    not(feature = "std"),
    doc = "The keyed work queue that every reconciler needs."
)]
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

/// The code of the guide that is not in its programs.
#[cfg(all(doctest, feature = "std", feature = "tokio"))]
#[doc = include_str!("../docs/book/src/choosing.md")]
mod guide {}
