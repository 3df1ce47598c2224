//! What a queue knows of a key, and what is left of it.

use core::time::Duration;

use crate::Instant;

/// A key that was ready or delayed when the queue was shut down, and was then taken out.
/// [`restore`](crate::Queue::restore) adds it to another queue.
///
/// With the feature `serde` it can be saved as it is.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use requeue_core::{Fixed, Instant, NoLimit, Queue};
///
/// let now = Instant::EPOCH;
/// let mut queue: Queue<&str, Fixed<4>, NoLimit> = Queue::new(NoLimit);
/// let _ = queue.at(now).add_after("lease-3", Duration::from_secs(60));
/// queue.at(now).shut_down();
///
/// let later = now + Duration::from_secs(20);
/// let leftover = queue.at(later).take_delayed().unwrap();
/// assert_eq!((leftover.key, leftover.left), ("lease-3", Duration::from_secs(40)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize))]
#[non_exhaustive]
pub struct Leftover<K> {
    /// The key.
    pub key: K,
    /// How much of its delay is left: zero for a key that was ready or due, [`Duration::MAX`] for a
    /// key that was to wait for ever.
    pub left: Duration,
    /// How many failures of the key are on record.
    pub requeues: u32,
    /// Its priority level. 0 in a queue without [`Levels`](crate::Levels).
    pub priority: u8,
}

impl<K> Leftover<K> {
    /// Creates a leftover that is ready, has not failed, and is at the lowest level. The fields can
    /// be set to what was saved.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue_core::{Added, Fixed, Instant, Leftover, NoLimit, Queue};
    ///
    /// let mut saved = Leftover::new("lease-3");
    /// saved.left = Duration::from_secs(40);
    ///
    /// let mut queue: Queue<&str, Fixed<4>, NoLimit> = Queue::new(NoLimit);
    /// assert_eq!(queue.at(Instant::EPOCH).restore(saved), Ok(Added::Delayed));
    /// ```
    pub const fn new(key: K) -> Self {
        Self {
            key,
            left: Duration::ZERO,
            requeues: 0,
            priority: 0,
        }
    }
}

/// What the queue knows about a key.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use requeue_core::{Fixed, Instant, NoLimit, Queue};
///
/// let now = Instant::EPOCH;
/// let due = now + Duration::from_secs(60);
/// let mut queue: Queue<&str, Fixed<4>, NoLimit> = Queue::new(NoLimit);
/// let _ = queue.at(now).add("node-7");
/// let _work = queue.at(now).try_get();
/// let _ = queue.at(now).add("node-7");
/// let _ = queue.at(now).add_at("node-7", due);
///
/// let state = queue.at(now).state(&"node-7").unwrap();
/// assert!(state.active && state.dirty && !state.ready);
/// assert_eq!(state.due, Some(due));
/// assert_eq!(queue.at(now).state(&"node-8"), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct KeyState {
    /// The key waits for a worker.
    pub ready: bool,
    /// The key is active: it was handed out, and its run has not ended.
    pub active: bool,
    /// The key is active, and will run again after its present run.
    pub dirty: bool,
    /// The key is active, and was [cancelled](crate::Queue::cancel) since its present run began.
    pub cancelled: bool,
    /// The deadline for which the key waits, also if it is ready or active. [`Instant::NEVER`] is
    /// a deadline that never comes.
    pub due: Option<Instant>,
    /// How many failures of the key are on record.
    pub requeues: u32,
    /// The priority level at which the key is ready, or will be when its run ends. If it is
    /// neither, the level of its run; else that of its deadline. 0 in a queue without
    /// [`Levels`](crate::Levels).
    pub priority: u8,
}

/// A key that the queue holds, as a [snapshot](crate::Queue::snapshot_some) shows it.
///
/// # Examples
///
/// Saving what a queue has to do, without shutting it down:
///
/// ```
/// use core::time::Duration;
/// use requeue_core::{Fixed, Instant, NoLimit, Queue, Sweep};
///
/// let now = Instant::EPOCH;
/// let mut queue: Queue<&str, Fixed<4>, NoLimit> = Queue::new(NoLimit);
/// let _ = queue.at(now).add_after("lease-3", Duration::from_secs(60));
///
/// let later = now + Duration::from_secs(20);
/// let mut saved = Vec::new();
/// let mut save = |entry: requeue_core::Entry<&_>| saved.extend(entry.cloned().leftover(later));
/// let mut sweep = Sweep::new();
/// while queue.at(later).snapshot_some(&mut sweep, &mut save) {}
/// assert_eq!((saved[0].key, saved[0].left.as_secs()), ("lease-3", 40));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct Entry<K> {
    /// The key.
    pub key: K,
    /// What the queue knows about it.
    pub state: KeyState,
    /// When its present run began. `None` if it is not active, and if the
    /// [metrics](crate::Metrics::Timestamps) keep no times.
    pub active_since: Option<Instant>,
}

impl<K> Entry<K> {
    /// Returns the key as something that another queue can [restore](crate::Queue::restore), `None`
    /// if it is held for its failures alone. O(1).
    ///
    /// A key that is ready or active is ready there, because the end of its run cannot be known; a
    /// delay that it also has is left out.
    pub fn leftover(self, now: Instant) -> Option<Leftover<K>> {
        let left = match self.state {
            KeyState { ready: true, .. } | KeyState { active: true, .. } => Duration::ZERO,
            KeyState { due, .. } if due?.is_never() => Duration::MAX,
            KeyState { due, .. } => due?.saturating_since(now),
        };
        Some(Leftover {
            key: self.key,
            left,
            requeues: self.state.requeues,
            priority: self.state.priority,
        })
    }
}

impl<K: Clone> Entry<&K> {
    /// Returns an entry with a copy of the key. [`Entry`] has an example.
    pub fn cloned(self) -> Entry<K> {
        Entry {
            key: self.key.clone(),
            state: self.state,
            active_since: self.active_since,
        }
    }
}
