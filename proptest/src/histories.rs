//! Histories of calls that wait, on a queue whose own waiting is driven step by step.
//!
//! [`suite`](crate::suite) draws what one thread does that never waits. Here calls begin, wait, are
//! woken, give up and are cancelled, in the runtime's own way, between all that: histories are
//! drawn, or are scripts of [`conformance`](mod@crate::conformance). After each step the model says
//! which calls have to have answered, and what; **which** of those that wait is served a runtime
//! may choose.

mod blame;
mod drawn;
mod judge;
mod run;

use std::cell::Cell;
use std::time::Duration;

use proptest::strategy::{Just, Strategy};
use requeue_core::Completion;

use crate::caught::guarded;
use crate::conformance::not_tried;
use crate::subject::{Call, Key, Setup, Waits};
use crate::suite::draw::{self, Draws, Shortest};
use crate::suite::{Failure, Op};
use crate::watched::{begins, begins_anew, watched};

pub use drawn::histories;

/// One step of a history. A `u8` picks one of the calls that wait; where there is none nothing
/// happens.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Does what does not wait. The operations [`Op::Get`], [`Op::GetMany`], [`Op::Next`] and those
    /// of their sleepers have no place here.
    Do(Op),
    /// Begins a call.
    Start(Call),
    /// Makes a call that completes a key and waits for the next, and drops it before it has run.
    NextUnrun(Completion),
    /// A call that waits is cancelled.
    Cancel(u8),
    /// A call that waits is let run although nobody has woken it.
    Nudge(u8),
    /// Everything runs that can.
    Settle,
}

/// How long threads are waited for that should have answered, before it is a failure.
const PATIENCE: Duration = Duration::from_secs(20);
/// The same while a failure is made shorter: if this is too short, a step is kept that is not
/// needed.
const PATIENCE_FOR_SHORTER: Duration = Duration::from_millis(300);
/// How long a failure is made shorter where threads have to be waited for.
const SHORTER_FOR: Duration = Duration::from_secs(20);
/// How long a step may take before the queue itself does not come back: longer than threads are
/// waited for.
const HANGS_AFTER: Duration = Duration::from_secs(30);

/// Plays `steps` on a new `S`, beside a model of it. In the end everything settles, and all who
/// wait are sent home by a shutdown.
///
/// # Errors
///
/// [`Failure`] where they part: where a call should have answered and has not, or otherwise; or
/// where an invariant of the queue does not hold.
///
/// # Examples
///
/// ```
/// use requeue_proptest::histories::{Step, check};
/// use requeue_proptest::subject::{Call, OnWorkQueue, Setup, Tasks};
/// use requeue_proptest::suite::Op;
///
/// let steps = [
///     Step::Start(Call::Get),
///     Step::Start(Call::Get),
///     Step::Do(Op::Add(1)),
///     // The first has been woken, and goes away without having looked.
///     Step::Cancel(0),
///     Step::Settle,
/// ];
/// check::<OnWorkQueue<Tasks>>(&Setup::exponential(), &steps)?;
/// # Ok::<(), requeue_proptest::suite::Failure>(())
/// ```
pub fn check<S: Waits>(setup: &Setup, steps: &[Step]) -> Result<(), Failure> {
    check_so::<S>(setup, steps, Sight::InTheEnd, PATIENCE).map(drop)
}

/// Whether everything is compared in the end that can be seen from outside. What calls answer tells
/// more, so a history is first looked for that fails by that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sight {
    None,
    InTheEnd,
}

/// Answers which calls the queue was asked for and does not have.
fn check_so<S: Waits>(
    setup: &Setup,
    steps: &[Step],
    sight: Sight,
    patience: Duration,
) -> Result<Vec<Call>, Failure> {
    let keys = steps.iter().map(Step::highest_key).max().unwrap_or(0);
    let mut run = run::Run::<S>::new(setup, keys, patience);
    begins_anew();
    for step in steps {
        begins(|| format!("{step:?}"));
        let outcome = guarded(|| run.step(step));
        outcome.unwrap_or_else(|panic| Err(run.panicked(&format!("{step:?}"), &panic)))?;
    }
    begins(|| String::from("in the end"));
    guarded(|| run.finish(sight))
        .unwrap_or_else(|panic| Err(run.panicked("in the end", &panic)))?;
    Ok(run.missing)
}

/// Checks `S` on as many drawn histories as proptest is configured to draw; on four times as many
/// if none of its calls runs by itself.
///
/// What was once found to fail is kept in the file `regressions`, and tried first from then on.
///
/// # Panics
///
/// If a history fails, with the shortest one that does, told as a story; where calls run by
/// themselves, with the shortest that is found in 20 s. If the queue does not come back from a
/// call, with the steps that led there.
pub fn run<S: Waits + 'static>(regressions: &'static str) {
    watched(HANGS_AFTER, move || run_here::<S>(regressions));
}

fn run_here<S: Waits>(regressions: &'static str) {
    let draws = if S::RUNS_BY_ITSELF {
        Draws::Fresh(regressions)
    } else {
        Draws::FreshAndMany(regressions)
    };
    if let Some(shortest) = shortest::<S>(draws, &drawn::histories_of::<S>()) {
        shortest.tell();
    }
}

/// Looks among drawn histories, which are the same each time, for one that fails, and makes it as
/// short as it gets. This is for tests of tests: that a fault is found, and what is told of it.
pub fn find<S: Waits>(among: &impl Strategy<Value = Vec<Step>>) -> Option<Failure> {
    let shortest = shortest::<S>(Draws::Same, &(setups(), among))?;
    Some(shortest.failure)
}

/// The same for the histories that [`run`] draws.
pub fn find_any<S: Waits>() -> Option<Failure> {
    let shortest = shortest::<S>(Draws::Same, &drawn::histories_of::<S>())?;
    Some(shortest.failure)
}

fn shortest<S: Waits>(
    draws: Draws,
    drawn: &impl Strategy<Value = (Setup, Vec<Step>)>,
) -> Option<Shortest<Step>> {
    let shorter_for = if S::RUNS_BY_ITSELF {
        SHORTER_FOR
    } else {
        Duration::MAX
    };
    [Sight::None, Sight::InTheEnd]
        .into_iter()
        .find_map(|sight| {
            let patience = Cell::new(PATIENCE);
            let fails = |setup: &Setup, steps: &[Step]| {
                let failure = check_so::<S>(setup, steps, sight, patience.get()).err()?;
                patience.set(PATIENCE_FOR_SHORTER);
                Some(failure)
            };
            draw::shortest(draws, shorter_for, drawn, fails)
        })
}

impl Step {
    fn highest_key(&self) -> Key {
        match self {
            Self::Do(op) => op.highest_key(),
            _ => 0,
        }
    }
}

/// A history that is a case of the suite, on a queue whose failed keys wait 1 ms, 2 ms and so on.
pub(crate) struct Script {
    steps: Vec<Step>,
}

impl Script {
    pub(crate) fn new(steps: impl IntoIterator<Item = Step>) -> Self {
        Self {
            steps: steps.into_iter().collect(),
        }
    }

    /// Plays the script, and tells it if `S` cannot do everything that it asks for.
    ///
    /// # Panics
    ///
    /// If it fails.
    #[expect(clippy::panic, reason = "this is how a test fails")]
    pub(crate) fn play<S: Waits>(&self) {
        let cancels = |step: &Step| matches!(step, Step::Cancel(_) | Step::NextUnrun(_));
        if !S::CANCELS && self.steps.iter().any(cancels) {
            return not_tried("its calls cannot be cancelled");
        }
        let nudges = |step: &Step| matches!(step, Step::Nudge(_));
        if S::RUNS_BY_ITSELF && self.steps.iter().any(nudges) {
            return not_tried("its calls run by themselves");
        }
        match check_so::<S>(&setup(), &self.steps, Sight::InTheEnd, PATIENCE) {
            Ok(missing) => {
                if let Some(call) = missing.first() {
                    not_tried(&format!("the queue has no call {call:?}"));
                }
            }
            Err(mut failure) => {
                // The case is about a rule of its own.
                failure.rule = None;
                panic!("{failure}");
            }
        }
    }
}

fn setup() -> Setup {
    drawn::setup_in(Duration::from_millis(1))
}

/// Queues of all kinds that matter to those who wait.
fn setups() -> impl Strategy<Value = Setup> {
    Just(setup())
}
