//! Histories: what is done to a queue and to the [reference model](crate::Model), side by side.
//!
//! A history is a list of [`Step`]s: operations that never wait, and the queue's own calls that do,
//! which begin, are woken, give up and are cancelled. Each outcome is compared with the model's,
//! and so is, where the test [looks](Looks), everything that can be seen. The model says which
//! calls have to have answered, and what; *which* of the calls that wait is served a runtime may
//! choose.
//!
//! Histories are [drawn](Draw), over a few keys and short times, so that keys meet in every state
//! and deadlines tie, and shrink to the shortest one that still fails. Or all of them are
//! [explored](explore()), from the shortest on. Or they are scripts of
//! [`conformance`](mod@crate::conformance).

mod apply;
mod calls;
mod draw;
mod draw_calls;
mod draw_operations;
mod explore;
mod failure;
mod faults;
mod judge;
mod pair;
mod reasons;
mod script;
mod simpler;
mod watch;

use std::time::Duration;

use requeue_core::{Action, AddOptions, Instant, Merge};

use crate::caught::guarded;
use crate::subject::{
    Call, Configuration, GroupOrder, Key, Left, NewSubject, PolicySpec, Subject, boxed,
};
use crate::watched::{begins, restarts};
use pair::Pair;

pub use draw::{Draw, find, run, run_combined};
pub(crate) use draw::{HANGS_AFTER, run_on};
pub use draw_calls::calls;
pub use draw_operations::{Crowd, operations, setups};
pub use explore::{Bounds, Explored, Scope, explore};
pub use failure::Failure;
pub(crate) use failure::write_timeline;
pub(crate) use script::{CallScript, skipped};

/// One step of a history. A `u8` picks one of the tickets, of the sleepers, or of the calls that
/// wait; where there is none nothing happens.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
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
    /// [`Subject::add_displacing`].
    AddDisplacing(Key, AddOptions),
    /// Adds a key once no such add has come for the first time, or the second time is over since
    /// the first of them.
    AddDebounced(Key, Duration, Duration),
    /// Adds keys together.
    AddMany(Vec<Key>),
    /// Forgets the failures of a key.
    Forget(Key),
    /// Takes back the work of a key.
    CancelKey(Key),
    /// Takes back the deadline of a key.
    CancelDelay(Key),
    /// Ends the delay of a key.
    Expedite(Key),
    /// Ends the delays of all keys; unless there are several and the limiter holds keys, because
    /// then their order is not specified.
    ExpediteAll,
    /// Takes back the work of all keys but those below one; unless several of them would be kept
    /// for their failures alone, because then their order is not specified.
    RetainBelow(Key),
    /// Adds a key as another queue has left it.
    Restore(Left),
    /// Looks at every key.
    Snapshot,
    /// Asks why a key does not run.
    Why(Key),
    /// Hands out no key from now on.
    Pause,
    /// Ends a pause.
    Unpause,
    /// Suspends a key for a while at most.
    Suspend(Key, Duration),
    /// Ends the suspension of a key.
    Resume(Key),
    /// [`Subject::order`].
    Order(GroupOrder),
    /// Asks for a key.
    TryGet,
    /// Looks for a key, and sleeps if there is none.
    Get,
    /// Looks for keys, and sleeps if there is none.
    GetMany(usize),
    /// A sleeper looks again, woken or not.
    LookAgain(u8),
    /// A sleeper is cancelled.
    Leave(u8),
    /// Completes a run by the name of its key.
    DoneKey(Key),
    /// Completes a run, which may have been completed before.
    Done(u8),
    /// Completes a run, and says what becomes of the key.
    Complete(u8, Action),
    /// Completes runs together.
    CompleteMany(Vec<u8>, Action),
    /// Completes a run and looks for the next key; sleeps if there is none.
    Next(u8, Action),
    /// [`Subject::panic_at_work`].
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
    /// Begins a call of the queue's own.
    Start(Call),
    /// Makes a call that completes a key and waits for the next, and drops it before it has run.
    NextUnrun(Action),
    /// A call that waits is cancelled.
    Cancel(u8),
    /// A call that waits is let run although it was not woken.
    Nudge(u8),
    /// Everything runs that can.
    Settle,
    /// [`Subject::age_after`].
    AgeAfter(Option<Duration>),
    /// [`Subject::limit_keys`].
    LimitKeys(usize),
    /// [`Subject::limit_failure_records`].
    LimitFailureRecords(usize),
    /// [`Subject::limit_due_keys`].
    LimitDueKeys(u8),
    /// [`Subject::set_policy`].
    SetPolicy(PolicySpec),
}

/// When a test looks at all that can be seen.
///
/// Looking releases what is due, so a test that always looks never finds a queue that is late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Looks {
    /// After every step but the passing of time.
    Always,
    /// In the end.
    Last,
    /// Not at all: what calls answer tells more of a fault.
    Never,
}

/// Every rule by which an add meets a deadline.
pub const MERGES: [Merge; 5] = [
    Merge::Earliest,
    Merge::Once,
    Merge::Latest,
    Merge::Replace,
    Merge::Keep,
];

/// How long threads are waited for that should have answered, before it is a failure.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Does `steps` to a new `S` and to a model of it. In the end everything settles, and a shutdown
/// ends all waiting calls.
///
/// # Errors
///
/// [`Failure`] where they part: where an outcome is another, where a call should have answered and
/// has not; or where an invariant of the queue does not hold.
///
/// # Examples
///
/// ```
/// use requeue_core::priority::Plain;
/// use requeue_core::storage::Fixed;
/// use requeue_proptest::histories::{Looks, Step, check};
/// use requeue_proptest::subject::{Direct, Configuration};
///
/// let steps = [Step::Add(1), Step::TryGet, Step::Add(1), Step::DoneKey(1), Step::TryGet];
/// check::<Direct<Plain, Fixed<1>>>(&Configuration::exponential(), &steps, Looks::Always)?;
/// # Ok::<(), requeue_proptest::histories::Failure>(())
/// ```
pub fn check<S: Subject + 'static>(
    setup: &Configuration,
    steps: &[Step],
    looks: Looks,
) -> Result<(), Failure> {
    check_on(boxed::<S>, setup, steps, looks)
}

/// The same to a queue that this function makes.
///
/// # Errors
///
/// As [`check`].
pub fn check_on(
    new: NewSubject,
    setup: &Configuration,
    steps: &[Step],
    looks: Looks,
) -> Result<(), Failure> {
    check_within(new, setup, steps, looks, PATIENCE)
}

fn check_within(
    new: NewSubject,
    setup: &Configuration,
    steps: &[Step],
    looks: Looks,
    patience: Duration,
) -> Result<(), Failure> {
    let keys = steps.iter().map(Step::highest_key).max().unwrap_or(0);
    let mut pair = Pair::new(new(setup), setup, keys, patience);
    restarts();
    for step in steps {
        begins(|| format!("{step:?}"));
        let outcome = guarded(|| pair.step(step, looks));
        outcome.unwrap_or_else(|panic| {
            Err(pair.failure(format!("{step:?}: the queue panicked: {panic}")))
        })?;
    }
    begins(|| String::from("in the end"));
    guarded(|| pair.conclude(looks)).unwrap_or_else(|panic| {
        Err(pair.failure(format!("in the end the queue panicked: {panic}")))
    })
}

impl Step {
    /// The highest key that is named.
    fn highest_key(&self) -> Key {
        match self {
            Self::Add(key)
            | Self::AddAfter(key, _)
            | Self::AddAt(key, _)
            | Self::AddRateLimited(key)
            | Self::AddWith(key, _)
            | Self::AddDisplacing(key, _)
            | Self::AddDebounced(key, ..)
            | Self::Forget(key)
            | Self::CancelKey(key)
            | Self::CancelDelay(key)
            | Self::Expedite(key)
            | Self::DoneKey(key)
            | Self::Why(key)
            | Self::Suspend(key, _)
            | Self::Resume(key)
            | Self::Start(Call::Flush(key) | Call::CancelAndWait(key) | Call::AddWait(key))
            | Self::Restore(Left { key, .. }) => *key,
            Self::AddMany(keys) => keys.iter().copied().max().unwrap_or(0),
            _ => 0,
        }
    }

    fn passes_time(&self) -> bool {
        matches!(self, Self::Advance(_) | Self::AdvanceToDeadline)
    }
}
