//! Calls that wait: how the waiting of a runtime's own is driven, step by step.

use std::fmt::Debug;
use std::time::Duration;

use requeue_core::{Completion, Drained, GetError, Ticket};

use super::{Handed, OnWorkQueue, Runtime, Subject};

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
    /// Takes the first ready key, completes it as told, and waits for the next, in whatever way the
    /// queue has for a worker's loop. It is called only while a key is ready.
    Next(Completion),
    /// Shuts the queue down and waits until it has drained.
    Drain,
    /// Shuts the queue down and waits until it has drained, and no longer than this.
    DrainTimeout(Duration),
}

/// What a call has answered.
#[derive(Debug, PartialEq, Eq)]
pub enum Answer<T> {
    /// A key to work on.
    Work(Handed<T>),
    /// No key was ready in time.
    TimedOut,
    /// The queue is shut down, and no key is ready.
    Closed,
    /// How the drain has ended; [`Drained::Pending`] if it has not in time.
    Drained(Drained),
    /// All [places](Waits::places) to wait are taken.
    Refused,
}

/// The answer of a runtime's timed `get`, whose guard was taken apart by [`handed`](super::handed).
impl<T> From<Result<Option<Handed<T>>, GetError>> for Answer<T> {
    fn from(got: Result<Option<Handed<T>>, GetError>) -> Self {
        match got {
            Ok(Some(handed)) => Self::Work(handed),
            Err(GetError::TimedOut) => Self::TimedOut,
            // A guard without a ticket does not come from `get`.
            Ok(None) | Err(_) => Self::Closed,
        }
    }
}

/// A [`Subject`] whose own waiting can be driven: what an adapter adds to core.
///
/// A call is begun, and answers or waits. Then [`settle`](Self::settle) lets everything run that
/// can, and the test looks which calls have answered. Calls that wait may be cancelled; time passes
/// by [`Subject::advance`], which has to make the runtime's timers ring, but need not run those
/// whom they wake. Between the calls the test does the [`Subject`]'s operations, which never wait.
///
/// A queue that is core's `WorkQueue` has only to say how its calls begin: see [`WaitingRuntime`].
pub trait Waits: Subject {
    /// Whether calls run by themselves, as threads do, while the test does something else. The test
    /// then lets everything settle after each step, and is patient.
    const RUNS_BY_ITSELF: bool = false;
    /// Whether a call that waits can be cancelled, as a future is by dropping it.
    const CANCELS: bool = true;
    /// The shortest time that its timers can tell apart, at least a nanosecond. Histories are drawn
    /// in such short times, and in milliseconds.
    const GRAIN: Duration = Duration::from_nanos(1);

    /// How many calls can wait at once; nothing if any number can. One more is
    /// [refused](Answer::Refused).
    fn places(&self) -> Option<usize> {
        None
    }

    /// Begins a call and lets it run until it answers or waits. Answers no, and does nothing, if
    /// the queue has no such call.
    fn start(&mut self, id: CallId, call: Call) -> bool;

    /// Takes the first ready key, makes the call that completes it as told and waits for the next,
    /// and cancels that before it has run at all: the key is completed nevertheless. Answers no,
    /// and does nothing, if the queue has no such call. It is called only while a key is ready.
    fn next_unrun(&mut self, completion: Completion) -> bool {
        let _ = completion;
        false
    }

    /// Lets everything run that can, until every call has answered or sleeps and nobody whom the
    /// queue has woken has yet to look. Answers no if that does not come about; where calls run by
    /// themselves it is asked again.
    fn settle(&mut self) -> bool;

    /// Takes the answer of a call; nothing if it waits.
    fn answer(&mut self, id: CallId) -> Option<Answer<Self::Ticket>>;

    /// Cancels a call that has not answered, without letting it run.
    fn cancel(&mut self, id: CallId);

    /// Lets a call run although nobody has woken it, as happens to a future that is polled together
    /// with others, or has moved to another task.
    fn nudge(&mut self, id: CallId);
}

/// A [`Runtime`] that says how its calls begin. [`OnWorkQueue`] then [`Waits`].
///
/// A runtime of futures drives them with [`Futures`](super::Futures).
pub trait WaitingRuntime: Runtime {
    /// What keeps the calls that have begun.
    type Calls: Drive;
    /// As [`Waits::GRAIN`].
    const GRAIN: Duration = Duration::from_nanos(1);

    /// A call of the runtime's own, about to begin; nothing if the queue has no such call.
    fn begin(&self, call: Call) -> Option<<Self::Calls as Drive>::Begun>;

    /// The calls that have begun.
    fn calls(&mut self) -> &mut Self::Calls;

    /// As [`Waits::places`].
    fn places(&self) -> Option<usize> {
        None
    }

    /// As [`Waits::next_unrun`].
    fn next_unrun(&mut self, completion: Completion) -> bool {
        let _ = completion;
        false
    }
}

/// Keeps calls and lets them run, as [`Waits`] says of each method.
pub trait Drive {
    /// A call that is about to begin.
    type Begun;
    /// As [`Waits::RUNS_BY_ITSELF`].
    const RUNS_BY_ITSELF: bool;
    /// As [`Waits::CANCELS`].
    const CANCELS: bool;

    /// Lets a call begin.
    fn start(&mut self, id: CallId, begun: Self::Begun);
    /// As [`Waits::settle`].
    fn settle(&mut self) -> bool;
    /// As [`Waits::answer`].
    fn answer(&mut self, id: CallId) -> Option<Answer<Ticket>>;
    /// As [`Waits::cancel`].
    fn cancel(&mut self, id: CallId);
    /// As [`Waits::nudge`].
    fn nudge(&mut self, id: CallId);
}

impl<R: WaitingRuntime> Waits for OnWorkQueue<R> {
    const RUNS_BY_ITSELF: bool = R::Calls::RUNS_BY_ITSELF;
    const CANCELS: bool = R::Calls::CANCELS;
    const GRAIN: Duration = R::GRAIN;

    fn places(&self) -> Option<usize> {
        self.0.places()
    }

    fn start(&mut self, id: CallId, call: Call) -> bool {
        let Some(begun) = self.0.begin(call) else {
            return false;
        };
        self.0.calls().start(id, begun);
        true
    }

    fn next_unrun(&mut self, completion: Completion) -> bool {
        self.0.next_unrun(completion)
    }

    fn settle(&mut self) -> bool {
        self.0.calls().settle()
    }

    fn answer(&mut self, id: CallId) -> Option<Answer<Ticket>> {
        self.0.calls().answer(id)
    }

    fn cancel(&mut self, id: CallId) {
        self.0.calls().cancel(id);
    }

    fn nudge(&mut self, id: CallId) {
        self.0.calls().nudge(id);
    }
}
