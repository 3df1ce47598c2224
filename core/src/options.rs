//! What an add can ask for.

use core::time::Duration;

/// How a key is added: what [`add_with`](crate::Queue::add_with) takes.
///
/// Fields may be added: name the ones you mean and take the rest from [`new`](Self::new).
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
/// // Look at everything again in ten minutes, when there is nothing better to do.
/// let resync = AddOptions {
///     after: Some(Duration::from_secs(600)),
///     ..AddOptions::new()
/// };
/// let limited = queue.add_with("node-7", resync, now).value.unwrap();
/// assert_eq!(limited.added, Added::Delayed);
///
/// // Somebody changes it: now, before all others, and then there is nothing left to resync.
/// let changed = AddOptions {
///     priority: Some(1),
///     expedite: true,
///     ..AddOptions::new()
/// };
/// let limited = queue.add_with("node-7", changed, now).value.unwrap();
/// assert_eq!(limited.added, Added::Ready);
/// assert_eq!(queue.delayed_len(), 0);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct AddOptions {
    /// How long the key has to wait; nothing for at once. As with
    /// [`add_after`](crate::Queue::add_after), zero is at once too, and `Duration::MAX` is never.
    pub after: Option<Duration>,

    /// Counts a failure, and asks the limiter how long the key has to wait, as
    /// [`add_rate_limited`](crate::Queue::add_rate_limited) does. Where `after` is given too the
    /// shorter of the two counts.
    pub rate_limited: bool,

    /// At which level, from 0 to one less than the storage's [`Levels`](crate::Levels). Nothing
    /// asks for 0; or, of a rate-limited add of a key that is in work, for the level of its run.
    ///
    /// An add raises the level of a key and never lowers it.
    pub priority: Option<u8>,

    /// The key is worked on once, at the sooner of the times it was asked for.
    ///
    /// Without this a delay is an add that happens later, as in client-go: a key that is added at
    /// once and also waits for a deadline is worked on twice. With it an add at once ends the
    /// delay that is pending, and a delay of a key that is ready or dirty is none. This is what
    /// controller-runtime's priority queue always does.
    pub expedite: bool,
}

impl AddOptions {
    /// At once, and nothing else: what [`add`](crate::Queue::add) does.
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

    /// Whether an add with these options reads the time whatever
    /// [`Queue::needs_time`](crate::Queue::needs_time) says.
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
