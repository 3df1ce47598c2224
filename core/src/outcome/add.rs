//! What adds return.

use core::fmt;
use core::time::Duration;

/// What became of a key that was added.
///
/// # Examples
///
/// A watcher counts the events that cause no run of their own:
///
/// ```
/// use requeue_core::{Added, Fixed, Instant, NoLimit, Queue};
///
/// let mut queue: Queue<&str, Fixed<4>, NoLimit> = Queue::new(NoLimit);
/// let mut saved = 0;
/// for event in ["etc/hosts", "etc/fstab", "etc/hosts", "etc/hosts"] {
///     if queue.at(Instant::EPOCH).add(event) == Ok(Added::Coalesced) {
///         saved += 1;
///     }
/// }
/// assert_eq!(saved, 2);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Added {
    /// The key is ready; it was not before.
    Ready,
    /// The key is active, and will run again after its present run.
    Dirty,
    /// The key will be ready at its deadline, or when it is no longer [held](crate::WithHolds); it
    /// had no deadline before.
    Delayed,
    /// The key was waiting for a later deadline, which is earlier now.
    Sooner,
    /// The key was waiting for an earlier deadline, which is later now, as
    /// [`Merge`](crate::Merge) asks for.
    Later,
    /// The key was already ready, dirty, or waiting for this deadline or for one that
    /// [counts](crate::Merge) instead: nothing changed.
    Coalesced,
    /// As [`Coalesced`](Self::Coalesced), but the key had a lower priority: it moves to the end of
    /// the higher level, now or once it is ready.
    Raised,
}

/// Why a key was not taken. Contains the key. Nothing has changed.
///
/// # Examples
///
/// ```
/// use requeue_core::{Fixed, Instant, NoLimit, Queue, Rejected};
///
/// let now = Instant::EPOCH;
/// let mut queue: Queue<&str, Fixed<1>, NoLimit> = Queue::new(NoLimit);
/// queue.at(now).add("sensor-1").unwrap();
/// assert_eq!(queue.at(now).add("sensor-2"), Err(Rejected::Full("sensor-2")));
/// // A key that the queue already holds needs no room.
/// assert!(queue.at(now).add("sensor-1").is_ok());
///
/// queue.at(now).shut_down();
/// let rejected = queue.at(now).add("sensor-1").unwrap_err();
/// assert_eq!(rejected.to_string(), "the queue is shutting down");
/// assert_eq!(rejected.into_key(), "sensor-1");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Rejected<K> {
    /// The queue holds as many keys as it has room for, and this key is new.
    Full(K),
    /// The queue is shutting down.
    Closed(K),
    /// The queue has no such priority level.
    UnknownPriority(K),
}

impl<K> Rejected<K> {
    /// Returns the key that was not taken.
    pub fn into_key(self) -> K {
        match self {
            Self::Full(key) | Self::Closed(key) | Self::UnknownPriority(key) => key,
        }
    }
}

impl<K> fmt::Display for Rejected<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full(_) => "the queue has no room for a new key",
            Self::Closed(_) => "the queue is shutting down",
            Self::UnknownPriority(_) => "the queue has no such priority level",
        })
    }
}

impl<K: fmt::Debug> core::error::Error for Rejected<K> {}

/// What became of a key that was added with a delay, and the delay.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use requeue_core::{Added, Fixed, Instant, Queue, default_item_based};
///
/// let mut queue: Queue<&str, Fixed<4>, _> = Queue::new(default_item_based());
/// let scheduled = queue.at(Instant::EPOCH).add_rate_limited("node-7").unwrap();
/// assert_eq!(scheduled.delay, Duration::from_millis(1));
/// assert_eq!(scheduled.added, Added::Delayed);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct Scheduled {
    /// The delay that the limiter or the caller has set. If the key had a deadline before,
    /// [`AddOptions::merge`](crate::AddOptions::merge) says which of the two counts: the earlier,
    /// by default.
    pub delay: Duration,
    /// What became of the key.
    pub added: Added,
}

/// How many of the keys of an [`add_many`](crate::Queue::add_many) were taken, and how.
///
/// # Examples
///
/// ```
/// use requeue_core::{Fixed, Instant, NoLimit, Queue};
///
/// let mut queue: Queue<u16, Fixed<3>, NoLimit> = Queue::new(NoLimit);
/// let many = queue.at(Instant::EPOCH).add_many([17, 18, 17, 19, 20], |_| {});
/// assert_eq!((many.ready, many.coalesced, many.rejected), (3, 1, 1));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct AddedMany {
    /// Keys that became ready.
    pub ready: usize,
    /// Active keys that will run again after their present run.
    pub dirty: usize,
    /// Keys that are [held](crate::WithHolds), and will be ready when their holds are over.
    pub delayed: usize,
    /// Keys that were ready, dirty or, if they are held, delayed already.
    pub coalesced: usize,
    /// Keys that were not taken.
    pub rejected: usize,
}

impl AddedMany {
    /// Counts one key more, which was rejected if it has no outcome.
    pub(crate) fn count(&mut self, added: Option<Added>) {
        let count = match added {
            Some(Added::Ready) => &mut self.ready,
            Some(Added::Dirty) => &mut self.dirty,
            Some(Added::Delayed | Added::Sooner) => &mut self.delayed,
            Some(_) => &mut self.coalesced,
            None => &mut self.rejected,
        };
        *count += 1;
    }
}
