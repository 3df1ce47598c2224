//! The options of an add.

use core::time::Duration;

/// How a key is added: the options of [`add_with`](crate::Queue::add_with).
///
/// Fields may be added in later versions: set those that matter, and take the rest from
/// [`new`](Self::new).
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use requeue_core::{AddOptions, Added, Fixed, Instant, Levels, NoLimit, Queue};
///
/// let now = Instant::EPOCH;
/// let mut queue: Queue<&str, Fixed<8, u8, Levels<2>>, NoLimit> = Queue::new(NoLimit);
///
/// // A resync in ten minutes, at the lowest level.
/// let resync = AddOptions {
///     after: Some(Duration::from_secs(600)),
///     ..AddOptions::new()
/// };
/// let scheduled = queue.add_with("node-7", resync, now).value.unwrap();
/// assert_eq!(scheduled.added, Added::Delayed);
///
/// // The node changes: it runs now, before all others, and the resync is no longer needed.
/// let changed = AddOptions {
///     priority: Some(1),
///     expedite: true,
///     ..AddOptions::new()
/// };
/// let scheduled = queue.add_with("node-7", changed, now).value.unwrap();
/// assert_eq!(scheduled.added, Added::Ready);
/// assert_eq!(queue.delayed_len(), 0);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct AddOptions {
    /// How long the key has to wait, `None` for not at all. As with
    /// [`add_after`](crate::Queue::add_after), zero means not at all too, and `Duration::MAX` means
    /// never.
    pub after: Option<Duration>,

    /// Counts a failure, and asks the limiter how long the key has to wait, as
    /// [`add_rate_limited`](crate::Queue::add_rate_limited) does. If `after` is set too, the
    /// shorter of the two delays counts.
    pub rate_limited: bool,

    /// The priority level, from 0 to one less than the storage's [`Levels`](crate::Levels). `None`
    /// means 0, or the level of the present run if the add is rate-limited and the key is active.
    ///
    /// An add can raise the level of a key, but never lowers it.
    pub priority: Option<u8>,

    /// The key runs once, at the earlier of the times for which it was added.
    ///
    /// Without this a delay is an add that happens later, as in client-go: a key that is added
    /// without a delay while it waits for a deadline runs twice. With it an add without a delay
    /// removes the pending one, and a delayed add of a key that is ready or dirty sets no deadline.
    /// This is what controller-runtime's priority queue always does.
    pub expedite: bool,
}

impl AddOptions {
    /// Creates options that have the same effect as [`add`](crate::Queue::add).
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_core::AddOptions;
    ///
    /// const URGENT: AddOptions = AddOptions { priority: Some(3), ..AddOptions::new() };
    /// assert_eq!(AddOptions::new(), AddOptions::default());
    /// ```
    pub const fn new() -> Self {
        Self {
            after: None,
            rate_limited: false,
            priority: None,
            expedite: false,
        }
    }

    /// Returns whether an add with these options reads the time even if
    /// [`Queue::needs_time`](crate::Queue::needs_time) is false.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_core::AddOptions;
    ///
    /// assert!(!AddOptions::new().needs_time());
    /// assert!(AddOptions { rate_limited: true, ..AddOptions::new() }.needs_time());
    /// ```
    pub const fn needs_time(&self) -> bool {
        self.rate_limited || self.after.is_some()
    }
}
