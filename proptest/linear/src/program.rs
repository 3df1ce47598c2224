//! What several threads do to one queue, and how that is drawn.

use std::time::Duration;
use std::{fmt, iter};

use requeue_proptest::histories::{Operation, Sleeper, at_once};
use requeue_proptest::proptest::collection::vec;
use requeue_proptest::proptest::prelude::*;
use requeue_proptest::proptest::sample::select;
use requeue_proptest::proptest::strategy::ValueTree;
use requeue_proptest::proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use requeue_proptest::subject::Key;

/// What several threads do to one queue.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// The steps of each thread. The first thread never waits; it shuts the queue down in the end.
    /// A step picks one of the runs that its thread has; nothing happens if there is none.
    pub threads: Vec<Vec<Operation>>,
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (thread, steps) in self.threads.iter().enumerate() {
            writeln!(f, "thread {thread} runs {steps:?}")?;
        }
        Ok(())
    }
}

/// The keys of the programs.
pub(crate) const KEYS: Key = 3;

/// What the delays of the programs are multiples of.
pub(crate) const TICK: Duration = Duration::from_secs(1);

/// Returns `count` programs whose delays are seconds, the same for the same seed: any, and twice as
/// many that are short and about the same key.
///
/// # Examples
///
/// ```
/// use requeue_linear::seeded_programs;
///
/// let programs = || seeded_programs(7, 100);
/// assert!(programs().eq(programs()));
/// assert_eq!(programs().count(), 100);
/// ```
pub fn seeded_programs(seed: u64, count: usize) -> impl Iterator<Item = Program> {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(ProptestConfig::default(), rng);
    let programs = prop_oneof![1 => any_program(), 2 => duels()];
    let draw = move || {
        programs
            .new_tree(&mut runner)
            .ok()
            .map(|tree| tree.current())
    };
    iter::from_fn(draw).take(count)
}

fn any_program() -> impl Strategy<Value = Program> {
    let thread = at_once(1..8, KEYS, false, TICK);
    vec(thread, 2..=4).prop_map(|threads| Program { threads })
}

/// Two or three threads bring a key into some state, and make a few calls.
///
/// A race is between two calls on a key that is in a certain state, and nothing else goes on.
fn duels() -> impl Strategy<Value = Program> {
    let bouts = at_once(1..5, KEYS, true, TICK);
    let thread = (opening(), bouts).prop_map(|(mut steps, bouts)| {
        steps.extend(bouts);
        steps
    });
    vec(thread, 2..=3).prop_map(|threads| Program { threads })
}

/// Steps that bring keys into a state that matters to the calls which follow.
fn opening() -> impl Strategy<Value = Vec<Operation>> {
    use Operation::{Add, AddAfter, AddMany, AddRateLimited, Advance, GetMany, TryGet};
    let many = || AddMany(vec![1, 2, 3]);
    select(vec![
        vec![],
        vec![],
        vec![Add(1)],
        vec![Add(1), Add(2)],
        vec![Add(1), TryGet],
        vec![Add(1), TryGet, Add(1)],
        vec![AddRateLimited(1), Advance(TICK * 3), TryGet],
        vec![AddAfter(1, TICK * 2)],
        vec![AddRateLimited(1)],
        vec![many(), GetMany(3, Sleeper::New)],
        vec![many(), GetMany(3, Sleeper::New)],
        vec![many(), TryGet, TryGet],
        vec![many()],
    ])
}
