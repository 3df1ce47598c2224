//! Whether a history has an order.

use std::fmt::{self, Debug};
use std::hash::Hash;

use crate::{CallId, History, minimise, search};

/// What an object does if one thread uses it. The implementing type is its state.
///
/// Two states that no later call can tell apart should be equal, because the search is quicker
/// then.
pub trait Specification: Clone + Eq + Hash {
    /// A call.
    type Request: Clone + Debug;
    /// What a call returns.
    type Response: Clone + Debug;

    /// Applies `request`, and returns whether the object may respond so in this state. `None`
    /// stands for a response that is not known: any will do.
    ///
    /// Returns `false` also if the call would wait. The state is not used any more then.
    fn step(&mut self, request: &Self::Request, response: Option<&Self::Response>) -> bool;
}

/// Why a history does not pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// No order explains the responses. The text shows the shortest beginning of the history of
    /// which that is true, a line for each call and each response. Calls marked with `!` contradict
    /// each other, whatever the others did or returned.
    Inexplicable(String),
    /// The search was given up after so many states, and has decided nothing.
    Undecided(usize),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inexplicable(lines) => write!(f, "no order explains the responses\n{lines}"),
            Self::Undecided(states) => {
                write!(
                    f,
                    "given up after {states} states: neither passed nor failed"
                )
            }
        }
    }
}

impl std::error::Error for Failure {}

/// Returns an order of the calls that explains every response, beginning in the state `initial`.
/// Calls that never returned are part of it if they are needed.
///
/// Remembers `states_max` states at most, and takes time and memory for that many.
///
/// # Errors
///
/// [`Failure`] if there is no such order, or if it was not found in so many states.
///
/// # Examples
///
/// ```
/// use requeue_core::Added;
/// use requeue_linear::{QueueSpec, Recorder, check};
/// use requeue_proptest::histories::{Answer, Operation};
/// use requeue_proptest::subject::{Configuration, Handed, Ticket};
///
/// let recorder = Recorder::new(2);
/// let add = recorder.call(0, Operation::Add(7));
/// let get = recorder.call(1, Operation::TryGet);
/// recorder.returned(add, Answer::Added(Ok(Added::Ready)));
/// let ticket = Ticket { key: 7, run: 1 };
/// let handed = Handed { key: 7, ticket, failures: 0, priority: 0, timed_out: false };
/// recorder.returned(get, Answer::Work(Some(handed)));
///
/// let empty = QueueSpec::new(&Configuration::exponential());
/// let order = check(&empty, &recorder.history(), 1000)?;
/// assert_eq!(order, [add, get]);
/// # Ok::<(), requeue_linear::Failure>(())
/// ```
pub fn check<S: Specification>(
    initial: &S,
    history: &History<S::Request, S::Response>,
    states_max: usize,
) -> Result<Vec<CallId>, Failure> {
    use search::Stuck;
    match search::search(initial, history, states_max) {
        Ok(order) => Ok(order),
        Err(Stuck::Undecided) => Err(Failure::Undecided(states_max)),
        Err(Stuck::Inexplicable) => {
            let core = minimise::minimise(initial, history, states_max);
            let beginning = minimise::up_to(history, core.end);
            Err(Failure::Inexplicable(lines(&beginning, &core.calls)))
        }
    }
}

/// A line for each call and each response, in the order of time. Some calls are marked.
pub(crate) fn lines<O: Debug, A: Debug>(history: &History<O, A>, marked: &[CallId]) -> String {
    let mut events = Vec::new();
    for (id, call) in history.calls() {
        let thread = id.thread;
        let mark = if marked.contains(&id) { "!" } else { " " };
        let request = &call.request;
        events.push((
            call.called,
            format!("{mark} thread {thread}: {request:?}\n"),
        ));
        if let Some(at) = call.returned {
            let response = call.response.as_ref();
            let response = response.map_or("not known".into(), |it| format!("{it:?}"));
            events.push((at, format!("{mark} thread {thread}:   -> {response}\n")));
        }
    }
    events.sort();
    events.into_iter().map(|(_, line)| line).collect()
}
