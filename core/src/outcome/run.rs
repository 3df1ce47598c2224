//! What gets and ends of runs return.

use core::fmt;
use core::time::Duration;

use crate::Instant;
use crate::wait::TooManyWaiters;

/// What a getter has to do next.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use requeue_core::{Fixed, Instant, NoLimit, Queue};
/// use requeue_core::binding::{Getter, Next};
///
/// let now = Instant::EPOCH;
/// let due = now + Duration::from_secs(60);
/// let mut queue: Queue<&str, Fixed<4>, NoLimit> = Queue::new(NoLimit);
/// let _ = queue.at(now).add_at("lease-3", due);
///
/// let mut getter = Getter::new();
/// assert_eq!(queue.at(now).poll_get(&mut getter), Next::Wait { until: Some(due) });
/// let next = queue.at(due).poll_get(&mut getter);
/// assert!(matches!(next, Next::Work(work) if work.key == "lease-3"));
/// queue.at(due).shut_down();
/// assert_eq!(queue.at(due).poll_get(&mut getter), Next::Closed);
/// ```
#[derive(Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[must_use]
pub enum Next<T> {
    /// This is what there is to do.
    Work(T),
    /// Nothing is ready. Sleep until woken, and no longer than `until`, then look again.
    Wait {
        /// The deadline that this getter watches for all of them. `None` if there is no deadline,
        /// or if another sleeping getter watches it.
        until: Option<Instant>,
    },
    /// The queue is shutting down and nothing is ready.
    Closed,
}

/// What became of a key whose run has ended.
///
/// A delay that the key had before is not shown: it still counts in any of these cases, and
/// [`Queue::state`](crate::Queue::state) shows the deadline.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use requeue_core::{Action, Finished, Fixed, Instant, Queue, default_item_based};
///
/// let now = Instant::EPOCH;
/// let mut queue: Queue<&str, Fixed<4>, _> = Queue::new(default_item_based());
/// let mut run = |action| {
///     let _ = queue.at(now).add("node-7");
///     let work = queue.at(now).try_get().unwrap();
///     queue.at(now).finish(work.ticket, action).unwrap()
/// };
/// assert_eq!(run(Action::Retry), Finished::Delayed(Duration::from_millis(1)));
/// assert_eq!(run(Action::Retry), Finished::Delayed(Duration::from_millis(2)));
/// assert_eq!(run(Action::Success), Finished::Idle);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Finished {
    /// The key is neither ready nor due for another run.
    Idle,
    /// The key is ready again, at the end of the queue: it was added during its run, or its action
    /// had a delay of zero.
    Ready,
    /// The key runs again after this long: earlier if it already had an earlier deadline, and never
    /// after [`Duration::MAX`]. It is at least as long as the key is [held](crate::WithHolds), also
    /// if the key was added during its run.
    Delayed(Duration),
    /// The key would run again after this long, but the queue is shutting down: it is kept for
    /// [`take_delayed`](crate::Queue::take_delayed).
    Leftover(Duration),
}

impl Finished {
    /// What becomes of a key whose action asks for no other run.
    #[inline]
    pub(crate) const fn at_once(again: bool) -> Self {
        if again { Self::Ready } else { Self::Idle }
    }
}

/// The key is not active, or the run of this ticket has ended before. Nothing has changed.
///
/// # Examples
///
/// client-go's `Done` ignores this case. Here a run that is ended twice, or was never begun, is an
/// error:
///
/// ```
/// use requeue_core::{Fixed, Instant, NoLimit, NotActive, Queue};
///
/// let now = Instant::EPOCH;
/// let mut queue: Queue<&str, Fixed<4>, NoLimit> = Queue::new(NoLimit);
/// let _ = queue.at(now).add("node-7");
/// assert_eq!(queue.at(now).release_key(&"node-7"), Err(NotActive), "it is only ready");
/// assert_eq!(queue.at(now).len(), 1);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct NotActive;

impl fmt::Display for NotActive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the key is not active, or this run of it has ended before")
    }
}

impl core::error::Error for NotActive {}

/// Why a call that waits has no result.
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
    /// No key was ready in time. Only calls with a deadline return this.
    TimedOut,
    /// The queue is shutting down and nothing is ready.
    Closed,
    /// The call would have to wait, and the queue has no place for another call that waits. Never
    /// returned on threads and on Tokio, where there are as many places as are needed.
    TooManyWaiters,
}

impl fmt::Display for GetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimedOut => f.write_str("no key was ready in time"),
            Self::Closed => f.write_str("the queue is shutting down and nothing is ready"),
            Self::TooManyWaiters => TooManyWaiters.fmt(f),
        }
    }
}

impl core::error::Error for GetError {}

impl From<TooManyWaiters> for GetError {
    fn from(_: TooManyWaiters) -> Self {
        Self::TooManyWaiters
    }
}
