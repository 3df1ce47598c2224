//! What is done to a subject. Each workload sets up untimed and then measures rounds.
//!
//! All of them keep clear of three traps: keys are random and new, so that no predictor learns
//! them; actions come in shuffled order; and slots are shuffled before anything is measured,
//! since a layout that links its slots looks free while they lie in order.

mod dedup;
mod delayed;
mod fill_drain;
mod limited;
mod steady;

use core::time::Duration;

pub use dedup::Dedup;
pub use delayed::{Delayed, SPAN_NANOS, Sooner, entries};
pub use fill_drain::FillDrain;
pub use limited::{LimitedCycle, When};
pub use steady::Steady;

use crate::keys::{Key, Random};
use crate::subject::Subject;

/// What one round took.
#[derive(Clone, Copy, Debug)]
pub struct Round {
    /// CPU time of the thread, or wall time where threads work together.
    pub time: Duration,
    /// How many times the work of the workload was done.
    pub operations: usize,
}

/// How much work there is.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// How many keys the workload is about.
    pub keys: usize,
    /// How many operations a round has, at least.
    pub operations: usize,
}

impl Scale {
    /// This scale, cut down to `limit`.
    pub(crate) fn at_most(self, limit: usize) -> Self {
        Self {
            keys: self.keys.min(limit),
            operations: self.operations.min(limit),
        }
    }
}

/// Something that is done to a subject, again and again.
pub trait Workload<K: Key, Q: Subject<K>> {
    /// Brings the subject into the state to be measured.
    fn set_up(subject: Q, scale: Scale, seed: u64) -> Self;

    /// Measures.
    fn round(&mut self) -> Round;

    /// The subject, as the rounds have left it.
    fn into_subject(self) -> Q;
}

/// The thread's CPU time that `work` takes.
pub fn cpu_time(work: impl FnOnce()) -> Duration {
    let start = cpu_time::ThreadTime::now();
    work();
    start.elapsed()
}

/// Fills a subject with `keys`, takes all and completes them in random order: leaves it empty, with
/// slots that are handed out in random order from now on.
pub(crate) fn shuffle_slots<K: Key, Q: Subject<K>>(
    subject: &mut Q,
    keys: usize,
    random: &mut Random,
) {
    for _ in 0..keys {
        subject.add(K::from_number(random.next()), 0);
    }
    let mut taken = Vec::with_capacity(keys);
    taken.extend(core::iter::from_fn(|| subject.get(0)));
    random.shuffle(&mut taken);
    for (key, run) in taken {
        subject.done(&key, run, 0);
    }
}
