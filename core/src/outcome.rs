//! What operations answer.
//!
//! Commands of the state machine answer with an [`Effect`]: the outcome, and whom to wake once the
//! lock is released.

use core::fmt;
use core::time::Duration;

use crate::Instant;

/// An outcome, and what its operation asks of the runtime.
///
/// # Examples
///
/// ```
/// use requeue_core::{Added, Fixed, Instant, NoLimit, Queue, Wake};
///
/// let mut queue: Queue<u8, Fixed<4>, NoLimit> = Queue::new(NoLimit);
/// let effect = queue.add(7, Instant::EPOCH);
/// assert_eq!(effect.value, Ok(Added::Ready));
/// assert_eq!(effect.wake, Wake::None, "nobody sleeps yet");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[must_use = "`wake` names the sleepers that have to be woken"]
pub struct Effect<T> {
    /// The outcome itself.
    pub value: T,
    /// Whom to wake, after the lock is released.
    pub wake: Wake,
}

impl<T> Effect<T> {
    /// Changes the outcome and keeps the wake.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_core::{Effect, Fixed, Instant, NoLimit, Queue};
    ///
    /// let mut queue: Queue<&str, Fixed<4>, NoLimit> = Queue::new(NoLimit);
    /// // Any outcome can be narrowed down without losing the wake that came with it.
    /// let Effect { value: is_taken, wake: _ } =
    ///     queue.add("node-7", Instant::EPOCH).map(|added| added.is_ok());
    /// assert!(is_taken);
    /// ```
    #[inline]
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Effect<U> {
        Effect {
            value: change(self.value),
            wake: self.wake,
        }
    }
}

/// Whom to wake.
///
/// # Examples
///
/// ```
/// use requeue_core::{Fixed, Getter, Instant, NoLimit, Queue, Wake};
///
/// let now = Instant::EPOCH;
/// let mut queue: Queue<&str, Fixed<4>, NoLimit> = Queue::new(NoLimit);
/// // A worker finds nothing and goes to sleep.
/// let mut getter = Getter::new();
/// let _ = queue.get(now, &mut getter);
///
/// assert_eq!(queue.add("node-7", now).wake, Wake::One);
/// // The sleeper is on its way already.
/// assert_eq!(queue.add("node-8", now).wake, Wake::None);
/// assert_eq!(queue.shut_down(now).wake, Wake::All);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[must_use = "a sleeper that is not woken sleeps on"]
pub enum Wake {
    /// Nobody.
    #[default]
    None,
    /// One sleeping getter, whichever; it wakes the next if there is more to do.
    One,
    /// Every sleeping getter and everybody who waits for the drain.
    All,
}

/// What became of a key that was added.
///
/// # Examples
///
/// A watcher counts the events that cost no run of their own:
///
/// ```
/// use requeue_core::{Added, Fixed, Instant, NoLimit, Queue};
///
/// let mut queue: Queue<&str, Fixed<4>, NoLimit> = Queue::new(NoLimit);
/// let mut saved = 0;
/// for event in ["etc/hosts", "etc/fstab", "etc/hosts", "etc/hosts"] {
///     if queue.add(event, Instant::EPOCH).value == Ok(Added::Coalesced) {
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
    /// The key is being worked on and will be worked on once more.
    Dirty,
    /// The key will be ready at its deadline; it had none before.
    Delayed,
    /// The key was waiting for a later deadline, which has moved forward.
    Sooner,
    /// The key was already ready, dirty, or waiting for this deadline or an earlier one: nothing
    /// changed.
    Coalesced,
    /// The same, but at a lower priority: it stands at the end of the higher level now, or will.
    Raised,
}

/// Why a key was not taken. The key comes back; nothing has changed.
///
/// # Examples
///
/// ```
/// use requeue_core::{Fixed, Instant, NoLimit, Queue, Rejected};
///
/// let now = Instant::EPOCH;
/// let mut queue: Queue<&str, Fixed<1>, NoLimit> = Queue::new(NoLimit);
/// queue.add("sensor-1", now).value.unwrap();
/// assert_eq!(queue.add("sensor-2", now).value, Err(Rejected::Full("sensor-2")));
/// // A key that the queue holds needs no room.
/// assert!(queue.add("sensor-1", now).value.is_ok());
///
/// let _ = queue.shut_down(now);
/// let rejected = queue.add("sensor-1", now).value.unwrap_err();
/// assert_eq!(rejected.to_string(), "the queue is shutting down");
/// assert_eq!(rejected.into_key(), "sensor-1");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Rejected<K> {
    /// The queue holds as many keys as it has room for, and this is a new one.
    Full(K),
    /// The queue is shutting down.
    Closed(K),
    /// The queue has fewer priority levels than that.
    UnknownPriority(K),
}

impl<K> Rejected<K> {
    /// The key that was not taken.
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

/// An add that was taken, and how long it has the key wait.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use requeue_core::{Added, Fixed, Instant, Queue, default_item_based};
///
/// let mut queue: Queue<&str, Fixed<4>, _> = Queue::new(default_item_based());
/// let limited = queue.add_rate_limited("node-7", Instant::EPOCH).value.unwrap();
/// assert_eq!(limited.delay, Duration::from_millis(1));
/// assert_eq!(limited.added, Added::Delayed);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct Limited {
    /// How long the limiter lets the key wait, or the add itself. A deadline that the key had
    /// before and that is earlier stands all the same.
    pub delay: Duration,
    /// What became of the key.
    pub added: Added,
}

/// What a getter finds.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use requeue_core::{Fixed, Getter, Instant, Next, NoLimit, Queue};
///
/// let now = Instant::EPOCH;
/// let due = now + Duration::from_secs(60);
/// let mut queue: Queue<&str, Fixed<4>, NoLimit> = Queue::new(NoLimit);
/// let _ = queue.add_at("lease-3", due, now);
///
/// // What a runtime does with each answer: sleep, work, or end.
/// let mut getter = Getter::new();
/// assert_eq!(queue.get(now, &mut getter).value, Next::Wait { until: Some(due) });
/// assert!(matches!(queue.get(due, &mut getter).value, Next::Work(work) if work.key == "lease-3"));
/// let _ = queue.shut_down(due);
/// assert_eq!(queue.get(due, &mut getter).value, Next::Closed);
/// ```
#[derive(Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[must_use]
pub enum Next<T> {
    /// Work.
    Work(T),
    /// Nothing is ready. Sleep until woken, and no longer than `until`, then look again.
    Wait {
        /// The deadline that this getter watches for all; none if there is none, or if another
        /// sleeper watches it.
        until: Option<Instant>,
    },
    /// The queue is shutting down and nothing is ready.
    Closed,
}

/// What is to become of a key once its run is completed.
///
/// | | the key comes back | its failures |
/// |---|---|---|
/// | `Done` | if it was added meanwhile | stay |
/// | `Succeeded` | if it was added meanwhile | are forgotten |
/// | `SucceededAgainAfter(d)` | after `d` | are forgotten |
/// | `Retry` | when its limiter says so | are one more |
/// | `RetryAfter(d)` | after `d` | stay |
///
/// # Examples
///
/// What client-go's controllers do with an error, a wish to look again, and a success:
///
/// ```
/// use core::time::Duration;
/// use requeue_core::Completion;
///
/// fn judge(result: Result<Option<Duration>, &str>) -> Completion {
///     match result {
///         Err(_) => Completion::Retry,
///         Ok(Some(again)) => Completion::SucceededAgainAfter(again),
///         Ok(None) => Completion::Succeeded,
///     }
/// }
///
/// assert_eq!(judge(Err("no route to node-7")), Completion::Retry);
/// assert!(!judge(Ok(None)).needs_time());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Completion {
    /// The run is over, as after client-go's `Done`: the failures stay remembered.
    Done,
    /// It succeeded: the failures are forgotten.
    Succeeded,
    /// It succeeded and shall run again after a while: the failures are forgotten.
    SucceededAgainAfter(Duration),
    /// It failed: count one more failure and let the limiter say when the key runs again.
    Retry,
    /// It shall run again after a while: the failures stay remembered, none is counted.
    RetryAfter(Duration),
}

impl Completion {
    /// Whether the completion itself needs the time, as the key is to come back. A runtime need not
    /// read its clock otherwise, unless [`Queue::needs_time`](crate::Queue::needs_time) says so.
    #[inline]
    pub const fn needs_time(self) -> bool {
        !matches!(self, Self::Done | Self::Succeeded)
    }

    #[inline]
    pub(crate) const fn forgets(self) -> bool {
        matches!(self, Self::Succeeded | Self::SucceededAgainAfter(_))
    }
}

/// What became of a key whose run was completed.
///
/// A delay that the key had before is not told: it stands beside each of these, and
/// [`Queue::state`](crate::Queue::state) shows the deadline that counts.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use requeue_core::{Completion, Finished, Fixed, Instant, Queue, default_item_based};
///
/// let now = Instant::EPOCH;
/// let mut queue: Queue<&str, Fixed<4>, _> = Queue::new(default_item_based());
/// let mut run = |completion| {
///     let _ = queue.add("node-7", now);
///     let work = queue.try_get(now).value.unwrap();
///     queue.complete(work.ticket, completion, now).value.unwrap()
/// };
/// assert_eq!(run(Completion::Retry), Finished::Delayed(Duration::from_millis(1)));
/// assert_eq!(run(Completion::Retry), Finished::Delayed(Duration::from_millis(2)));
/// assert_eq!(run(Completion::Succeeded), Finished::Idle);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Finished {
    /// The key is neither ready nor asked to come back.
    Idle,
    /// The key is ready again, at the end of the queue: it was added meanwhile, or is to come back
    /// at once.
    Ready,
    /// The key comes back by itself, after this long; sooner if it waited for an earlier deadline
    /// already, never after [`Duration::MAX`].
    Delayed(Duration),
    /// The key would come back after this long, but the queue is shutting down: it is kept for
    /// [`take_delayed`](crate::Queue::take_delayed).
    Leftover(Duration),
}

impl Finished {
    /// What becomes of a key that is not asked to come back.
    #[inline]
    pub(crate) const fn at_once(again: bool) -> Self {
        if again { Self::Ready } else { Self::Idle }
    }
}

/// One turn of a worker's loop: what became of its last key, and its next.
///
/// # Examples
///
/// ```
/// use requeue_core::{Completion, Finished, Fixed, Getter, Instant, Next, NoLimit, Queue};
///
/// let now = Instant::EPOCH;
/// let mut queue: Queue<&str, Fixed<4>, NoLimit> = Queue::new(NoLimit);
/// let _ = queue.add_many(["node-7", "node-8"], now, |_| {});
/// let work = queue.try_get(now).value.unwrap();
///
/// let mut getter = Getter::new();
/// let step = queue.next(work.ticket, Completion::Succeeded, now, &mut getter).value;
/// assert_eq!(step.finished, Ok(Finished::Idle));
/// assert!(matches!(step.next, Next::Work(work) if work.key == "node-8"));
/// ```
#[derive(Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[must_use]
#[non_exhaustive]
pub struct Step<T> {
    /// What became of the key that was completed.
    pub finished: Result<Finished, NotActive>,
    /// What there is to do now.
    pub next: Next<T>,
}

/// A key that was not worked on before the queue was shut down.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use requeue_core::{Fixed, Instant, NoLimit, Queue};
///
/// let now = Instant::EPOCH;
/// let mut queue: Queue<&str, Fixed<4>, NoLimit> = Queue::new(NoLimit);
/// let _ = queue.add_after("lease-3", Duration::from_secs(60), now);
/// let _ = queue.shut_down(now);
///
/// let later = now + Duration::from_secs(20);
/// let leftover = queue.take_delayed(later).unwrap();
/// assert_eq!((leftover.key, leftover.left), ("lease-3", Duration::from_secs(40)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct Leftover<K> {
    /// The key.
    pub key: K,
    /// How much of its delay is left; zero for a key that is ready or due, [`Duration::MAX`] for a
    /// key that waits for ever.
    pub left: Duration,
    /// How many failures the limiter remembers of it.
    pub requeues: u32,
    /// Its priority level; 0 in a queue without [`Levels`](crate::Levels).
    pub priority: u8,
}

/// The key is not being worked on, or not under this ticket: nothing has changed.
///
/// # Examples
///
/// client-go's `Done` cannot tell; here a key that is completed twice is found out:
///
/// ```
/// use requeue_core::{Fixed, Instant, NoLimit, NotActive, Queue};
///
/// let now = Instant::EPOCH;
/// let mut queue: Queue<&str, Fixed<4>, NoLimit> = Queue::new(NoLimit);
/// let _ = queue.add("node-7", now);
/// assert_eq!(queue.done_key(&"node-7", now).value, Err(NotActive), "nobody took it yet");
/// assert_eq!(queue.len(now).value, 1);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct NotActive;

impl fmt::Display for NotActive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the key is not being worked on, or not under this ticket")
    }
}

impl core::error::Error for NotActive {}

/// Why a runtime's timed `get` has no key.
///
/// # Examples
///
/// ```
/// use requeue_core::GetError;
///
/// assert_eq!(GetError::TimedOut.to_string(), "no key was ready in time");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum GetError {
    /// No key was ready in time.
    TimedOut,
    /// The queue is shutting down and nothing is ready.
    Closed,
}

impl fmt::Display for GetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TimedOut => "no key was ready in time",
            Self::Closed => "the queue is shutting down and nothing is ready",
        })
    }
}

impl core::error::Error for GetError {}

/// How many keys of a batch were taken, and how.
///
/// # Examples
///
/// ```
/// use requeue_core::{Fixed, Instant, NoLimit, Queue};
///
/// let mut queue: Queue<u16, Fixed<3>, NoLimit> = Queue::new(NoLimit);
/// let many = queue.add_many([17, 18, 17, 19, 20], Instant::EPOCH, |_| {}).value;
/// assert_eq!((many.ready, many.coalesced, many.rejected), (3, 1, 1));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct AddedMany {
    /// Keys that became ready.
    pub ready: usize,
    /// Keys in work that will be worked on once more.
    pub dirty: usize,
    /// Keys that were ready or dirty already.
    pub coalesced: usize,
    /// Keys that were handed back.
    pub rejected: usize,
}

/// What the queue knows of a key.
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
/// let _ = queue.add("node-7", now);
/// let _work = queue.try_get(now);
/// let _ = queue.add("node-7", now);
/// let _ = queue.add_at("node-7", due, now);
///
/// let state = queue.state(&"node-7", now).value.unwrap();
/// assert!(state.active && state.dirty && !state.ready);
/// assert_eq!(state.due, Some(due));
/// assert_eq!(queue.state(&"node-8", now).value, None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct KeyState {
    /// The key waits for its turn.
    pub ready: bool,
    /// The key is being worked on.
    pub active: bool,
    /// The key is being worked on and will be worked on once more.
    pub dirty: bool,
    /// The deadline the key waits for, whatever else it does; [`Instant::NEVER`] for one that does
    /// not come.
    pub due: Option<Instant>,
    /// How many failures the limiter remembers of it.
    pub requeues: u32,
    /// The priority level at which the key is ready, or will be when its run ends; if neither, the
    /// level of its run; else of its deadline. 0 in a queue without [`Levels`](crate::Levels).
    pub priority: u8,
}

/// One wait for the queue to drain: see [`Queue::shut_down_with_drain`], and [`Drained`] for an
/// example.
///
/// [`Queue::shut_down_with_drain`]: crate::Queue::shut_down_with_drain
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[must_use = "ask the queue whether it has drained"]
pub struct Drain {
    pub(crate) epoch: u32,
}

/// How a drain stands.
///
/// # Examples
///
/// ```
/// use requeue_core::{Drained, Fixed, Instant, NoLimit, Queue};
///
/// let now = Instant::EPOCH;
/// let mut queue: Queue<&str, Fixed<4>, NoLimit> = Queue::new(NoLimit);
/// let _ = queue.add("node-7", now);
/// let drain = queue.shut_down_with_drain(now).value;
/// assert_eq!(queue.drained(&drain), Drained::Pending);
///
/// // Somebody is not willing to wait for it any longer.
/// let _ = queue.shut_down(now);
/// assert_eq!(queue.drained(&drain), Drained::Interrupted);
///
/// let work = queue.try_get(now).value.unwrap();
/// let _ = queue.done(work.ticket, now);
/// assert_eq!(queue.drained(&drain), Drained::Complete);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[must_use]
pub enum Drained {
    /// Keys are still ready or in work.
    Pending,
    /// Nothing is ready, dirty or in work.
    Complete,
    /// A later `shut_down` has ended the wait.
    Interrupted,
}
