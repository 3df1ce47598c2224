#![cfg_attr(feature = "std", doc = include_str!("../README.md"))]
#![cfg_attr(
    not(feature = "std"),
    doc = "The keyed work queue that every reconciler needs."
)]
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub use requeue_core::binding;
#[cfg(any(feature = "std", feature = "tokio"))]
pub use requeue_core::{
    Bare, Builder, Concurrency, DeadKeys, Failure, Growable, RandomState, Reporter, RunEvent,
    Workers,
};

// What every runtime shares: how a run ends, what an add returns, limiters, metrics and backoff.
pub use requeue_core::{
    Action, AddOptions, Added, AddedMany, Aging, Attempt, Attempts, Backoff, BackoffManager,
    BackoffUntil, Bucket, Debounces, DefaultController, DefaultItemBased, DelayWithReset, Drained,
    Entry, ExponentialBackoffManager, Finished, Fixed, GetError, GroupLimits, GroupState, Groups,
    Index, Instant, ItemExponentialFailure, ItemFastSlow, KeyState, KeyedLimiter, Leftover, Levels,
    Merge, Metrics, NoJitter, NoLimit, NoMetrics, NoPriorities, NotActive, Priorities, Producer,
    Queue, RateLimiter, Rejected, Retries, RunContext, Scheduled, Storage, Timed, Times,
    Timestamps, TooManyWaiters, WithDebounce, WithHolds, WithJitter, WithMaxWait, WithRunRate,
    default_controller, default_item_based, jitter, rand_core,
};
#[cfg(all(feature = "metrics", any(feature = "std", feature = "tokio")))]
pub use requeue_core::{DURATION_BUCKETS, NamedMetrics};

/// The queue for threads: the crate `requeue-std`.
///
/// ```
/// use std::sync::atomic::{AtomicU32, Ordering};
/// use requeue::std::{Action, WorkQueue};
///
/// let queue = WorkQueue::new();
/// let _ = queue.add("default/web");
/// # queue.shut_down();
///
/// let runs = AtomicU32::new(0);
/// queue.run(4, |key| {
///     println!("making {key} what it should be");
///     runs.fetch_add(1, Ordering::Relaxed);
///     Ok::<_, String>(Action::Success)
/// })?;
/// # Ok::<_, std::io::Error>(())
/// ```
#[cfg(feature = "std")]
pub mod std {
    pub use requeue_std::*;
}

/// The queue for tasks: the crate `requeue-tokio`.
///
/// ```
/// use requeue::tokio::{Action, WorkQueue};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let queue = WorkQueue::new();
/// let _ = queue.add("default/web");
/// # queue.shut_down();
///
/// let run = queue.run(4, |key| async move {
///     println!("making {key} what it should be");
///     Ok::<_, String>(Action::Success)
/// });
/// run.await;
/// # }
/// ```
#[cfg(feature = "tokio")]
pub mod tokio {
    pub use requeue_tokio::*;
}

/// The queue for tasks on microcontrollers: the crate `requeue-embassy`.
///
/// ```
/// use requeue::default_item_based;
/// use requeue::embassy::raw::CriticalSectionRawMutex;
/// use requeue::embassy::{Action, WorkQueue};
///
/// static TO_READ: WorkQueue<CriticalSectionRawMutex, u8, 16> =
///     WorkQueue::new(default_item_based());
///
/// // From an interrupt:
/// let _ = TO_READ.add(3);
///
/// // In a task:
/// # TO_READ.shut_down();
/// # let task = async {
/// let _ = TO_READ.run(async |_sensor| Ok::<_, ()>(Action::Success)).await;
/// # };
/// # embassy_futures::block_on(task);
/// ```
#[cfg(feature = "embassy")]
pub mod embassy {
    pub use requeue_embassy::*;
}

/// The code of the guide that is not in its programs.
#[cfg(all(doctest, feature = "std", feature = "tokio"))]
#[doc = include_str!("../docs/book/src/choosing.md")]
mod guide {}
