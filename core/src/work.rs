//! A key that was handed out, and the right to end its run. Owns nothing of the queue.

use core::time::Duration;

use crate::id::SlotId;

/// A key that was handed out to be worked on.
///
/// # Examples
///
/// ```
/// use requeue::limiter::default_item_based;
/// use requeue::priority::Plain;
/// use requeue::storage::Fixed;
/// use requeue::{Action, Instant, Queue};
///
/// let now = Instant::EPOCH;
/// let mut queue: Queue<&str, Plain, _, Fixed<4>> = Queue::new(default_item_based());
/// let _ = queue.at(now).add("node-7");
///
/// let work = queue.at(now).try_get().unwrap();
/// let action = match work.key {
///     "node-7" if work.failures < 5 => Action::Retry,
///     _ => Action::Success,
/// };
/// queue.at(now).finish(work.ticket, action);
/// assert_eq!(queue.failures(&"node-7"), 1);
/// ```
#[derive(Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[must_use = "a key stays active until its run is ended"]
#[non_exhaustive]
pub struct Work<K> {
    /// The key: a clone of the one the queue keeps.
    pub key: K,
    /// Ends the run without another lookup of the key.
    pub ticket: Ticket,
    /// How many failures of the key are on record.
    pub failures: u32,
    /// How long the key was ready, or dirty, before it was handed out. Zero if the queue's metrics
    /// keep no [`Times`](crate::metrics::Times).
    pub waited: Duration,
    /// The priority level of the key, at which it also runs again if it is retried. 0 in a queue
    /// without [`Levels`](crate::priority::Levels), which has an example.
    pub priority: u8,
    /// The key was [suspended](crate::Session::suspend), and nobody resumed it in time.
    pub timed_out: bool,
}

/// The right to end one run of one key.
///
/// It cannot be cloned, because a run ends once. A ticket whose run was ended otherwise (by
/// [`release_key`](crate::Session::release_key)) is stale and changes nothing. A ticket means
/// nothing to any other queue.
///
/// # Examples
///
/// ```
/// use requeue::limiter::NoLimit;
/// use requeue::priority::Plain;
/// use requeue::storage::Fixed;
/// use requeue::{Finished, Instant, Queue};
///
/// let now = Instant::EPOCH;
/// let mut queue: Queue<&str, Plain, NoLimit, Fixed<4>> = Queue::new(NoLimit);
/// let _ = queue.at(now).add("node-7");
/// let first = queue.at(now).try_get().unwrap();
/// queue.at(now).release_key(&"node-7");
///
/// // The key is active again, but in another run: the old ticket cannot end that.
/// let _ = queue.at(now).add("node-7");
/// let second = queue.at(now).try_get().unwrap();
/// assert_eq!(queue.at(now).release(first.ticket), Finished::Stale);
/// assert_eq!(queue.at(now).release(second.ticket), Finished::Idle);
/// ```
#[derive(Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[must_use = "a key whose ticket is dropped stays active for ever"]
pub struct Ticket {
    pub(crate) id: SlotId,
    pub(crate) run: u32,
}
