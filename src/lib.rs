#![cfg_attr(feature = "std", doc = include_str!("../README.md"))]
#![cfg_attr(
    not(feature = "std"),
    doc = "The keyed work queue that every reconciler needs."
)]
#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub use requeue_core::*;

/// The queue for threads: the crate `requeue-std`.
///
/// ```
/// use requeue::std::{Action, WorkQueue};
///
/// let queue = WorkQueue::new();
/// queue.add("default/web")?;
/// queue.shut_down();
/// queue.run(4, |key| {
///     println!("making {key} what it should be");
///     Ok::<_, String>(Action::Done)
/// })?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
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
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let queue = WorkQueue::new();
/// queue.add("default/web")?;
/// queue.shut_down();
/// let reconcile = |key| async move {
///     println!("making {key} what it should be");
///     Ok::<_, String>(Action::Done)
/// };
/// queue.run(4, reconcile).await;
/// # Ok(())
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
/// let _ = TO_READ.run(async |_sensor| Ok::<_, ()>(Action::Done)).await;
/// # };
/// # embassy_futures::block_on(task);
/// ```
#[cfg(feature = "embassy")]
pub mod embassy {
    pub use requeue_embassy::*;
}
