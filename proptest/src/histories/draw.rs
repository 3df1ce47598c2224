//! Drawing histories until one fails, and making that one as short as it gets.

use std::cell::Cell;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{FileFailurePersistence, RngAlgorithm, TestError, TestRng, TestRunner};

use super::{Crowd, Failure, Looks, Operation, PATIENCE, bytes, check_within};
use crate::combinations::Combination;
use crate::subject::{Configuration, NewSubject, Subject, boxed};
use crate::watched::watched;

/// What histories are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Draw {
    /// Operations that never wait, over so many keys.
    Operations(Crowd),
    /// Calls that wait, and operations between them.
    Calls,
}

/// Checks a queue of one [combination](Combination) on so many drawn histories of operations over a
/// few keys, or of calls that wait.
///
/// # Errors
///
/// As [`run`].
pub fn run_combined(
    new: NewSubject,
    combination: &Combination,
    (draw, cases): (Draw, u32),
    regressions: &'static str,
) -> Result<(), String> {
    let combination = combination.clone();
    watched(HANGS_AFTER, move || {
        let unit = Duration::from_nanos(combination.unit);
        let steps = match draw {
            Draw::Operations(crowd) => bytes::operations(crowd, unit, combination.uses),
            Draw::Calls => bytes::calls_in(unit, combination.uses),
        };
        let drawn = (Just(combination.configuration.clone()), steps).boxed();
        let (_, mut search) = draw.search(new, Some(regressions));
        search.config.cases = cases;
        match search.shortest(&drawn, draw.looks()) {
            Some(found) => Err(format!("{combination}\n{}", found.report())),
            None => Ok(()),
        }
    })
}

/// A queue, and how it was used.
type History = (Configuration, Vec<Operation>);

/// The patience with threads while a failure is made shorter: if this is too short, a step is kept
/// that is not needed.
const PATIENCE_FOR_SHORTER: Duration = Duration::from_millis(300);
/// How long a failure is made shorter where threads have to be waited for.
const SHORTER_FOR: Duration = Duration::from_secs(20);
/// How long a step may take before the queue itself does not come back: longer than threads are
/// waited for.
pub(crate) const HANGS_AFTER: Duration = Duration::from_secs(30);

/// Checks `S` on as many drawn histories as proptest is configured to draw; on a quarter as many of
/// a large crowd, and on four times as many of calls, unless these run by themselves.
///
/// What was once found to fail is kept in the file `regressions`, and tried first from then on.
///
/// # Errors
///
/// If a history fails: a report of the shortest one that does. If calls run by themselves, of the
/// shortest that is found in 20 s.
///
/// # Panics
///
/// If the queue does not come back from a call, with the steps that led there.
pub fn run<S: Subject + 'static>(draw: Draw, regressions: &'static str) -> Result<(), String> {
    run_on(boxed::<S>, draw, regressions)
}

pub(crate) fn run_on(new: NewSubject, draw: Draw, regressions: &'static str) -> Result<(), String> {
    watched(HANGS_AFTER, move || {
        let (drawn, search) = draw.search(new, Some(regressions));
        let Some(found) = search.shortest(&drawn, draw.looks()) else {
            return Ok(());
        };
        // What calls answer tells more than what can be seen from outside.
        let clearer = match draw {
            Draw::Operations(_) => None,
            Draw::Calls => search.shortest(&drawn, &[Looks::Never]),
        };
        Err(clearer.unwrap_or(found).report())
    })
}

/// Looks for a history of calls that fails, among `drawn`, or among those that [`run`] draws; they
/// are the same each time. Makes it as short as it gets. This is for tests of tests: that a fault
/// is found, and what is reported of it.
pub fn find<S: Subject + 'static>(drawn: Option<BoxedStrategy<Vec<Operation>>>) -> Option<Failure> {
    let (any, search) = Draw::Calls.search(boxed::<S>, None);
    let drawn = drawn.map_or(any, |steps| (Just(bytes::setup()), steps).boxed());
    let found = search.shortest(&drawn, &[Looks::Never]);
    let found = found.or_else(|| search.shortest(&drawn, &[Looks::Last]))?;
    Some(found.failure)
}

impl Draw {
    /// To look at many keys takes longer than all else.
    fn looks(self) -> &'static [Looks] {
        match self {
            Self::Operations(Crowd::Few) => &[Looks::Always, Looks::Last],
            Self::Operations(Crowd::Many) | Self::Calls => &[Looks::Last],
        }
    }

    /// What is drawn, and how it is searched.
    fn search(
        self,
        new: NewSubject,
        regressions: Option<&'static str>,
    ) -> (BoxedStrategy<History>, Search) {
        let abilities = new(&Configuration::exponential()).abilities();
        let drawn = match self {
            Self::Operations(crowd) => bytes::queues_and_operations(crowd),
            Self::Calls => bytes::queues_and_calls(abilities.grain),
        };
        let mut config = ProptestConfig {
            failure_persistence: None,
            max_shrink_iters: 100_000,
            // A strategy forks its generator at every branch, which costs ChaCha more than a queue.
            rng_algorithm: RngAlgorithm::XorShift,
            ..ProptestConfig::default()
        };
        config.cases = match self {
            Self::Operations(Crowd::Few) => config.cases,
            Self::Operations(Crowd::Many) => config.cases.div_ceil(4),
            Self::Calls if abilities.runs_by_itself => config.cases,
            Self::Calls => config.cases.saturating_mul(4),
        };
        if let Some(file) = regressions {
            let kept = FileFailurePersistence::Direct(file);
            config.failure_persistence = Some(Box::new(kept));
        }
        let shorter_for = if abilities.runs_by_itself {
            SHORTER_FOR
        } else {
            Duration::MAX
        };
        let search = Search {
            new,
            config,
            is_same: regressions.is_none(),
            shorter_for,
        };
        (drawn, search)
    }
}

struct Search {
    new: NewSubject,
    config: ProptestConfig,
    /// The histories are the same each time.
    is_same: bool,
    shorter_for: Duration,
}

/// The shortest history that was found to fail, and how it does.
struct Shortest {
    history: History,
    failure: Failure,
}

impl Shortest {
    fn report(&self) -> String {
        let (setup, steps) = &self.history;
        let failure = &self.failure;
        format!("{failure}\n\nTo try it again: {setup:?}, {steps:?}")
    }
}

impl Search {
    /// Draws histories until one fails, looking in any of these ways, and makes it shorter.
    #[expect(clippy::panic, reason = "this is how a test fails")]
    fn shortest(&self, drawn: &BoxedStrategy<History>, looks: &[Looks]) -> Option<Shortest> {
        // Since when the history that has failed is made shorter.
        let since: Cell<Option<Instant>> = Cell::new(None);
        let fails = |setup: &Configuration, steps: &[Operation]| {
            let patience = match since.get() {
                // Once the time is over, no shorter history counts as failed.
                Some(since) if since.elapsed() > self.shorter_for => return None,
                Some(_) => PATIENCE_FOR_SHORTER,
                None => PATIENCE,
            };
            let check = |looks| check_within(self.new, setup, steps, looks, patience);
            let failure = looks.iter().find_map(|looks| check(*looks).err())?;
            since.set(since.get().or_else(|| Some(Instant::now())));
            Some(failure)
        };
        let mut runner = self.runner();
        let outcome = runner.run(drawn, |(setup, steps)| match fails(&setup, &steps) {
            Some(failure) => Err(TestCaseError::fail(failure.to_string())),
            None => Ok(()),
        });
        let (reason, (setup, steps)) = match outcome {
            Ok(()) => return None,
            Err(TestError::Fail(reason, value)) => (reason, value),
            Err(TestError::Abort(reason)) => panic!("{reason}"),
        };
        let steps = without_needless(steps, &|steps| fails(&setup, steps).is_some());
        let (setup, steps) = shorter(&mut runner, drawn, (setup, steps), &fails);
        since.set(Some(Instant::now()));
        let failure = fails(&setup, &steps).unwrap_or_else(|| Failure {
            wrong: format!("it failed once and then no more: {reason}"),
            ..Failure::default()
        });
        let history = (setup, steps);
        Some(Shortest { history, failure })
    }

    fn runner(&self) -> TestRunner {
        let config = self.config.clone();
        if self.is_same {
            let rng = TestRng::deterministic_rng(config.rng_algorithm);
            TestRunner::new_with_rng(config, rng)
        } else {
            TestRunner::new(config)
        }
    }
}

/// How many histories are drawn in search of a shorter one.
const SHORTER_MAX: u32 = 5_000;

/// A shorter history that fails, if one is soon found. proptest takes steps away and makes them
/// simpler; where several steps stand for a single other one, it takes luck.
fn shorter(
    runner: &mut TestRunner,
    drawn: &BoxedStrategy<History>,
    mut shortest: History,
    fails: &dyn Fn(&Configuration, &[Operation]) -> Option<Failure>,
) -> History {
    for _ in 0..SHORTER_MAX {
        let Ok(tree) = drawn.new_tree(runner) else {
            break;
        };
        let (setup, mut steps) = tree.current();
        steps.truncate(shortest.1.len().saturating_sub(1));
        if fails(&setup, &steps).is_some() {
            let steps = without_needless(steps, &|steps| fails(&setup, steps).is_some());
            shortest = (setup, steps);
        }
    }
    shortest
}

/// Leaves out every step without which the history still fails. proptest does so before it makes
/// the steps simpler, and not again after.
fn without_needless(
    mut steps: Vec<Operation>,
    fails: &dyn Fn(&[Operation]) -> bool,
) -> Vec<Operation> {
    let mut index = steps.len();
    while let Some(last) = index.checked_sub(1) {
        index = last;
        let needed = steps.remove(index);
        if fails(&steps) {
            // Something before it may be needless now.
            index = steps.len();
        } else {
            steps.insert(index, needed);
        }
    }
    steps
}
