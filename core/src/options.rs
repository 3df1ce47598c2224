//! The options of an add. Owns their defaults; never decides what an add does.

use core::time::Duration;

/// How a key is added: the options of [`add_with`](crate::Session::add_with).
///
/// Set the fields that matter, and take the rest from [`new`](Self::new). Later versions may add
/// fields.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use requeue::limiter::NoLimit;
/// use requeue::priority::Levels;
/// use requeue::storage::Fixed;
/// use requeue::{AddOptions, Added, Instant, Merge, Queue};
///
/// let now = Instant::EPOCH;
/// let mut queue: Queue<&str, Levels<2>, NoLimit, Fixed<8>> = Queue::new(NoLimit);
///
/// // A resync in ten minutes, at the lowest level.
/// let resync = AddOptions {
///     after: Some(Duration::from_secs(600)),
///     ..AddOptions::new()
/// };
/// let scheduled = queue.at(now).add_with("node-7", resync).unwrap();
/// assert_eq!(scheduled.added, Added::Delayed);
///
/// // The node changes: it runs now, before all others, and the resync is no longer needed.
/// let changed = AddOptions {
///     priority: Some(1),
///     merge: Merge::Once,
///     ..AddOptions::new()
/// };
/// let scheduled = queue.at(now).add_with("node-7", changed).unwrap();
/// assert_eq!(scheduled.added, Added::Ready);
/// assert_eq!(queue.stats().delayed, 0);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct AddOptions {
    /// How long the key waits. `None` and zero mean no delay, and `Duration::MAX` means never, as with
    /// [`add_after`](crate::Session::add_after).
    pub after: Option<Duration>,

    /// Counts a failure, and asks the limiter how long the key waits, as
    /// [`add_rate_limited`](crate::Session::add_rate_limited) does. If `after` is set too, the
    /// shorter of the two delays counts.
    pub rate_limited: bool,

    /// The priority level, from 0 to one less than the queue's [`Levels`](crate::priority::Levels).
    /// `None` means 0, or the level of the present run if the add is rate-limited and the key is
    /// active.
    ///
    /// An add can raise the level of a key, but never lowers it.
    pub priority: Option<u8>,

    /// What happens to a deadline that the key already has.
    pub merge: Merge,

    /// By how many percent the delay may become longer, so that one wake serves several keys:
    /// [`Action::with_slack`](crate::Action::with_slack) says which queues use it. If the limiter
    /// sets the delay, the percentage is of that. [`Scheduled::delay`](crate::Scheduled::delay) does
    /// not include it. Zero by default.
    pub slack: u8,
}

/// What an add does to a deadline that the key already has: a field of [`AddOptions`].
///
/// A key has one deadline at most. If it has none, every rule does the same, except that
/// [`Once`](Self::Once) also looks at whether the key is ready.
///
/// | rule | the delay of the add counts | an add without a delay |
/// |---|---|---|
/// | `Earliest` | if its deadline is earlier | the key is ready now, and again at its deadline |
/// | `Once` | if its deadline is earlier and the key is not ready | the key is ready now instead |
/// | `Latest` | if its deadline is later | changes nothing |
/// | `Replace` | in any case | the key is ready now instead |
/// | `Keep` | not at all | changes nothing |
///
/// A deadline with [slack](AddOptions::slack) is a window with a beginning and an end. The rule
/// applies to each by itself. Under `Earliest` and `Once` the earlier beginning and the earlier end
/// count, under `Latest` the later ones. The result of the add compares the ends.
///
/// With each rule, an add can raise the priority level of a pending deadline, and an add that
/// removes the deadline leaves its level to the key. The exception is an add without a delay under
/// `Earliest`, which is separate from the deadline. A key that is ready, active or dirty stays so:
/// no rule undoes an earlier add.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use requeue::limiter::NoLimit;
/// use requeue::priority::Plain;
/// use requeue::storage::Fixed;
/// use requeue::{AddOptions, Added, Instant, Merge, Queue};
///
/// let now = Instant::EPOCH;
/// let mut queue: Queue<&str, Plain, NoLimit, Fixed<4>> = Queue::new(NoLimit);
/// let mut add = |merge, seconds| {
///     let after = Some(Duration::from_secs(seconds));
///     let options = AddOptions { after, merge, ..AddOptions::new() };
///     queue.at(now).add_with("lease-3", options).unwrap().added
/// };
/// assert_eq!(add(Merge::Earliest, 60), Added::Delayed);
/// // The lease was renewed, so that it is due later than was known.
/// assert_eq!(add(Merge::Latest, 90), Added::Later);
/// assert_eq!(add(Merge::Latest, 30), Added::Coalesced);
/// // Its owner has set another time.
/// assert_eq!(add(Merge::Replace, 45), Added::Sooner);
/// // A check in ten minutes, unless one is planned.
/// assert_eq!(add(Merge::Keep, 600), Added::Coalesced);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Merge {
    /// The earlier deadline wins. A delay is an add that happens later, so a delayed key that is added
    /// without a delay runs twice: now, and at its deadline. client-go's rule.
    #[default]
    Earliest,
    /// The key runs once, at the earliest time for which it was added. An add without a delay removes
    /// the deadline. A delayed add of a key that is ready or dirty sets no deadline, and removes a
    /// pending one, even an earlier one. It returns [`Coalesced`](crate::Added::Coalesced), or
    /// `Raised` if the level rises, because the key runs anyway. controller-runtime's rule.
    Once,
    /// The later deadline wins. An add without a delay changes nothing. A key that is added again and
    /// again may never run.
    Latest,
    /// The deadline of this add wins, earlier or later, as with `mod_delayed_work` of
    /// Linux and `k_work_reschedule` of Zephyr.
    #[doc(alias("mod_delayed_work", "k_work_reschedule"))]
    Replace,
    /// The pending deadline wins, with any delay of this add, as with
    /// `queue_delayed_work` of Linux and `k_work_schedule` of Zephyr. If that deadline is
    /// [`Instant::NEVER`](crate::Instant::NEVER), the key never runs because of it.
    #[doc(alias("queue_delayed_work", "k_work_schedule"))]
    Keep,
}

impl AddOptions {
    /// Creates options that have the same effect as [`add`](crate::Session::add).
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::AddOptions;
    ///
    /// const URGENT: AddOptions = AddOptions { priority: Some(3), ..AddOptions::new() };
    /// assert_eq!(AddOptions::new(), AddOptions::default());
    /// ```
    pub const fn new() -> Self {
        Self {
            after: None,
            rate_limited: false,
            priority: None,
            merge: Merge::Earliest,
            slack: 0,
        }
    }

    /// Returns whether an add with these options reads the time even if
    /// [`Queue::needs_time`](crate::Queue::needs_time) is false.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::AddOptions;
    ///
    /// assert!(!AddOptions::new().needs_time());
    /// assert!(AddOptions { rate_limited: true, ..AddOptions::new() }.needs_time());
    /// ```
    pub const fn needs_time(&self) -> bool {
        self.rate_limited || self.after.is_some()
    }
}
