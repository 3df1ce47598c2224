//! How a drain ends.

/// One wait for the queue to drain: see [`Queue::begin_drain`], and [`Drained`] for an
/// example.
///
/// [`Queue::begin_drain`]: crate::Queue::begin_drain
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[must_use = "pass the drain to `drain_status` or `poll_drain`"]
pub struct Drain {
    pub(crate) epoch: u32,
}

/// The status of a drain.
///
/// # Examples
///
/// ```
/// use requeue_core::{Drained, Fixed, Instant, NoLimit, Queue};
///
/// let now = Instant::EPOCH;
/// let mut queue: Queue<&str, Fixed<4>, NoLimit> = Queue::new(NoLimit);
/// let _ = queue.at(now).add("node-7");
/// let drain = queue.at(now).begin_drain();
/// assert_eq!(queue.drain_status(&drain), Drained::Pending);
///
/// // A second signal arrives: the program no longer waits for the drain.
/// queue.at(now).shut_down();
/// assert_eq!(queue.drain_status(&drain), Drained::Interrupted);
///
/// let work = queue.at(now).try_get().unwrap();
/// let _ = queue.at(now).release(work.ticket);
/// assert_eq!(queue.drain_status(&drain), Drained::Complete);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[must_use = "a drain that was interrupted, or ran out of time, has left work"]
pub enum Drained {
    /// A key is still ready or active.
    Pending,
    /// No key is ready or active.
    Complete,
    /// A later `shut_down` has ended the wait.
    Interrupted,
}
