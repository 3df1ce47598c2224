//! What operations answer.
//!
//! Commands of the state machine answer with an [`Effect`]: the outcome, and whom to wake once the
//! lock is released.

use core::fmt;
use core::time::Duration;

use crate::Instant;
use crate::id::SlotId;

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
#[must_use = "`wake` names the sleepers that have to be woken"]
pub struct Effect<T> {
    /// The outcome itself.
    pub value: T,
    /// Whom to wake, after the lock is released.
    pub wake: Wake,
}

impl<T> Effect<T> {
    /// Changes the outcome and keeps the wake.
    #[inline]
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Effect<U> {
        Effect {
            value: change(self.value),
            wake: self.wake,
        }
    }
}

/// Whom to wake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
}

/// Why a key was not taken. The key comes back; nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rejected<K> {
    /// The queue holds as many keys as it has room for, and this is a new one.
    Full(K),
    /// The queue is shutting down.
    Closed(K),
}

impl<K> Rejected<K> {
    /// The key that was not taken.
    pub fn into_key(self) -> K {
        match self {
            Self::Full(key) | Self::Closed(key) => key,
        }
    }
}

impl<K> fmt::Display for Rejected<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full(_) => "the queue has no room for a new key",
            Self::Closed(_) => "the queue is shutting down",
        })
    }
}

impl<K: fmt::Debug> core::error::Error for Rejected<K> {}

/// A rate-limited add that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limited {
    /// How long the limiter lets the key wait.
    pub delay: Duration,
    /// What became of the key.
    pub added: Added,
}

/// A key handed out to be worked on.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a key that is handed out has to be completed"]
#[non_exhaustive]
pub struct Work<K> {
    /// The key: a clone of the one the queue keeps.
    pub key: K,
    /// Completes the key without another lookup.
    pub ticket: Ticket,
    /// How many failures the limiter remembers of the key.
    pub requeues: u32,
}

/// The right to complete one run of one key.
///
/// It cannot be cloned: a key is completed once. A ticket whose run was completed otherwise (by
/// [`done_key`](crate::Queue::done_key)) is stale and changes nothing. Tickets are meaningless to
/// any other queue.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a key whose ticket is dropped stays in work for ever"]
pub struct Ticket {
    pub(crate) id: SlotId,
    pub(crate) run: u32,
}

/// What a getter finds.
#[derive(Debug, PartialEq, Eq)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// Whether the completion itself needs the time: the key is to come back.
    #[inline]
    pub const fn needs_time(self) -> bool {
        !matches!(self, Self::Done | Self::Succeeded)
    }
}

/// What became of a key whose run was completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Finished {
    /// The key is at rest.
    Idle,
    /// The key is ready again, at the end of the queue: it was added meanwhile, or is to come back
    /// at once.
    Ready,
    /// The key comes back by itself, after this long.
    Delayed(Duration),
    /// The key would come back after this long, but the queue is shutting down: it is kept for
    /// [`take_delayed`](crate::Queue::take_delayed).
    Leftover(Duration),
}

/// One turn of a worker's loop: what became of its last key, and its next.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
#[non_exhaustive]
pub struct Step<T> {
    /// What became of the key that was completed.
    pub finished: Result<Finished, NotActive>,
    /// What there is to do now.
    pub next: Next<T>,
}

/// A key that was not worked on before the queue was shut down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Leftover<K> {
    /// The key.
    pub key: K,
    /// How much of its delay was left; zero for a key that was ready, [`Duration::MAX`] for a key
    /// that waited for ever.
    pub left: Duration,
    /// How many failures the limiter remembers of it.
    pub requeues: u32,
}

/// The key is not being worked on, or not under this ticket: nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotActive;

impl fmt::Display for NotActive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the key is not being worked on, or not under this ticket")
    }
}

impl core::error::Error for NotActive {}

/// How many keys of a batch were taken, and how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyState {
    /// The key waits for its turn.
    pub ready: bool,
    /// The key is being worked on.
    pub active: bool,
    /// The key is being worked on and will be worked on once more.
    pub dirty: bool,
    /// The deadline the key waits for.
    pub due: Option<Instant>,
    /// How many failures the limiter remembers of it.
    pub requeues: u32,
}

/// One wait for the queue to drain: see [`Queue::shut_down_with_drain`].
///
/// [`Queue::shut_down_with_drain`]: crate::Queue::shut_down_with_drain
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "ask the queue whether it has drained"]
pub struct Drain {
    pub(crate) epoch: u32,
}

/// How a drain stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Drained {
    /// Keys are still ready or in work.
    Pending,
    /// Nothing is ready, dirty or in work.
    Complete,
    /// A later `shut_down` has ended the wait.
    Interrupted,
}
