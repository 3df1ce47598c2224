//! What operations return: plain values. Owns their words and how they print; nothing here borrows
//! from a queue.

use core::fmt;
use core::ops::BitOr;
use core::time::Duration;

use crate::Instant;

/// What an add did to a key.
///
/// # Examples
///
/// A watcher counts the events that cause no run of their own:
///
/// ```
/// use requeue::limiter::NoLimit;
/// use requeue::priority::Plain;
/// use requeue::storage::Fixed;
/// use requeue::{Added, Instant, Queue};
///
/// let mut queue: Queue<&str, Plain, NoLimit, Fixed<4>> = Queue::new(NoLimit);
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
    /// The key became ready.
    Ready,
    /// The key is active, and will run again after its present run.
    Dirty,
    /// The key will be ready at its deadline, or when it is no longer [held](crate::Policy). It had
    /// no deadline before, or was ready, and its failure holds it.
    Delayed,
    /// The key was waiting for a later deadline, which is earlier now.
    Sooner,
    /// The key was waiting for an earlier deadline, which is later now: by
    /// [`Merge`](crate::Merge), by [`add_debounced`](crate::Session::add_debounced), or because its
    /// failure holds it.
    Later,
    /// The key was already ready, dirty, or waiting for this deadline or for one that
    /// [counts](crate::Merge) instead. Nothing changed, except that its
    /// [slack](crate::Session::add_within) may begin at another time.
    Coalesced,
    /// As [`Coalesced`](Self::Coalesced), but the key had a lower priority: it moves to the end of
    /// the higher level, now or once it is ready.
    Raised,
}

/// Why an add was refused. Contains the key. Nothing has changed.
///
/// # Examples
///
/// ```
/// use requeue::limiter::NoLimit;
/// use requeue::priority::Plain;
/// use requeue::storage::Fixed;
/// use requeue::{Instant, Queue, Rejected};
///
/// let now = Instant::EPOCH;
/// let mut queue: Queue<&str, Plain, NoLimit, Fixed<1>> = Queue::new(NoLimit);
/// queue.at(now).add("sensor-1").unwrap();
/// assert_eq!(queue.at(now).add("sensor-2"), Err(Rejected::Full("sensor-2")));
/// // A key that the queue already has needs no room.
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
    /// The queue has as many keys as it has room for, and this key is new. Raise `max_keys`, or the
    /// `N` of a queue of a fixed size.
    Full(K),
    /// The queue is shutting down.
    Closed(K),
    /// The queue has no such priority level.
    UnknownPriority(K),
    /// There was no room in time.
    TimedOut(K),
    /// There is no room, and all places for waiting calls are taken: raise `WAITERS` in the queue's
    /// type. Only on boards.
    TooManyWaiters(K),
}

impl<K> Rejected<K> {
    /// Returns the key that was refused.
    pub fn into_key(self) -> K {
        match self {
            Self::Full(key)
            | Self::Closed(key)
            | Self::UnknownPriority(key)
            | Self::TimedOut(key)
            | Self::TooManyWaiters(key) => key,
        }
    }
}

impl<K> fmt::Display for Rejected<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full(_) => "the queue has no room for a new key: raise `max_keys`, or its size",
            Self::Closed(_) => "the queue is shutting down",
            Self::UnknownPriority(_) => "the queue has no such priority level",
            Self::TimedOut(_) => "the queue had no room for a new key in time",
            Self::TooManyWaiters(_) => NO_PLACE,
        })
    }
}

impl<K: fmt::Debug> core::error::Error for Rejected<K> {}

/// What an add did to a key, and its delay.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use requeue::limiter::default_item_based;
/// use requeue::priority::Plain;
/// use requeue::storage::Fixed;
/// use requeue::{Added, Instant, Queue};
///
/// let mut queue: Queue<&str, Plain, _, Fixed<4>> = Queue::new(default_item_based());
/// let scheduled = queue.at(Instant::EPOCH).add_rate_limited("node-7").unwrap();
/// assert_eq!(scheduled.delay, Duration::from_millis(1));
/// assert_eq!(scheduled.added, Added::Delayed);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct Scheduled {
    /// The delay that the limiter or the caller has set, without its slack. If the key had a
    /// deadline before,
    /// [`AddOptions::merge`](crate::AddOptions::merge) says which one counts. By default it is the
    /// earlier one.
    pub delay: Duration,
    /// What the add did to the key.
    pub added: Added,
}

/// What an [`add_many`](crate::Session::add_many) did to its keys.
///
/// `R` is the type of [`rejected`](Self::rejected): on threads and on Tokio the refused keys, on
/// boards their number.
///
/// # Examples
///
/// ```
/// use requeue::limiter::NoLimit;
/// use requeue::priority::Plain;
/// use requeue::storage::Fixed;
/// use requeue::{Instant, Queue};
///
/// let mut queue: Queue<u16, Plain, NoLimit, Fixed<3>> = Queue::new(NoLimit);
/// let many = queue.at(Instant::EPOCH).add_many([17, 18, 17, 19, 20], |_| {});
/// assert_eq!((many.ready, many.coalesced, many.rejected), (3, 1, 1));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct AddedMany<R = usize> {
    /// Keys that became ready.
    pub ready: usize,
    /// Active keys that will run again after their present run.
    pub dirty: usize,
    /// Keys that are [held](crate::Policy), and will be ready when their holds are over.
    pub delayed: usize,
    /// Keys that were ready, dirty or, if they are held, delayed until then already.
    pub coalesced: usize,
    /// Keys that were refused.
    pub rejected: R,
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

/// What a caller that looks at the queue has to do next.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use requeue::limiter::NoLimit;
/// use requeue::priority::Plain;
/// use requeue::storage::Fixed;
/// use requeue::{Instant, Queue};
/// use requeue::binding::{Getter, Next};
///
/// let now = Instant::EPOCH;
/// let due = now + Duration::from_secs(60);
/// let mut queue: Queue<&str, Plain, NoLimit, Fixed<4>> = Queue::new(NoLimit);
/// let _ = queue.at(now).add_at("lease-3", due);
///
/// let mut getter = Getter::new();
/// assert_eq!(queue.at(now).poll_get(&mut getter), Next::Wait { until: Some(due) });
/// let next = queue.at(due).poll_get(&mut getter);
/// assert!(matches!(next, Next::Work(work) if work.key == "lease-3"));
/// queue.at(due).shut_down();
/// assert_eq!(queue.at(due).poll_get(&mut getter), Next::Closed);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[must_use]
pub enum Next<T> {
    /// This is what there is to do.
    Work(T),
    /// Nothing is ready. Sleep until woken, and no longer than `until`, then look again.
    Wait {
        /// The deadline to watch. `None` if there is no deadline, or if another sleeping getter
        /// watches it. If it has passed, look again at once.
        until: Option<Instant>,
    },
    /// The queue is shutting down and nothing is ready.
    Closed,
}

/// What happens to a key after its run.
///
/// This does not show an earlier deadline of the key, which still counts in each case:
/// [`Queue::state`](crate::Session::state) does. Its times do not include
/// [slack](crate::Action::with_slack).
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use requeue::limiter::default_item_based;
/// use requeue::priority::Plain;
/// use requeue::storage::Fixed;
/// use requeue::{Action, Finished, Instant, Queue};
///
/// let now = Instant::EPOCH;
/// let mut queue: Queue<&str, Plain, _, Fixed<4>> = Queue::new(default_item_based());
/// let mut run = |action| {
///     let _ = queue.at(now).add("node-7");
///     let work = queue.at(now).try_get().unwrap();
///     queue.at(now).finish(work.ticket, action)
/// };
/// assert_eq!(run(Action::Retry), Finished::Delayed(Duration::from_millis(1)));
/// assert_eq!(run(Action::Retry), Finished::Delayed(Duration::from_millis(2)));
/// assert_eq!(run(Action::Success), Finished::Idle);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Finished {
    /// The key does not run again because of this run: its action asks for no other run, and nothing
    /// added the key meanwhile. An earlier deadline of the key still counts.
    Idle,
    /// The key is ready again, at the end of the queue. It was added during its run, or its action
    /// had a delay of zero.
    Ready,
    /// The key runs again after this long: earlier if it already had an earlier deadline, and never
    /// after [`Duration::MAX`]. It is at least as long as the key is [held](crate::Policy), also
    /// if the key was added during its run.
    Delayed(Duration),
    /// The key is [suspended](crate::Action::Suspend): it runs when it is resumed, and at the
    /// latest after this long. Zero if the timeout is over: the next operation makes it ready.
    Suspended(Duration),
    /// The key would run again after this long, but the queue is shutting down: it is kept for
    /// [`take_delayed`](crate::Session::take_delayed).
    Leftover(Duration),
    /// Nothing has changed. The run had ended before, or the key of a
    /// [`release_key`](crate::Session::release_key) is not active.
    Stale,
}

impl Finished {
    /// What becomes of a key whose action asks for no other run.
    #[inline]
    pub(crate) const fn at_once(again: bool) -> Self {
        if again { Self::Ready } else { Self::Idle }
    }
}

/// Why a call that waits has no result.
///
/// # Examples
///
/// ```
/// use requeue::WaitError;
///
/// assert_eq!(WaitError::TimedOut.to_string(), "it did not happen in time");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum WaitError {
    /// It did not happen in time. Only calls with a timeout or a deadline return this.
    TimedOut,
    /// The queue is shutting down and no key is ready.
    Closed,
    /// The call has to wait, and all places for waiting calls are taken. A call takes a place once
    /// it has to wait, for a key or for anything else, and keeps it until it ends. Threads and
    /// Tokio always have a place. On boards, raise `WAITERS` in the queue's type.
    TooManyWaiters,
    /// Another call has shut the queue down while this one waited for the drain. Keys may still be
    /// ready or active. Only a drain returns this.
    Interrupted,
}

impl fmt::Display for WaitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimedOut => f.write_str("it did not happen in time"),
            Self::Closed => f.write_str("the queue is shutting down and no key is ready"),
            Self::TooManyWaiters => f.write_str(NO_PLACE),
            Self::Interrupted => f.write_str("another shutdown has interrupted the drain"),
        }
    }
}

impl core::error::Error for WaitError {}

const NO_PLACE: &str = "more calls wait for the queue than it has places for: raise `WAITERS`";

/// A key that a shutdown returned: it was ready, delayed or suspended, or its last run failed or
/// asked for another run.
///
/// [`restore`](crate::Session::restore) adds it to another queue. With the feature `serde` you can
/// save it.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use requeue::limiter::NoLimit;
/// use requeue::priority::Plain;
/// use requeue::storage::Fixed;
/// use requeue::{Instant, Queue};
///
/// let now = Instant::EPOCH;
/// let mut queue: Queue<&str, Plain, NoLimit, Fixed<4>> = Queue::new(NoLimit);
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
    /// How much of its delay is left, or of the timeout of its suspension: zero for a key that was
    /// ready or due, [`Duration::MAX`] for a key that was to wait for ever.
    pub left: Duration,
    /// How many failures of the key are on record.
    pub failures: u32,
    /// Its priority level. 0 in a queue without [`Levels`](crate::priority::Levels).
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
    /// use requeue::limiter::NoLimit;
    /// use requeue::priority::Plain;
    /// use requeue::storage::Fixed;
    /// use requeue::{Added, Instant, Leftover, Queue};
    ///
    /// let mut saved = Leftover::new("lease-3");
    /// saved.left = Duration::from_secs(40);
    ///
    /// let mut queue: Queue<&str, Plain, NoLimit, Fixed<4>> = Queue::new(NoLimit);
    /// assert_eq!(queue.at(Instant::EPOCH).restore(saved), Ok(Added::Delayed));
    /// ```
    pub const fn new(key: K) -> Self {
        Self {
            key,
            left: Duration::ZERO,
            failures: 0,
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
/// use requeue::limiter::NoLimit;
/// use requeue::priority::Plain;
/// use requeue::storage::Fixed;
/// use requeue::{Instant, Queue};
///
/// let now = Instant::EPOCH;
/// let due = now + Duration::from_secs(60);
/// let mut queue: Queue<&str, Plain, NoLimit, Fixed<4>> = Queue::new(NoLimit);
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct KeyState {
    /// The key waits for a worker.
    pub ready: bool,
    /// The key is active: it was handed out, and its run has not ended.
    pub active: bool,
    /// The key is active, and will run again after its present run.
    pub dirty: bool,
    /// The key is active, and was [cancelled](crate::Session::cancel) since its present run began.
    pub cancelled: bool,
    /// The key's deadline, also if it is ready, active or suspended. [`Instant::NEVER`] is a
    /// deadline that never comes. With [slack](crate::Session::add_within) it is the latest time.
    pub due: Option<Instant>,
    /// When the timeout of the key's [suspension](crate::Session::suspend) ends. `None` if the key
    /// is not suspended.
    pub suspended: Option<Instant>,
    /// How many failures of the key are on record.
    pub failures: u32,
    /// The priority level at which the key is ready, or will be when its run ends. If it is
    /// neither, the level of its run; else that of its deadline. 0 in a queue without
    /// [`Levels`](crate::priority::Levels).
    pub priority: u8,
    /// When the present run of the key began. `None` if the key is not active, and if the
    /// [metrics](crate::metrics::Metrics::Timestamps) keep no times.
    pub active_since: Option<Instant>,
}

impl KeyState {
    /// Returns the key as something that another queue can [restore](crate::Session::restore),
    /// `None` if the queue keeps it only for its failures. O(1).
    ///
    /// A key that is ready or active is ready there, because the end of its run cannot be known. A
    /// delay that it also has is left out. A suspended key is delayed there until its timeout.
    ///
    /// # Examples
    ///
    /// Saving what a queue has to do, without shutting it down:
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue::limiter::NoLimit;
    /// use requeue::priority::Plain;
    /// use requeue::storage::Fixed;
    /// use requeue::binding::Sweep;
    /// use requeue::{Instant, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<&str, Plain, NoLimit, Fixed<4>> = Queue::new(NoLimit);
    /// let _ = queue.at(now).add_after("lease-3", Duration::from_secs(60));
    ///
    /// let later = now + Duration::from_secs(20);
    /// let mut saved = Vec::new();
    /// let mut sweep = Sweep::new();
    /// while queue.at(later).snapshot_some(&mut sweep, |key, state| {
    ///     saved.extend(state.leftover(*key, later));
    /// }) {}
    /// assert_eq!((saved[0].key, saved[0].left.as_secs()), ("lease-3", 40));
    /// ```
    pub fn leftover<K>(self, key: K, now: Instant) -> Option<Leftover<K>> {
        let left = match self.suspended.or(self.due) {
            _ if self.ready || self.active => Duration::ZERO,
            due if due?.is_never() => Duration::MAX,
            due => due?.saturating_since(now),
        };
        Some(Leftover {
            key,
            left,
            failures: self.failures,
            priority: self.priority,
        })
    }
}

/// Why a key does not run now: [`why`](crate::Session::why) says which answer is given when several
/// are true.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use requeue::limiter::NoLimit;
/// use requeue::priority::Plain;
/// use requeue::storage::Fixed;
/// use requeue::{Instant, Queue, Why};
///
/// let now = Instant::EPOCH;
/// let mut queue: Queue<&str, Plain, NoLimit, Fixed<4>> = Queue::new(NoLimit);
/// let _ = queue.at(now).add_after("lease-3", Duration::from_secs(60));
///
/// let why = queue.at(now).why("lease-3");
/// assert_eq!(why.to_string(), "delayed until 60s");
/// let left = why.until().map(|until| until.saturating_since(now));
/// assert_eq!(left, Some(Duration::from_secs(60)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Why {
    /// The key is active: it does run.
    Running {
        /// When its run began. `None` if the [metrics](crate::metrics::Metrics::Timestamps) keep no
        /// times.
        since: Option<Instant>,
        /// The key runs again after this run, because it was added meanwhile.
        again: bool,
    },
    /// The key waits for a worker. Nothing else is in its way, except for the keys in front of it.
    Ready,
    /// The key was added for a later time.
    Delayed {
        /// The end of its delay.
        until: Instant,
    },
    /// The limiter has set the key's deadline, after a failure or a rate-limited add. The deadline
    /// stays if the key runs earlier and succeeds. Then it has no failures.
    BackingOff {
        /// The end of the backoff.
        until: Instant,
        /// How many failures are on record.
        failures: u32,
    },
    /// The key waits for the end of a series of [debounced](crate::Session::add_debounced) adds.
    Debounced {
        /// The end of the series, if no further add moves it.
        until: Instant,
    },
    /// The key is [suspended](crate::Session::suspend): an add does not start it.
    Suspended {
        /// The end of the timeout.
        until: Instant,
        /// The key runs once it is resumed, because it was added or its action asked for that.
        again: bool,
    },
    /// The key cools down, or is [held](crate::Policy) for its failure: an add does not start it.
    Held {
        /// The end of the hold.
        until: Instant,
        /// How many failures are on record.
        failures: u32,
    },
    /// The queue is [paused](crate::Session::pause).
    Paused,
    /// The group of the key is [paused](crate::Session::pause_group).
    GroupPaused,
    /// The group of the key has as many [active keys](crate::GroupLimits::max_active) as it may.
    GroupAtLimit,
    /// The [rate](crate::GroupLimits::rate) of the key's group allows no run.
    GroupNoToken {
        /// When it allows the next one.
        until: Instant,
    },
    /// The [run rate](crate::Policy::run_rate) of the queue allows no run.
    NoToken {
        /// When it allows the next one.
        until: Instant,
    },
    /// The queue is shut down. A key that it still has is [left over](Leftover); others are
    /// refused.
    Closed,
    /// Nothing asks for a run of the key: it was not added, or has run since. The queue may still
    /// have its failures on record.
    Idle,
}

impl Why {
    /// Returns the time before which the key does not run, `None` if it depends on something else.
    /// [`Instant::NEVER`] does not come. A key with [slack](crate::Session::add_within) may run
    /// earlier, until this time at the latest.
    pub const fn until(self) -> Option<Instant> {
        match self {
            Self::Delayed { until }
            | Self::BackingOff { until, .. }
            | Self::Debounced { until }
            | Self::Suspended { until, .. }
            | Self::Held { until, .. }
            | Self::GroupNoToken { until }
            | Self::NoToken { until } => Some(until),
            _ => None,
        }
    }
}

/// Without the key, as in `node-7: delayed until 60s`. Times are those of the queue's clock.
impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Running { .. } => "running",
            Self::Ready => "ready, waits for a worker",
            Self::Delayed { .. } => "delayed",
            Self::BackingOff { .. } => "backs off",
            Self::Debounced { .. } => "debounced",
            Self::Suspended { .. } => "suspended",
            Self::Held { .. } => "held",
            Self::Paused => "ready, but the queue is paused",
            Self::GroupPaused => "ready, but its group is paused",
            Self::GroupAtLimit => "ready, but its group is at its limit",
            Self::GroupNoToken { .. } => "ready, but its group has no token",
            Self::NoToken { .. } => "ready, but there is no token",
            Self::Closed => "the queue is shut down",
            Self::Idle => "nothing to do",
        })?;
        match self.until() {
            Some(until) if until.is_never() => f.write_str(" for ever")?,
            Some(until) => write!(f, " until {until}")?,
            None => {}
        }
        match *self {
            Self::Running { since, again } => {
                if let Some(since) = since {
                    write!(f, " since {since}")?;
                }
                f.write_str(if again { ", and runs again" } else { "" })
            }
            Self::BackingOff { failures: 1, .. } | Self::Held { failures: 1, .. } => {
                f.write_str(", after 1 failure")
            }
            Self::BackingOff { failures, .. } | Self::Held { failures, .. } if failures > 1 => {
                write!(f, ", after {failures} failures")
            }
            _ => Ok(()),
        }
    }
}

/// The counts of a queue at one moment: [`stats`](crate::Queue::stats) returns them.
///
/// `total` is at least `ready + active + suspended + failure_records`, and at most that plus
/// `delayed`: a delayed key may also be ready or active.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use requeue::limiter::default_item_based;
/// use requeue::priority::Plain;
/// use requeue::storage::Fixed;
/// use requeue::{Instant, Queue};
///
/// let now = Instant::EPOCH;
/// let mut queue: Queue<&str, Plain, _, Fixed<8>> = Queue::new(default_item_based());
/// let _ = queue.at(now).add_many(["node-7", "node-8", "node-9"], |_| {});
/// let _ = queue.at(now).add_after("lease-3", Duration::from_secs(60));
/// let _work = queue.at(now).try_get();
///
/// let stats = queue.stats();
/// assert_eq!((stats.ready, stats.active, stats.delayed), (2, 1, 1));
/// assert_eq!((stats.total, stats.max_keys), (4, Some(8)));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct Stats {
    /// All keys that take up room: ready, active, delayed, suspended, or kept only as
    /// [records](Stats::failure_records).
    pub total: usize,
    /// Ready keys. They wait for a worker, for their group, for a token, or until the queue is
    /// unpaused.
    pub ready: usize,
    /// Keys that were handed out and whose runs have not ended, including dirty ones.
    pub active: usize,
    /// Active keys that run again after their present runs.
    pub dirty: usize,
    /// Keys that wait for a deadline, including those that are also ready or active. Without
    /// suspended keys.
    pub delayed: usize,
    /// Keys that are [suspended](crate::Session::suspend), whether they were added or not.
    pub suspended: usize,
    /// Keys without work, which are kept only for their failures or for a [hold](crate::Policy).
    pub failure_records: usize,
    /// How many keys fit. `None` if the queue grows without a [limit](crate::Builder::max_keys).
    pub max_keys: Option<usize>,
    /// The earliest deadline, as [`next_deadline`](crate::Queue::next_deadline) returns it.
    pub next_deadline: Option<Instant>,
    /// The queue is [paused](crate::Session::pause).
    pub paused: bool,
    /// The queue was [shut down](crate::Session::shut_down).
    pub shutting_down: bool,
}

/// One wait for the queue to drain: see [`Queue::begin_drain`], and [`Drained`] for an
/// example.
///
/// [`Queue::begin_drain`]: crate::Session::begin_drain
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
/// use requeue::limiter::NoLimit;
/// use requeue::priority::Plain;
/// use requeue::storage::Fixed;
/// use requeue::binding::Drained;
/// use requeue::{Instant, Queue};
///
/// let now = Instant::EPOCH;
/// let mut queue: Queue<&str, Plain, NoLimit, Fixed<4>> = Queue::new(NoLimit);
/// let _ = queue.at(now).add("node-7");
/// let drain = queue.at(now).begin_drain();
/// assert_eq!(queue.drain_status(&drain), Drained::Pending);
///
/// // A second signal arrives: the program no longer waits for the drain.
/// queue.at(now).shut_down();
/// assert_eq!(queue.drain_status(&drain), Drained::Interrupted);
///
/// let work = queue.at(now).try_get().unwrap();
/// queue.at(now).release(work.ticket);
/// assert_eq!(queue.drain_status(&drain), Drained::Complete);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[must_use = "a drain that was interrupted, or is pending, has left work"]
#[non_exhaustive]
pub enum Drained {
    /// A key is still ready or active.
    Pending,
    /// No key is ready or active.
    Complete,
    /// A later `shut_down` has ended the wait while a key was ready or active. Once no key is, the
    /// status is `Complete`.
    Interrupted,
}

impl Drained {
    /// Returns what a call that has waited for the drain returns: nothing, or why the queue has not
    /// drained. For runtimes. O(1).
    ///
    /// # Errors
    ///
    /// [`WaitError::Interrupted`], or [`WaitError::TimedOut`] for a drain that is pending.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::WaitError;
    /// use requeue::binding::Drained;
    ///
    /// assert_eq!(Drained::Complete.into_result(), Ok(()));
    /// assert_eq!(Drained::Interrupted.into_result(), Err(WaitError::Interrupted));
    /// ```
    pub const fn into_result(self) -> Result<(), WaitError> {
        match self {
            Self::Complete => Ok(()),
            Self::Interrupted => Err(WaitError::Interrupted),
            Self::Pending => Err(WaitError::TimedOut),
        }
    }
}

/// The set of waiting calls to wake.
///
/// A look that returns [`Wait`](crate::binding::Next::Wait) can ask for a wake that is meant for
/// the same call. So register the call as a sleeper before you send the wake, or look again after
/// it.
///
/// # Examples
///
/// ```
/// use requeue::limiter::NoLimit;
/// use requeue::priority::Plain;
/// use requeue::storage::Fixed;
/// use requeue::{Instant, Queue};
/// use requeue::binding::{Getter, Wake};
///
/// let now = Instant::EPOCH;
/// let mut queue: Queue<&str, Plain, NoLimit, Fixed<4>> = Queue::new(NoLimit);
/// // A worker finds nothing and goes to sleep.
/// let mut getter = Getter::new();
/// let _ = queue.at(now).poll_get(&mut getter);
///
/// let _ = queue.at(now).add("node-7");
/// assert_eq!(queue.at(now).close(), Wake::ONE);
/// // The sleeper has been woken already.
/// let _ = queue.at(now).add("node-8");
/// assert_eq!(queue.at(now).close(), Wake::NONE);
/// queue.at(now).shut_down();
/// assert_eq!(queue.at(now).close(), Wake::ALL);
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[must_use = "a sleeper that is not woken sleeps on"]
pub struct Wake(u32);

impl Wake {
    /// No call.
    pub const NONE: Self = Self(0);
    /// Any one sleeping getter. It wakes the next one if there is more to do.
    pub const ONE: Self = Self(1);
    /// The first call that [waits for room](crate::Session::poll_add). It wakes the next one if
    /// there is more room.
    pub const ROOM: Self = Self(1 << 1);
    /// Every call that waits for a state of the queue: [`poll_idle`](crate::Session::poll_idle) and
    /// its neighbours.
    pub const WATCHERS: Self = Self(1 << 2);
    /// Every call.
    pub const ALL: Self = Self(u32::MAX);

    /// Returns whether these calls are among those to wake. O(1).
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::binding::Wake;
    ///
    /// assert!(Wake::ALL.contains(Wake::ROOM));
    /// assert!(!Wake::ONE.contains(Wake::ROOM));
    /// assert!((Wake::ONE | Wake::ROOM).contains(Wake::ROOM));
    /// ```
    #[inline]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// What is left to wake after a call of a kind, of which only the first may be meant.
    pub(crate) fn without_first(self, kind: Self) -> Self {
        match self {
            Self::ALL => self,
            _ if kind == Self::WATCHERS => self,
            _ => Self(self.0 & !kind.0),
        }
    }
}

impl BitOr for Wake {
    type Output = Self;

    #[inline]
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl fmt::Debug for Wake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const PARTS: [(Wake, &str); 3] = [
            (Wake::ONE, "ONE"),
            (Wake::ROOM, "ROOM"),
            (Wake::WATCHERS, "WATCHERS"),
        ];
        match *self {
            Self::NONE => return f.write_str("NONE"),
            Self::ALL => return f.write_str("ALL"),
            _ => {}
        }
        let mut separator = "";
        for (part, name) in PARTS {
            if self.contains(part) {
                write!(f, "{separator}{name}")?;
                separator = " | ";
            }
        }
        Ok(())
    }
}
