//! What is done to a queue while workers run, and how each run ends.

use requeue_proptest::histories::Operation;
use requeue_proptest::proptest::collection::vec;
use requeue_proptest::proptest::option;
use requeue_proptest::proptest::prelude::*;
use requeue_proptest::proptest::sample::select;
use requeue_proptest::subject::{Call, Drain, Key};
use requeue_schedules::SECOND;
use requeue_std::Action;

/// The keys are less than this.
pub(crate) const KEYS: usize = 4;

/// What is drawn.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// The keys that each producer adds.
    pub(crate) adds: Vec<Vec<Key>>,
    /// How the runs of each key end; well after that.
    pub(crate) endings: Vec<Vec<Ending>>,
    /// How many calls of `run` there are at once.
    pub(crate) runs: usize,
    /// How many workers each has at first, and which numbers are asked for later.
    pub(crate) workers: usize,
    pub(crate) changes: Vec<usize>,
    /// What ends them early. Otherwise they are shut down when nothing moves any more.
    pub(crate) stops: Vec<Stop>,
    /// How many seconds they may take to end.
    pub(crate) grace: Option<u32>,
    /// A run that fails is not retried.
    pub(crate) gives_up: bool,
    /// After how many threads none can be started any more.
    pub(crate) refused: Option<usize>,
}

/// How a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Is(Action),
    /// Well, after it has added its own key and the next.
    Adds,
    Failure,
    Panic,
    /// Once it is overdue.
    Hang,
}

/// What ends workers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Stop {
    /// The token of the first run, where there is one.
    Token,
    /// Shuts the queue down, waits for that, or drops the first run, where that can be.
    Do(Operation),
}

/// Drops the first call that waits, which is that of a run while there is one.
pub(crate) const DROPPED: Stop = Stop::Do(Operation::Cancel(0));

/// Draws plans.
pub(crate) fn plans() -> impl Strategy<Value = Plan> {
    let endings = select(vec![
        Ending::Is(Action::Success),
        Ending::Is(Action::Success),
        Ending::Is(Action::GiveUp),
        Ending::Adds,
        Ending::Is(Action::RequeueAfter(SECOND)),
        Ending::Is(Action::Snooze(SECOND)),
        Ending::Failure,
        Ending::Panic,
        Ending::Hang,
    ]);
    let stops = select(vec![
        Stop::Do(Operation::ShutDown),
        Stop::Token,
        DROPPED,
        Stop::Do(Operation::Start(Call::Drain)),
        Stop::Do(Operation::Drained(Drain(0))),
    ]);
    let work = (
        vec(vec(0..KEYS as Key, 1..5), 1..=2),
        vec(vec(endings, 0..3), KEYS),
        1..=2usize,
    );
    let workers = (0..=2usize, vec(0..=2usize, 0..5));
    let ends = (
        vec(stops, 0..3),
        option::of(0..=1u32),
        any::<bool>(),
        option::weighted(0.2, 1..3usize),
    );
    (work, workers, ends).prop_map(|(work, workers, ends)| Plan {
        adds: work.0,
        endings: work.1,
        runs: work.2,
        workers: workers.0,
        changes: workers.1,
        stops: ends.0,
        grace: ends.1,
        gives_up: ends.2,
        refused: ends.3.filter(|_| work.2 == 1),
    })
}
