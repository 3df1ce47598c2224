//! Histories: what is done to a queue and to the [reference model](crate::Model), side by side.
//!
//! A history is a list of [`Operation`]s: those that never wait, and the queue's own calls that do,
//! which begin, are woken, give up and are cancelled. Each outcome is compared with the model's,
//! and so is, where the test [looks](Looks), everything that can be seen. The model says which
//! calls have to have answered, and what; *which* of the calls that wait is served a runtime may
//! choose.
//!
//! Histories are [drawn](Draw), over a few keys and short times, so that keys meet in every state
//! and deadlines tie, and shrink to the shortest one that still fails. Or they are the stories of
//! [`conformance`](mod@crate::conformance), which say themselves what is answered.

mod apply;
mod bytes;
mod calls;
mod draw;
#[cfg(feature = "core")]
mod explore;
mod failure;
mod judge;
mod pair;
mod reasons;
mod story;
mod watch;

use std::time::Duration;

use crate::subject::{Configuration, NewSubject, Subject, boxed};
use crate::watched::restarts;
use pair::Pair;

pub use crate::operation::{Answer, Operation, Run, Sleeper};
#[cfg(test)]
pub(crate) use bytes::Bytes;
pub use bytes::{Crowd, MERGES, at_once, calls, operations_of};
pub(crate) use draw::HANGS_AFTER;
pub use draw::{Draw, find, run, run_combined};
#[cfg(feature = "core")]
pub use explore::{every_history, every_state};
pub use failure::Failure;
pub(crate) use story::{play, skipped, without_calls};

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
/// use requeue_proptest::histories::{Looks, Operation, check};
/// use requeue_proptest::subject::{Direct, Configuration};
///
/// let steps = [Operation::Add(1), Operation::TryGet, Operation::Add(1), Operation::DoneKey(1), Operation::TryGet];
/// check::<Direct<Plain, Fixed<1>>>(&Configuration::exponential(), &steps, Looks::Always)?;
/// # Ok::<(), requeue_proptest::histories::Failure>(())
/// ```
pub fn check<S: Subject + 'static>(
    setup: &Configuration,
    steps: &[Operation],
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
    steps: &[Operation],
    looks: Looks,
) -> Result<(), Failure> {
    check_within(new, setup, steps, looks, PATIENCE)
}

fn check_within(
    new: NewSubject,
    setup: &Configuration,
    steps: &[Operation],
    looks: Looks,
    patience: Duration,
) -> Result<(), Failure> {
    let keys = steps.iter().map(Operation::highest_key).max().unwrap_or(0);
    let mut pair = Pair::new(new(setup), setup, keys, patience);
    restarts();
    for step in steps {
        pair.guarded(|| format!("{step:?}"), |pair| pair.step(step, looks))?;
    }
    pair.guarded(|| String::from("in the end"), |pair| pair.conclude(looks))
}
