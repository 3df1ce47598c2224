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

/// Checks a queue on drawn histories, as many as proptest is configured to draw. It draws a quarter
/// as many of a large crowd, and four times as many of calls that the test polls.
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
pub fn run(new: NewSubject, draw: Draw, regressions: &'static str) -> Result<(), String> {
    watched(HANGS_AFTER, move || {
        let search = draw.search(new, Some(regressions));
        let Some(found) = search.shortest(draw.looks()) else {
            return Ok(());
        };
        // What calls answer tells more than what can be seen from outside.
        let clearer = match draw {
            Draw::Operations(_) => None,
            Draw::Calls => search.shortest(&[Looks::Never]),
        };
        Err(report(&clearer.unwrap_or(found)))
    })
}

/// Checks a queue of one [combination](Combination) on `cases` drawn histories.
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
        let mut search = draw.search(new, Some(regressions));
        search.drawn = (Just(combination.configuration.clone()), steps).boxed();
        search.config.cases = cases;
        match search.shortest(draw.looks()) {
            Some(found) => Err(format!("{combination}\n{}", report(&found))),
            None => Ok(()),
        }
    })
}

/// Looks for a history of calls that fails, among `drawn`, or among those that [`run`] draws; they
/// are the same each time. Makes it as short as it gets. This is for tests of tests: that a fault
/// is found, and what is reported of it.
pub fn find<S: Subject + 'static>(drawn: Option<BoxedStrategy<Vec<Operation>>>) -> Option<Failure> {
    let mut search = Draw::Calls.search(boxed::<S>, None);
    if let Some(steps) = drawn {
        search.drawn = (Just(bytes::setup()), steps).boxed();
    }
    let found = search.shortest(&[Looks::Never]);
    let (_, failure) = found.or_else(|| search.shortest(&[Looks::Last]))?;
    Some(failure)
}

impl Draw {
    /// To look at many keys takes longer than all else.
    fn looks(self) -> &'static [Looks] {
        match self {
            Self::Operations(Crowd::Few) => &[Looks::Always, Looks::Last],
            Self::Operations(Crowd::Many) | Self::Calls => &[Looks::Last],
        }
    }

    /// What is drawn, and how it is searched: for what was not known yet, or always for the same.
    fn search(self, new: NewSubject, regressions: Option<&'static str>) -> Search {
        let abilities = new(&Configuration::exponential()).abilities();
        let any = ProptestConfig::default();
        let (drawn, cases) = match self {
            Self::Operations(Crowd::Few) => (bytes::queues_and_operations(Crowd::Few), any.cases),
            Self::Operations(crowd) => (bytes::queues_and_operations(crowd), any.cases.div_ceil(4)),
            Self::Calls if abilities.runs_by_itself => {
                (bytes::queues_and_calls(abilities.grain), any.cases)
            }
            Self::Calls => {
                let cases = any.cases.saturating_mul(4);
                (bytes::queues_and_calls(abilities.grain), cases)
            }
        };
        let config = ProptestConfig {
            cases,
            failure_persistence: regressions
                .map(|file| Box::new(FileFailurePersistence::Direct(file)) as _),
            max_shrink_iters: 100_000,
            // A strategy forks its generator at every branch, which costs ChaCha more than a queue.
            rng_algorithm: RngAlgorithm::XorShift,
            ..any
        };
        let shorter_for = match abilities.runs_by_itself {
            true => SHORTER_FOR,
            false => Duration::MAX,
        };
        let is_same = regressions.is_none();
        Search {
            new,
            drawn,
            config,
            is_same,
            shorter_for,
        }
    }
}

/// How a history that fails is searched for.
struct Search {
    new: NewSubject,
    drawn: BoxedStrategy<History>,
    config: ProptestConfig,
    /// The histories are the same each time.
    is_same: bool,
    shorter_for: Duration,
}

/// What is reported of the shortest history that was found to fail, and of how it does.
fn report(((setup, steps), failure): &(History, Failure)) -> String {
    format!("{failure}\n\nTo try it again: {setup:?}, {steps:?}")
}

/// How many histories are drawn in search of a shorter one.
const SHORTER_MAX: u32 = 5_000;

impl Search {
    /// Draws histories until one fails, looking in any of these ways, and makes it shorter.
    #[expect(clippy::panic, reason = "this is how a test fails")]
    fn shortest(&self, looks: &[Looks]) -> Option<(History, Failure)> {
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
        let config = self.config.clone();
        let mut runner = if self.is_same {
            let rng = TestRng::deterministic_rng(config.rng_algorithm);
            TestRunner::new_with_rng(config, rng)
        } else {
            TestRunner::new(config)
        };
        let outcome = runner.run(&self.drawn, |(setup, steps)| match fails(&setup, &steps) {
            Some(failure) => Err(TestCaseError::fail(failure.to_string())),
            None => Ok(()),
        });
        let (reason, (mut setup, mut steps)) = match outcome {
            Ok(()) => return None,
            Err(TestError::Fail(reason, value)) => (reason, value),
            Err(TestError::Abort(reason)) => panic!("{reason}"),
        };
        without_needless(&mut steps, |steps| fails(&setup, steps).is_some());
        // proptest takes steps away and makes them simpler. Where several steps stand for a single
        // other one, it takes luck.
        for _ in 0..SHORTER_MAX {
            let Ok(tree) = self.drawn.new_tree(&mut runner) else {
                break;
            };
            let (other, mut fewer) = tree.current();
            fewer.truncate(steps.len().saturating_sub(1));
            if fails(&other, &fewer).is_some() {
                without_needless(&mut fewer, |steps| fails(&other, steps).is_some());
                (setup, steps) = (other, fewer);
            }
        }
        since.set(Some(Instant::now()));
        let failure = fails(&setup, &steps).unwrap_or_else(|| Failure {
            wrong: format!("it failed once and then no more: {reason}"),
            ..Failure::default()
        });
        Some(((setup, steps), failure))
    }
}

/// Leaves out every step without which the history still fails. proptest does so before it makes
/// the steps simpler, and not again after.
fn without_needless(steps: &mut Vec<Operation>, fails: impl Fn(&[Operation]) -> bool) {
    let mut index = steps.len();
    while let Some(last) = index.checked_sub(1) {
        index = last;
        let needed = steps.remove(index);
        if fails(steps) {
            // Something before it may be needless now.
            index = steps.len();
        } else {
            steps.insert(index, needed);
        }
    }
}
