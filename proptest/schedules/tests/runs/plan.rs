//! What is done to a queue while workers run, and how each run ends.

use std::fmt;

use requeue_proptest::limiter::LimiterSpec;
use requeue_proptest::proptest::collection::vec;
use requeue_proptest::proptest::option;
use requeue_proptest::proptest::prelude::*;
use requeue_proptest::proptest::sample::select;
use requeue_proptest::subject::{Cap, Configuration, Key};
use requeue_schedules::{SECOND, Shares, drawn};

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
    Success,
    GiveUp,
    /// Well, after it has added its own key and the next.
    Adds,
    Requeue,
    Snooze,
    Failure,
    Panic,
    /// Once it is overdue.
    Hang,
}

/// What ends workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    ShutDown,
    /// The token of the first run, where there is one.
    Token,
    /// The first run is dropped, where that can be.
    Dropped,
    Drain,
    /// Nothing: this waits until they have ended.
    WaitDrained,
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:#?}")
    }
}

impl Plan {
    /// Whether the last run of a key sees all of its changes, also if it is handed back.
    pub(crate) fn does_all(&self) -> bool {
        self.grace.is_none() && !self.stops.contains(&Stop::Dropped) && self.refused.is_none()
    }
}

/// Draws plans, the same for the same seed.
pub(crate) fn plans(seed: u64, count: usize) -> impl Iterator<Item = Plan> {
    let keys = 0..KEYS as Key;
    let endings = select(vec![
        Ending::Success,
        Ending::Success,
        Ending::GiveUp,
        Ending::Adds,
        Ending::Requeue,
        Ending::Snooze,
        Ending::Failure,
        Ending::Panic,
        Ending::Hang,
    ]);
    let stops = select(vec![
        Stop::ShutDown,
        Stop::Token,
        Stop::Dropped,
        Stop::Drain,
        Stop::WaitDrained,
    ]);
    let work = (
        vec(vec(keys, 1..5), 1..=2),
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
    let plan = (work, workers, ends).prop_map(|(work, workers, ends)| Plan {
        adds: work.0,
        endings: work.1,
        runs: work.2,
        workers: workers.0,
        changes: workers.1,
        stops: ends.0,
        grace: ends.1,
        gives_up: ends.2,
        refused: ends.3.filter(|_| work.2 == 1),
    });
    drawn(plan, seed, count)
}

/// The queue, where a failed key is retried after a second.
pub(crate) fn setup<Q: Shares>() -> Configuration {
    let base_ns = SECOND.as_nanos() as u64;
    let max_ns = base_ns;
    Configuration {
        storage: Q::CAPACITY,
        ..Configuration::new(LimiterSpec::Exponential { base_ns, max_ns })
    }
}

/// One key of each group is active at most.
pub(crate) const ONE: Cap = Cap {
    max_active: Some(1),
    weight: 1,
    rate: None,
};
