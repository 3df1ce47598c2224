//! Calls that wait: what a runtime adds to core, driven step by step.

use std::time::Duration;

use requeue_core::binding::Drained;
use requeue_core::{Action, Added, KeyState, Rejected, WaitError};

use super::{Key, Taken};

/// One call of a test, numbered from 1.
pub type CallId = usize;

/// A call that may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Call {
    /// Waits for a key.
    Get,
    /// Waits for a key, and no longer than this.
    GetTimeout(Duration),
    /// Takes the first ready key, completes it like this, and waits for the next, in whatever way
    /// the queue has for a worker's loop. Started only while a key is ready.
    Next(Action),
    /// Shuts the queue down and waits until it has drained.
    Drain,
    /// Shuts the queue down and waits until it has drained, and no longer than this.
    DrainTimeout(Duration),
    /// Waits until no key is ready or active.
    WaitIdle,
    /// Waits until no key is ready, active or delayed.
    WaitSettled,
    /// Waits until the work of a key that is known now is done.
    Flush(Key),
    /// Takes back the work of a key, and waits until its present run has ended.
    CancelAndWait(Key),
    /// Adds a key, and waits for room.
    AddWait(Key),
}

/// What a call has returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Returned<W = Taken> {
    /// A key to work on.
    Work(W),
    /// No key was ready in time.
    TimedOut,
    /// The queue is shut down, and no key is ready.
    Closed,
    /// How the drain has ended; [`Drained::Pending`] if it has not in time.
    Drained(Drained),
    /// What was waited for has come.
    Done,
    /// What the key was whose work was taken back. Its run has ended.
    Cancelled(Option<KeyState>),
    /// What has become of the key that was to be added.
    Added(Result<Added, Rejected<Key>>),
    /// All [places](super::Abilities::places) to wait are taken.
    Refused,
}

impl<W> Returned<W> {
    /// The same with another kind of work.
    pub(super) fn map<U>(self, map: impl FnOnce(W) -> U) -> Returned<U> {
        match self {
            Self::Work(work) => Returned::Work(map(work)),
            Self::TimedOut => Returned::TimedOut,
            Self::Closed => Returned::Closed,
            Self::Drained(drained) => Returned::Drained(drained),
            Self::Done => Returned::Done,
            Self::Cancelled(was) => Returned::Cancelled(was),
            Self::Added(added) => Returned::Added(added),
            Self::Refused => Returned::Refused,
        }
    }
}

/// What a runtime's `drain` returns.
impl From<Result<(), WaitError>> for Returned {
    fn from(ended: Result<(), WaitError>) -> Self {
        match ended {
            Ok(()) => Self::Drained(Drained::Complete),
            Err(WaitError::Interrupted) => Self::Drained(Drained::Interrupted),
            Err(WaitError::TooManyWaiters) => Self::Refused,
            Err(_) => Self::Drained(Drained::Pending),
        }
    }
}

/// What a runtime's `get` returns, whose guard was taken apart by [`handed`](super::handed).
impl From<Result<Option<Taken>, WaitError>> for Returned {
    fn from(got: Result<Option<Taken>, WaitError>) -> Self {
        match got {
            Err(WaitError::TimedOut) => Self::TimedOut,
            Err(WaitError::TooManyWaiters) => Self::Refused,
            got => got.ok().flatten().map_or(Self::Closed, Self::Work),
        }
    }
}

/// Makes a call on a queue that has the methods of ours, and waits for it in its way. `$timeout` is
/// how a drain waits for no longer than `$limit`. `$waited` makes a result of what is returned by a
/// call that may find no place to wait, or always finds one.
macro_rules! returned {
    ($queue:ident, $call:expr, [$($wait:tt)*], $waited:path, |$limit:ident| $timeout:expr) => {{
        let done = |waited: Result<(), WaitError>| match waited {
            Ok(()) => Returned::Done,
            Err(_) => Returned::Refused,
        };
        match $call {
            Call::Get => Returned::from($queue.get()$($wait)*.map(handed)),
            Call::GetTimeout(limit) => {
                Returned::from($queue.get_timeout(limit)$($wait)*.map(handed))
            }
            Call::Next(action) => match $queue.try_get() {
                Some(guard) => Returned::from($queue.next(guard, action)$($wait)*.map(handed)),
                None => Returned::Closed,
            },
            Call::Drain => Returned::from($queue.drain()$($wait)*),
            Call::DrainTimeout($limit) => Returned::from($timeout),
            Call::WaitIdle => done($waited($queue.wait_idle()$($wait)*)),
            Call::WaitSettled => done($waited($queue.wait_settled()$($wait)*)),
            Call::Flush(key) => done($waited($queue.flush(&key)$($wait)*)),
            Call::CancelAndWait(key) => {
                let was: Result<_, WaitError> = $waited($queue.cancel_and_wait(&key)$($wait)*);
                was.map_or(Returned::Refused, Returned::Cancelled)
            }
            Call::AddWait(key) => match $queue.add_wait(key)$($wait)* {
                Err(Rejected::TooManyWaiters(_)) => Returned::Refused,
                added => Returned::Added(added),
            },
        }
    }};
}

pub(super) use returned;

/// The calls of a runtime for tasks, whose queue is `self.queue`. See [`returned`].
#[cfg(any(feature = "tokio", feature = "embassy"))]
macro_rules! calls_of_tasks {
    ($waited:path) => {
        fn begin(&self, call: Call) -> Option<LocalCall> {
            let queue = self.queue.clone();
            Some(Box::pin(async move {
                returned!(queue, call, [.await], $waited, |limit| {
                    let deadline = Some(queue.now() + limit);
                    let drained = timeout_at(queue.clock(), deadline, queue.drain()).await;
                    drained.unwrap_or(Err(WaitError::TimedOut))
                })
            }))
        }

        fn next_unrun(&mut self, action: Action) -> bool {
            let guard = self.queue.try_get();
            let next = guard.map(|guard| drop(self.queue.next(guard, action)));
            next.is_some()
        }
    };
}

#[cfg(any(feature = "tokio", feature = "embassy"))]
pub(super) use calls_of_tasks;

/// Keeps calls of a runtime `R` that have begun and lets them run, as [`Subject`](super::Subject)
/// says of each method. Futures are driven by [`Futures`](super::Futures).
pub trait Drive<R>: Default {
    /// A call that is about to begin.
    type Begun;
    /// As [`Abilities::runs_by_itself`](super::Abilities::runs_by_itself).
    const RUNS_BY_ITSELF: bool = false;
    /// As [`Abilities::cancels`](super::Abilities::cancels).
    const CANCELS: bool = true;

    /// Lets a call run until it returns or waits. If it wakes itself, it runs on.
    fn start(&mut self, id: CallId, begun: Self::Begun);
    /// As [`Subject::settle`](super::Subject::settle).
    fn settle(&mut self, runtime: &R) -> bool;
    /// As [`Subject::answer`](super::Subject::answer).
    fn answer(&mut self, id: CallId) -> Option<Returned>;
    /// As [`Subject::cancel`](super::Subject::cancel).
    fn cancel(&mut self, id: CallId);
    /// As [`Subject::nudge`](super::Subject::nudge).
    fn nudge(&mut self, id: CallId);
    /// Ends every call that waits. The test is over.
    fn end(&mut self, runtime: &R) {
        let _ = runtime;
    }
}
