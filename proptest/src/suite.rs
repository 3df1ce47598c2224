//! Any sequence of operations, done to a queue and to the reference model, side by side.
//!
//! Sequences are drawn over a few keys and short times, so that keys meet in every state and
//! deadlines tie, and shrink to the shortest one that still fails. Every outcome is compared; where
//! the test [looks](Looks), so is everything that can be seen.

mod blame;
pub(crate) mod draw;
mod failure;
pub(crate) mod run;

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use requeue_core::{AddOptions, Completion, Instant};

use crate::caught::guarded;
use crate::subject::{Key, Setup, Subject};
use crate::trace::limiter::{FloatBits, LimiterSpec};

pub use failure::Failure;

use draw::Draws;

/// How many keys there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crowd {
    /// So few that they meet in every state, and that small queues are full.
    Few,
    /// So many that the heap of deadlines has three levels.
    Many,
}

/// One operation. A `u8` picks one of the tickets, or of the sleeping calls, that there are; where
/// there is none nothing happens.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// Adds a key.
    Add(Key),
    /// Adds a key after a delay.
    AddAfter(Key, Duration),
    /// Adds a key at a point in time.
    AddAt(Key, Instant),
    /// Adds a key after a failure.
    AddRateLimited(Key),
    /// Adds a key as asked.
    AddWith(Key, AddOptions),
    /// Adds keys together.
    AddMany(Vec<Key>),
    /// Forgets the failures of a key.
    Forget(Key),
    /// Asks for a key.
    TryGet,
    /// Begins a call that waits for a key.
    Get,
    /// Begins a call that waits for keys.
    GetMany(usize),
    /// A sleeping call looks again, woken or not.
    LookAgain(u8),
    /// A sleeping call is cancelled.
    Leave(u8),
    /// Completes a run by the name of its key.
    DoneKey(Key),
    /// Completes a run, which may have been completed before.
    Done(u8),
    /// Completes a run, and says what becomes of the key.
    Complete(u8, Completion),
    /// Completes runs together.
    CompleteMany(Vec<u8>, Completion),
    /// Completes a run and begins a call that waits for the next key.
    Next(u8, Completion),
    /// A worker takes a key and panics with it, if the queue
    /// [gives such keys back](Subject::GIVES_BACK).
    PanicAtWork,
    /// Reports the gauges of work under way.
    ReportRunning,
    /// Time passes.
    Advance(Duration),
    /// Time passes until the earliest deadline.
    AdvanceToDeadline,
    /// Shuts down.
    ShutDown,
    /// Shuts down and begins to wait for the drain.
    BeginDrain,
    /// Takes out a delayed key.
    TakeDelayed,
    /// Takes out a ready key.
    TakeReady,
}

/// When a test looks at all that can be seen.
///
/// Looking releases what is due, so a test that always looks never finds a queue that is late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Looks {
    /// After every operation but the passing of time.
    Always,
    /// In the end.
    Last,
}

/// Does `ops` to a new `S` and to a model of it.
///
/// # Errors
///
/// [`Failure`] where they part, or where an invariant of the queue does not hold.
///
/// # Examples
///
/// ```
/// use requeue_core::Fixed;
/// use requeue_proptest::subject::{Direct, Setup};
/// use requeue_proptest::suite::{Looks, Op, check};
///
/// let ops = [Op::Add(1), Op::TryGet, Op::Add(1), Op::DoneKey(1), Op::TryGet];
/// check::<Direct<Fixed<1>>>(&Setup::exponential(), &ops, Looks::Always)?;
/// # Ok::<(), requeue_proptest::suite::Failure>(())
/// ```
pub fn check<S: Subject>(setup: &Setup, ops: &[Op], looks: Looks) -> Result<(), Failure> {
    let keys = ops.iter().map(Op::highest_key).max().unwrap_or(0);
    let mut run = run::Run::<S>::new(setup, keys);
    for op in ops {
        let outcome = guarded(|| run.step(op, looks));
        outcome.unwrap_or_else(|panic| {
            Err(run.failure(None, format!("{op:?}: the queue panicked: {panic}")))
        })?;
    }
    guarded(|| run.finish()).unwrap_or_else(|panic| {
        Err(run.failure(None, format!("in the end the queue panicked: {panic}")))
    })
}

impl Op {
    /// The highest key that is named.
    pub(crate) fn highest_key(&self) -> Key {
        match self {
            Self::Add(key)
            | Self::AddAfter(key, _)
            | Self::AddAt(key, _)
            | Self::AddRateLimited(key)
            | Self::AddWith(key, _)
            | Self::Forget(key)
            | Self::DoneKey(key) => *key,
            Self::AddMany(keys) => keys.iter().copied().max().unwrap_or(0),
            _ => 0,
        }
    }
}

/// Checks `S` on as many drawn sequences as proptest is configured to draw; of a crowd on a quarter
/// as many.
///
/// What was once found to fail is kept in the file `regressions`, and tried first from then on.
///
/// # Panics
///
/// If a sequence fails, with the shortest one that does.
pub fn run<S: Subject>(crowd: Crowd, regressions: &'static str) {
    let looks = [Looks::Always, Looks::Last];
    let fails = |setup: &Setup, ops: &[Op]| {
        looks
            .iter()
            .find_map(|looks| check::<S>(setup, ops, *looks).err())
    };
    let draws = match crowd {
        Crowd::Few => Draws::Fresh(regressions),
        Crowd::Many => Draws::FreshButFew(regressions),
    };
    if let Some(shortest) =
        draw::shortest(draws, Duration::MAX, (setups(), sequences(crowd)), fails)
    {
        shortest.tell();
    }
}

/// Queues of all kinds.
pub fn setups() -> impl Strategy<Value = Setup> {
    let memories = select(vec![usize::MAX, 0, 1, 2]);
    (select(limiters()), memories).prop_map(|(limiter, memories_max)| Setup {
        limiter,
        memories_max,
    })
}

/// Limiters that remember failures and that do not, that delay and that do not, and one that
/// delays for ever.
fn limiters() -> Vec<LimiterSpec> {
    let exponential = |base_ns| LimiterSpec::Exponential {
        base_ns,
        max_ns: 20,
    };
    let bucket = |rate: f64, burst| LimiterSpec::Bucket {
        rate_bits: FloatBits(rate),
        burst,
    };
    vec![
        exponential(1),
        exponential(0),
        LimiterSpec::FastSlow {
            fast_ns: 2,
            slow_ns: 9,
            max_fast_attempts: 1,
        },
        LimiterSpec::MaxOf {
            limiters: vec![exponential(2), bucket(5e8, 1)],
        },
        LimiterSpec::MaxOf { limiters: vec![] },
        bucket(0.0, 1),
    ]
}

/// A busy queue, which may be shut down towards the end.
pub fn sequences(crowd: Crowd) -> impl Strategy<Value = Vec<Op>> {
    // A crowd forms where keys come faster than they go.
    let (keys, length, adds) = match crowd {
        Crowd::Few => (6, 60, 10),
        Crowd::Many => (40, 150, 60),
    };
    let late = prop_oneof![1 => busy(keys, 10), 1 => closing()];
    (vec(busy(keys, adds), 0..length), vec(late, 0..40)).prop_map(|(mut ops, late)| {
        ops.extend(late);
        ops
    })
}

/// Boxed, since the name of its type would fill pages of a backtrace.
fn busy(keys: Key, adds: u32) -> BoxedStrategy<Op> {
    prop_oneof![
        adds => adding(keys),
        10 => getting(),
        8 => completing(keys),
        4 => passing(),
    ]
    .boxed()
}

fn adding(keys: Key) -> impl Strategy<Value = Op> {
    let key = || 1..=keys;
    prop_oneof![
        5 => key().prop_map(Op::Add),
        5 => (key(), delay()).prop_map(|(key, delay)| Op::AddAfter(key, delay)),
        2 => (key(), instant()).prop_map(|(key, due)| Op::AddAt(key, due)),
        4 => key().prop_map(Op::AddRateLimited),
        4 => (key(), options()).prop_map(|(key, options)| Op::AddWith(key, options)),
        1 => vec(key(), 0..5).prop_map(Op::AddMany),
        1 => key().prop_map(Op::Forget),
    ]
}

/// Levels that most queues under test have, and one that none has.
fn options() -> impl Strategy<Value = AddOptions> {
    let priority = prop_oneof![
        2 => Just(None),
        6 => (0..3u8).prop_map(Some),
        1 => Just(Some(3)),
    ];
    let after = proptest::option::of(delay());
    (after, any::<bool>(), priority, any::<bool>()).prop_map(
        |(after, rate_limited, priority, expedite)| AddOptions {
            after,
            rate_limited,
            priority,
            expedite,
        },
    )
}

fn getting() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => Just(Op::TryGet),
        4 => Just(Op::Get),
        1 => (0..4usize).prop_map(Op::GetMany),
        3 => any::<u8>().prop_map(Op::LookAgain),
        1 => any::<u8>().prop_map(Op::Leave),
    ]
}

fn completing(keys: Key) -> impl Strategy<Value = Op> {
    let picks = vec(any::<u8>(), 0..4);
    prop_oneof![
        2 => (1..=keys).prop_map(Op::DoneKey),
        2 => any::<u8>().prop_map(Op::Done),
        4 => (any::<u8>(), completion()).prop_map(|(pick, how)| Op::Complete(pick, how)),
        1 => (picks, completion()).prop_map(|(picks, how)| Op::CompleteMany(picks, how)),
        2 => (any::<u8>(), completion()).prop_map(|(pick, how)| Op::Next(pick, how)),
        1 => Just(Op::PanicAtWork),
    ]
}

fn passing() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => delay().prop_map(Op::Advance),
        2 => Just(Op::AdvanceToDeadline),
        1 => Just(Op::ReportRunning),
    ]
}

fn closing() -> impl Strategy<Value = Op> {
    prop_oneof![
        1 => Just(Op::ShutDown),
        1 => Just(Op::BeginDrain),
        2 => Just(Op::TakeDelayed),
        4 => Just(Op::TakeReady),
    ]
}

fn completion() -> impl Strategy<Value = Completion> {
    prop_oneof![
        Just(Completion::Done),
        Just(Completion::Succeeded),
        delay().prop_map(Completion::SucceededAgainAfter),
        Just(Completion::Retry),
        delay().prop_map(Completion::RetryAfter),
    ]
}

fn delay() -> impl Strategy<Value = Duration> {
    prop_oneof![
        2 => Just(Duration::ZERO),
        8 => (1..=5u64).prop_map(Duration::from_nanos),
        3 => (6..=1000u64).prop_map(Duration::from_nanos),
        1 => select(vec![
            Duration::from_nanos(u64::MAX - 1),
            Duration::from_nanos(u64::MAX),
            Duration::MAX,
        ]),
    ]
}

fn instant() -> impl Strategy<Value = Instant> {
    prop_oneof![
        8 => (0..1000u64).prop_map(Instant::from_nanos),
        1 => select(vec![Instant::from_nanos(u64::MAX - 1), Instant::NEVER]),
    ]
}
