//! Histories of calls that overlap, and whether some order of the calls explains every answer.
//!
//! A queue that is shared is **linearizable** if each call can be said to have happened at one
//! point between its beginning and its end, so that the queue, asked in that order by one thread,
//! would have answered the same. This is what a lock promises, and what goes wrong once a call
//! looks at something before it takes the lock, or in two steps.
//!
//! A [`Recorder`] writes down who called what and when; [`check`] looks for the order. It is the
//! search of Wing and Gong ("Testing and verifying concurrent objects", 1993) with the memory that
//! Lowe gave it ("Testing for linearizability", 2017): a set of calls that has led to a state once
//! is not tried again. The search is bounded, and says so when it gives up: it never passes what it
//! has not decided.
//!
//! A history that nothing explains is told as a [chart](Failure::Inexplicable) of threads against
//! time, in which the calls that contradict each other are marked.
//!
//! The rest is about work queues: [`QueueSpec`] is the reference model as a [`Specification`], and
//! [`run`] draws programs for several threads or tasks, runs them on a [`Concurrent`] queue, and
//! checks what they have seen. A call that never comes back is found as well: a sleeper that looks
//! at the queue, is woken, and only then goes to sleep.
//!
//! # Examples
//!
//! A register that two threads share:
//!
//! ```
//! use requeue_proptest::linear::{Failure, Recorder, Specification, check};
//!
//! #[derive(Clone, PartialEq, Eq, Hash)]
//! struct Register(u8);
//!
//! #[derive(Clone, Debug)]
//! enum Op {
//!     Write(u8),
//!     Read,
//! }
//!
//! impl Specification for Register {
//!     type Op = Op;
//!     type Answer = u8;
//!
//!     fn step(&mut self, op: &Op, answer: Option<&u8>) -> bool {
//!         if let Op::Write(value) = *op {
//!             self.0 = value;
//!         }
//!         answer.is_none_or(|answer| *answer == self.0)
//!     }
//! }
//!
//! let recorder = Recorder::new(2);
//! let write = recorder.call(0, Op::Write(7));
//! let read = recorder.call(1, Op::Read);
//! recorder.answer(read, 7);
//! let again = recorder.call(1, Op::Read);
//! recorder.answer(again, 0);
//! recorder.answer(write, 7);
//!
//! // The write had happened, and then it had not.
//! let failure = check(&Register(0), &recorder.history(), 1000).unwrap_err();
//! assert!(matches!(failure, Failure::Inexplicable(_)));
//! ```

mod chart;
mod concurrent;
mod history;
mod in_turns;
mod minimise;
mod program;
mod queue;
mod run;
mod search;
mod tasks;
mod threads;
mod turns;

use std::fmt::{self, Debug};
use std::hash::Hash;

pub use concurrent::{Concurrent, Runs, Work, without_waiting};
pub use history::{Call, CallId, History, Recorder};
pub use in_turns::run_in_turns;
pub use program::{Program, Step, programs, seeded_programs};
pub use queue::{Answer, Op, QueueSpec};
pub use run::{Trial, run};
pub use tasks::SharedTasks;
pub use threads::SharedThreads;

/// What an object answers if one thread uses it. The implementing type is its state.
///
/// Two states that no later call can tell apart should be equal: the search is the quicker for it.
pub trait Specification: Clone + Eq + Hash {
    /// A call.
    type Op: Clone + Debug;
    /// What a call may answer.
    type Answer: Clone + Debug;

    /// Does `op`, if the object may answer so in this state. If `answer` is nothing, then it is not
    /// known what was answered: any answer will do.
    ///
    /// Answers `false` if the object may not answer so, or if the call would wait. The state is not
    /// used any more then.
    fn step(&mut self, op: &Self::Op, answer: Option<&Self::Answer>) -> bool;
}

/// Why a history does not pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// No order explains the answers. The text shows the shortest beginning of the history of which
    /// that is true, a line for each beginning (`┌`) and end (`└`) of a call. Calls marked with `!`
    /// contradict each other, whatever the others have answered or done.
    Inexplicable(String),
    /// The search was given up after so many states: whether an order explains the answers is not
    /// known.
    Undecided(usize),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inexplicable(chart) => write!(f, "no order explains the answers\n{chart}"),
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

/// Looks for an order of the calls that explains every answer, beginning in the state `initial`,
/// and answers it. Calls that were never answered stand in it if they are needed.
///
/// Remembers no more than `states_max` states, and so needs time and memory for that many.
///
/// # Errors
///
/// [`Failure`] if there is no such order, or if it was not found in so many states.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use requeue_core::Added;
/// use requeue_proptest::linear::{Answer, Op, QueueSpec, Recorder, check};
/// use requeue_proptest::subject::Setup;
///
/// let recorder = Recorder::new(2);
/// let add = recorder.call(0, Op::Add(7));
/// let get = recorder.call(1, Op::TryGet(0));
/// recorder.answer(add, Answer::Added(Ok(Added::Ready)));
/// recorder.answer(get, Answer::Work(vec![(7, 0)]));
///
/// let empty = QueueSpec::new(&Setup::exponential(), None);
/// let order = check(&empty, &recorder.history(), 1000)?;
/// assert_eq!(order, [add, get]);
/// # Ok::<(), requeue_proptest::linear::Failure>(())
/// ```
pub fn check<S: Specification>(
    initial: &S,
    history: &History<S::Op, S::Answer>,
    states_max: usize,
) -> Result<Vec<CallId>, Failure> {
    use search::Stuck;
    match search::search(initial, history, states_max) {
        Ok(order) => Ok(order),
        Err(Stuck::Undecided) => Err(Failure::Undecided(states_max)),
        Err(Stuck::Inexplicable) => {
            let core = minimise::minimise(initial, history, states_max);
            Err(Failure::Inexplicable(chart::draw(history, &core)))
        }
    }
}
