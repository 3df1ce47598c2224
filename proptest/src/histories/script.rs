//! Histories that are written by hand.

use std::time::Duration;

use super::bytes::setup;
use super::{Looks, Operation, check_within};
use crate::operation::Operate;
use crate::subject::{Call, CallId, Configuration, NewSubject, Subject};

/// A history of calls that is a case of the suite, on a queue whose failed keys wait 1 ms, 2 ms and
/// so on.
pub(crate) struct CallScript {
    setup: Configuration,
    steps: Vec<Operation>,
}

impl CallScript {
    pub(crate) fn new(steps: impl IntoIterator<Item = Operation>) -> Self {
        Self::on(setup(), steps)
    }

    /// The same on another queue.
    pub(crate) fn on(setup: Configuration, steps: impl IntoIterator<Item = Operation>) -> Self {
        Self {
            setup,
            steps: steps.into_iter().collect(),
        }
    }

    /// Plays the script. Threads are waited for with this patience.
    ///
    /// # Panics
    ///
    /// If it fails.
    #[expect(clippy::panic, reason = "this is how a test fails")]
    pub(crate) fn play(&self, new: NewSubject, patience: Duration) {
        if let Err(failure) = check_within(new, &self.setup, &self.steps, Looks::Last, patience) {
            panic!("{failure}");
        }
    }
}

/// Why a script cannot be played: what the queue lacks.
pub(crate) fn skipped(script: &CallScript, new: NewSubject) -> Option<String> {
    let abilities = new(&setup()).abilities();
    let any = |asks: fn(&Operation) -> bool| script.steps.iter().any(asks);
    if !abilities.cancels
        && any(|step| matches!(step, Operation::Cancel(_) | Operation::NextUnrun(_)))
    {
        return Some(String::from("its calls cannot be cancelled"));
    }
    if abilities.runs_by_itself && any(|step| matches!(step, Operation::Nudge(_))) {
        return Some(String::from("its calls run by themselves"));
    }
    if let Some(reason) = without_calls(new) {
        return Some(reason);
    }
    script.steps.iter().find_map(|step| match step {
        Operation::Start(call) if !starts(new, *call) => {
            Some(format!("the queue has no call {}", call.name()))
        }
        Operation::NextUnrun(how) if !with_a_key(new).next_unrun(*how) => {
            Some(String::from("the binding does not override next_unrun"))
        }
        _ => None,
    })
}

/// Says so if a queue leaves waiting to others.
pub(crate) fn without_calls(new: NewSubject) -> Option<String> {
    (!starts(new, Call::Get)).then(|| String::from("the queue has no calls that wait"))
}

/// Whether a queue has such a call: tried on one of which nothing else is asked.
fn starts(new: NewSubject, call: Call) -> bool {
    const ONLY: CallId = 1;
    let mut subject = with_a_key(new);
    let starts = subject.start(ONLY, call);
    if subject.answer(ONLY).is_none() {
        subject.cancel(ONLY);
    }
    starts
}

fn with_a_key(new: NewSubject) -> Box<dyn Subject> {
    let mut subject = new(&setup());
    // A key that is refused is missed by the case.
    let _ = subject.add(1);
    subject
}
