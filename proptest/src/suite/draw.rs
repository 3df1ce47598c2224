//! Drawing sequences until one fails, and making that one as short as it gets.

use std::cell::Cell;
use std::fmt::Debug;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{FileFailurePersistence, RngAlgorithm, TestError, TestRng, TestRunner};

use super::Failure;
use crate::subject::Setup;

/// The shortest sequence of steps that was found to fail, and how it does.
pub(crate) struct Shortest<T> {
    pub(crate) setup: Setup,
    pub(crate) steps: Vec<T>,
    pub(crate) failure: Failure,
}

impl<T: Debug> Shortest<T> {
    /// Fails the test with it.
    #[expect(clippy::panic, reason = "this is how a test fails")]
    pub(crate) fn tell(&self) -> ! {
        let Self {
            setup,
            steps,
            failure,
        } = self;
        panic!("{failure}\n\nTo try it again: {setup:?}, {steps:?}");
    }
}

/// Where sequences come from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Draws {
    /// Others each time, as many as proptest is configured to draw. What was once found to fail is
    /// kept in this file, and tried first from then on.
    Fresh(&'static str),
    /// A quarter as many, where each takes long.
    FreshButFew(&'static str),
    /// Four times as many, where each is soon over.
    FreshAndMany(&'static str),
    /// The same each time, and many.
    Same,
}

/// Draws sequences until one fails, and makes that shorter for as long as `shorter_for`.
#[expect(clippy::panic, reason = "this is how a test fails")]
pub(crate) fn shortest<T: Clone + Debug>(
    draws: Draws,
    shorter_for: Duration,
    drawn: impl Strategy<Value = (Setup, Vec<T>)>,
    fails: impl Fn(&Setup, &[T]) -> Option<Failure>,
) -> Option<Shortest<T>> {
    let mut runner = runner(draws);
    let since: Cell<Option<Instant>> = Cell::new(None);
    // Once the time is over nothing shorter is said to fail.
    let fails_in_time = |setup: &Setup, steps: &[T]| {
        if since
            .get()
            .is_some_and(|since| since.elapsed() > shorter_for)
        {
            return None;
        }
        let failure = fails(setup, steps)?;
        since.set(since.get().or_else(|| Some(Instant::now())));
        Some(failure)
    };
    let outcome = runner.run(&drawn, |(setup, steps)| {
        match fails_in_time(&setup, &steps) {
            Some(failure) => Err(TestCaseError::fail(failure.to_string())),
            None => Ok(()),
        }
    });
    let (reason, (setup, steps)) = match outcome {
        Ok(()) => return None,
        Err(TestError::Fail(reason, value)) => (reason, value),
        Err(TestError::Abort(reason)) => panic!("{reason}"),
    };
    let steps = without_needless(steps, |steps| fails_in_time(&setup, steps).is_some());
    let (setup, steps) = shorter(&mut runner, &drawn, (setup, steps), &fails_in_time);
    let failure = fails(&setup, &steps).unwrap_or_else(|| Failure {
        wrong: format!("it failed once and then no more: {reason}"),
        ..Failure::default()
    });
    Some(Shortest {
        setup,
        steps,
        failure,
    })
}

fn runner(draws: Draws) -> TestRunner {
    let mut config = ProptestConfig {
        failure_persistence: None,
        max_shrink_iters: 100_000,
        ..ProptestConfig::default()
    };
    config.cases = match draws {
        Draws::Fresh(_) => config.cases,
        Draws::FreshButFew(_) => config.cases.div_ceil(4),
        Draws::FreshAndMany(_) | Draws::Same => config.cases.saturating_mul(4),
    };
    match draws {
        Draws::Fresh(file) | Draws::FreshButFew(file) | Draws::FreshAndMany(file) => {
            let kept = FileFailurePersistence::Direct(file);
            config.failure_persistence = Some(Box::new(kept));
            TestRunner::new(config)
        }
        Draws::Same => {
            let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
            TestRunner::new_with_rng(config, rng)
        }
    }
}

/// How many sequences are drawn in search of a shorter one.
const SHORTER_MAX: u32 = 500;

/// A shorter sequence that fails, if one is soon found. proptest takes steps away and makes them
/// simpler; where several steps stand for a single other one, it takes luck.
fn shorter<T: Clone + Debug>(
    runner: &mut TestRunner,
    drawn: &impl Strategy<Value = (Setup, Vec<T>)>,
    mut shortest: (Setup, Vec<T>),
    fails: &impl Fn(&Setup, &[T]) -> Option<Failure>,
) -> (Setup, Vec<T>) {
    for _ in 0..SHORTER_MAX {
        let Ok(tree) = drawn.new_tree(runner) else {
            break;
        };
        let (setup, mut steps) = tree.current();
        steps.truncate(shortest.1.len().saturating_sub(1));
        if fails(&setup, &steps).is_some() {
            let steps = without_needless(steps, |steps| fails(&setup, steps).is_some());
            shortest = (setup, steps);
        }
    }
    shortest
}

/// Leaves out every step without which the sequence still fails. proptest does so before it makes
/// the steps simpler, and not again after.
fn without_needless<T: Clone>(mut steps: Vec<T>, fails: impl Fn(&[T]) -> bool) -> Vec<T> {
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
