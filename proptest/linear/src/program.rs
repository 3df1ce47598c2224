//! What several threads do to one queue, and how that is drawn.

use std::time::Duration;
use std::{fmt, iter};

use requeue_core::Action;
use requeue_proptest::proptest::collection::vec;
use requeue_proptest::proptest::prelude::*;
use requeue_proptest::proptest::sample::{select, subsequence};
use requeue_proptest::proptest::strategy::ValueTree;
use requeue_proptest::proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use requeue_proptest::subject::Key;

use crate::spec::Request;

/// What several threads do to one queue.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// The steps of each thread. The first thread never waits; it shuts the queue down in the end.
    pub threads: Vec<Vec<Step>>,
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (thread, steps) in self.threads.iter().enumerate() {
            writeln!(f, "thread {thread} runs {steps:?}")?;
        }
        Ok(())
    }
}

/// A step of a thread. A `u8` picks one of the runs that the thread has; nothing happens if it has
/// none.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Step {
    /// A call that needs no run and makes none.
    Plain(Request),
    /// Takes a key without waiting.
    TryGet,
    /// Waits for a key, for no time.
    GetNow,
    /// Waits for a key.
    Get,
    /// Waits for keys, at most this many.
    GetMany(u8),
    /// Completes a run.
    Complete(u8, Action),
    /// Completes every run together.
    CompleteAll(Action),
    /// Completes a run and waits for the next key.
    Next(u8, Action),
    /// Begins a drain, and checks whether it is over.
    Drain,
}

/// The keys of the programs.
pub(crate) const KEYS: Key = 3;

/// What the delays of the programs are multiples of.
pub(crate) const TICK: Duration = Duration::from_secs(1);

/// Draws programs: any, and twice as many that are short and about the same key.
fn programs() -> impl Strategy<Value = Program> {
    prop_oneof![1 => any_program(), 2 => duels()]
}

/// Returns `count` programs whose delays are seconds, the same for the same seed.
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
    let programs = programs();
    let draw = move || {
        programs
            .new_tree(&mut runner)
            .ok()
            .map(|tree| tree.current())
    };
    iter::from_fn(draw).take(count)
}

fn any_program() -> impl Strategy<Value = Program> {
    let thread = vec(step(), 1..8);
    vec(thread, 2..=4).prop_map(|threads| Program { threads })
}

/// Two or three threads bring a key into some state, and make a few calls.
///
/// A race is between two calls on a key that is in a certain state, so every kind of call is as
/// likely as any other, and nothing else goes on.
fn duels() -> impl Strategy<Value = Program> {
    let bouts = vec(sharp(), 1..=4);
    let thread = (opening(), bouts).prop_map(|(mut steps, bouts)| {
        steps.extend(bouts);
        steps
    });
    vec(thread, 2..=3).prop_map(|threads| Program { threads })
}

/// Steps that bring keys into a state that matters to the calls which follow.
fn opening() -> impl Strategy<Value = Vec<Step>> {
    let add = |key| Step::Plain(Request::Add(key));
    let delayed = Step::Plain(Request::AddAfter(1, TICK * 2));
    let failed = Step::Plain(Request::AddRateLimited(1));
    let many = || Step::Plain(Request::AddMany(vec![1, 2, 3]));
    let passing = Step::Plain(Request::Advance(TICK * 3));
    select(vec![
        vec![],
        vec![],
        vec![add(1)],
        vec![add(1), add(2)],
        vec![add(1), Step::TryGet],
        vec![add(1), Step::TryGet, add(1)],
        vec![failed.clone(), passing, Step::TryGet],
        vec![delayed],
        vec![failed],
        vec![many(), Step::GetMany(3)],
        vec![many(), Step::GetMany(3)],
        vec![many(), Step::TryGet, Step::TryGet],
        vec![many()],
    ])
}

/// One call, of any kind, mostly on the first key.
fn sharp() -> BoxedStrategy<Step> {
    let key = || prop_oneof![3 => Just(1), 1 => 2..=KEYS];
    let keys = subsequence((1..=KEYS).collect::<Vec<_>>(), 2..=usize::from(KEYS));
    let plain = prop_oneof![
        2 => key().prop_map(Request::Add),
        2 => (key(), delay()).prop_map(|(key, delay)| Request::AddAfter(key, delay)),
        2 => key().prop_map(Request::AddRateLimited),
        2 => keys.prop_shuffle().prop_map(Request::AddMany),
        2 => key().prop_map(Request::Forget),
        2 => key().prop_map(Request::DoneKey),
        2 => key().prop_map(Request::State),
        2 => key().prop_map(Request::NumRequeues),
        1 => Just(Request::Len),
        1 => (1..=3u32).prop_map(|ticks| Request::Advance(TICK * ticks)),
        1 => prop_oneof![closing(), Just(Request::ShuttingDown)],
    ];
    let how = action;
    prop_oneof![
        16 => plain.prop_map(Step::Plain),
        2 => Just(Step::TryGet),
        2 => Just(Step::GetNow),
        1 => Just(Step::Get),
        2 => (2..=KEYS as u8).prop_map(Step::GetMany),
        4 => (any::<u8>(), how()).prop_map(|(pick, how)| Step::Complete(pick, how)),
        4 => how().prop_map(Step::CompleteAll),
        2 => (any::<u8>(), how()).prop_map(|(pick, how)| Step::Next(pick, how)),
        1 => Just(Step::Drain),
    ]
    .boxed()
}

/// Boxed, since the name of its type would fill pages of a backtrace.
fn step() -> BoxedStrategy<Step> {
    let plain = prop_oneof![
        12 => adding(),
        4 => looking(),
        1 => closing(),
        2 => (1..=3u32).prop_map(|ticks| Request::Advance(TICK * ticks)),
        1 => key().prop_map(Request::DoneKey),
    ];
    let how = action;
    prop_oneof![
        10 => plain.prop_map(Step::Plain),
        4 => Just(Step::TryGet),
        2 => Just(Step::GetNow),
        3 => Just(Step::Get),
        1 => (1..=3u8).prop_map(Step::GetMany),
        5 => (any::<u8>(), how()).prop_map(|(pick, how)| Step::Complete(pick, how)),
        1 => how().prop_map(Step::CompleteAll),
        2 => (any::<u8>(), how()).prop_map(|(pick, how)| Step::Next(pick, how)),
        1 => Just(Step::Drain),
    ]
    .boxed()
}

fn key() -> impl Strategy<Value = Key> {
    1..=KEYS
}

fn adding() -> impl Strategy<Value = Request> {
    prop_oneof![
        6 => key().prop_map(Request::Add),
        3 => (key(), delay()).prop_map(|(key, delay)| Request::AddAfter(key, delay)),
        2 => key().prop_map(Request::AddRateLimited),
        1 => vec(key(), 0..4).prop_map(Request::AddMany),
        1 => key().prop_map(Request::Forget),
    ]
}

fn looking() -> impl Strategy<Value = Request> {
    prop_oneof![
        2 => Just(Request::Len),
        2 => key().prop_map(Request::State),
        1 => key().prop_map(Request::NumRequeues),
        1 => Just(Request::ShuttingDown),
    ]
}

fn closing() -> impl Strategy<Value = Request> {
    prop_oneof![
        1 => Just(Request::ShutDown),
        1 => Just(Request::TakeDelayed),
        1 => Just(Request::TakeReady),
    ]
}

fn delay() -> impl Strategy<Value = Duration> {
    prop_oneof![
        1 => Just(Duration::ZERO),
        6 => (1..=4u32).prop_map(|ticks| TICK * ticks),
        1 => Just(Duration::MAX),
    ]
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        2 => Just(Action::Release),
        2 => Just(Action::Success),
        1 => delay().prop_map(Action::RequeueAfter),
        2 => Just(Action::Retry),
        1 => Just(Action::GiveUp),
        1 => delay().prop_map(Action::Snooze),
    ]
}
