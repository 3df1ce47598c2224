//! Every history of a few steps, instead of drawn ones.

use std::collections::HashSet;
use std::fmt;
use std::time::Duration;

use requeue_core::Instant;

use super::pair::Pair;
use super::{Failure, Looks, Operation, PATIENCE};
use crate::Fingerprint;
use crate::caught::guarded;
use crate::operation::{Key, Operate};
use crate::subject::{Configuration, NewSubject, Subject, boxed};
use crate::watched::{begins, restarts};

/// Which histories are explored.
#[derive(Clone, Debug)]
pub struct Scope {
    /// The steps that each history is made of, at most 256, and the same for every key: of
    /// histories that differ in the names of keys alone only one is tried.
    pub steps: Vec<Operation>,
    /// How many steps the longest history has.
    pub depth: usize,
    /// Without bounds every history is tried. With bounds a history is continued only if it leads
    /// to a state within them that no earlier history has led to.
    ///
    /// A state is what the model knows, with times relative to now; what the queue says without
    /// reading the time; and what the test holds: tickets, sleepers and waits for the drain. Queues
    /// in one state may still differ, for example in which slot holds which key, so that each of
    /// the two ways finds something.
    pub bounds: Option<Bounds>,
}

/// What a state may hold at most. Without bounds there is no end to failures.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Failures of one key.
    pub failures: u32,
    /// Tickets, current or stale.
    pub tickets: usize,
    /// Sleepers.
    pub sleepers: usize,
    /// Waits for the drain.
    pub drains: usize,
}

/// What was explored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Explored {
    /// How many histories of each length were tried.
    pub histories: Vec<usize>,
    /// How many states histories of each length were the first to reach; empty without bounds. The
    /// state before the first step does not count.
    pub states: Vec<usize>,
    /// Longer histories reach no other state within the bounds.
    pub closed: bool,
}

impl fmt::Display for Explored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = |counts: &[usize]| counts.iter().sum::<usize>();
        write!(f, "{} histories", total(&self.histories))?;
        if self.states.is_empty() {
            return write!(f, ", by length {:?}", self.histories);
        }
        let end = if self.closed { ", no more" } else { "" };
        let states = total(&self.states);
        write!(f, ", {states} states, by length {:?}{end}", self.states)
    }
}

/// Does every history of the scope, the shortest first, to a new `S` and to a model of it, and
/// looks in the end, as [`check`](super::check) does. Leaves out histories whose last step does
/// nothing, such as the completion of a run if there is none.
///
/// # Errors
///
/// [`Failure`] of the first history that fails. No shorter one of the scope does.
///
/// # Examples
///
/// ```
/// use requeue_core::priority::Plain;
/// use requeue_core::storage::Fixed;
/// use requeue_proptest::histories::{Bounds, Scope, Operation, explore};
/// use requeue_proptest::subject::{Direct, Configuration};
///
/// let steps = vec![Operation::Add(1), Operation::TryGet, Operation::DoneKey(1)];
/// let bounds = Some(Bounds { failures: 0, tickets: 1, sleepers: 0, drains: 0 });
/// let scope = Scope { steps, depth: usize::MAX, bounds };
/// let explored = explore::<Direct<Plain, Fixed<1>>>(&Configuration::exponential(), &scope)?;
/// assert!(explored.closed);
/// # Ok::<(), requeue_proptest::histories::Failure>(())
/// ```
pub fn explore<S: Subject + 'static>(
    setup: &Configuration,
    scope: &Scope,
) -> Result<Explored, Failure> {
    explore_on(boxed::<S>, setup, scope)
}

fn explore_on(new: NewSubject, setup: &Configuration, scope: &Scope) -> Result<Explored, Failure> {
    let mut explored = Explored::default();
    let mut nothing_done = Pair::new(new(setup), setup, 0, PATIENCE);
    let mut known = HashSet::from([State::of(&mut nothing_done)]);
    let mut frontier: Vec<Vec<u8>> = vec![Vec::new()];
    while explored.histories.len() < scope.depth && !frontier.is_empty() {
        let (mut histories, mut states) = (0, 0);
        let mut longer = Vec::new();
        for history in &frontier {
            for history in scope.continuations(history) {
                let Some(state) = scope.play(new, setup, &history)? else {
                    continue;
                };
                histories += 1;
                let Some(bounds) = &scope.bounds else {
                    longer.push(history);
                    continue;
                };
                let is_within = state.is_within(bounds);
                if known.insert(state) {
                    states += 1;
                    longer.extend(is_within.then_some(history));
                }
            }
        }
        explored.histories.push(histories);
        if scope.bounds.is_some() {
            explored.states.push(states);
        }
        frontier = longer;
    }
    explored.closed = frontier.is_empty();
    Ok(explored)
}

impl Scope {
    /// The histories that are one step longer. Keys first come in the order of their numbers.
    fn continuations(&self, history: &[u8]) -> impl Iterator<Item = Vec<u8>> {
        let highest_of = |step: &u8| self.steps[usize::from(*step)].highest_key();
        let next_key = 1 + history.iter().map(highest_of).max().unwrap_or(0);
        (0..self.steps.len() as u8)
            .filter(move |step| highest_of(step) <= next_key)
            .map(move |step| [history, &[step]].concat())
    }

    /// Does a history to a new queue. Returns the state that it leads to; `None` if its last step
    /// does nothing.
    fn play(
        &self,
        new: NewSubject,
        setup: &Configuration,
        history: &[u8],
    ) -> Result<Option<State>, Failure> {
        let steps = history.iter().map(|step| &self.steps[usize::from(*step)]);
        let last = history.len().saturating_sub(1);
        let keys = self
            .steps
            .iter()
            .map(Operation::highest_key)
            .max()
            .unwrap_or(0);
        let mut pair = Pair::new(new(setup), setup, keys, PATIENCE);
        restarts();
        let mut state = None;
        let outcome = guarded(|| {
            for (index, step) in steps.enumerate() {
                begins(|| format!("{step:?}"));
                let done = pair.timeline.len();
                // The shorter histories have been checked.
                pair.is_known = index < last;
                pair.step(step, Looks::Last)?;
                state = (pair.timeline.len() > done).then_some(());
            }
            let state = state.map(|()| State::of(&mut pair));
            if state.is_some() {
                pair.conclude(Looks::Last)?;
            }
            Ok(state)
        });
        outcome.unwrap_or_else(|panic| Err(pair.failure(format!("the queue panicked: {panic}"))))
    }
}

/// What tells two histories apart, as far as it can be seen.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    model: Fingerprint,
    /// What the queue says that depends on what it has released so far.
    queue: (usize, usize, usize, Option<Duration>),
    /// The key of each ticket, and whether it can still be used.
    tickets: Vec<(Key, bool)>,
    /// When each sleeper comes back by itself, and how many keys it waits for.
    sleepers: Vec<(Option<Duration>, Option<usize>)>,
    woken: bool,
    failures: u32,
    drains: usize,
}

impl State {
    fn of(pair: &mut Pair) -> Self {
        let now = pair.model.now();
        let left = |due: Option<Instant>| due.map(|due| due.saturating_since(now));
        let stats = pair.subject.stats();
        let is_current = |run| pair.model.key_of(run).is_some();
        let tickets = pair.tickets.iter().map(|run| (run.key, is_current(*run)));
        let sleepers = pair.sleepers.iter();
        Self {
            tickets: tickets.collect(),
            sleepers: sleepers.map(|it| (left(it.until), it.max)).collect(),
            queue: (
                stats.active,
                stats.delayed,
                stats.total,
                left(stats.next_deadline),
            ),
            woken: pair.woken,
            failures: pair.most_failures(),
            drains: pair.drains.len(),
            model: pair.model.fingerprint().relative(),
        }
    }

    fn is_within(&self, bounds: &Bounds) -> bool {
        self.failures <= bounds.failures
            && self.tickets.len() <= bounds.tickets
            && self.sleepers.len() <= bounds.sleepers
            && self.drains <= bounds.drains
    }
}

/// Every history of a few steps over two keys. Not with the other tests of our queues, because it
/// goes through a million histories: here its queues are optimized as the kit is.
#[cfg(test)]
mod tests {
    use requeue_core::priority::{Plain, WithSuspension};
    use requeue_core::storage::{Fixed, Growable};

    use super::*;
    use crate::rounds;
    use crate::subject::Direct;

    /// So many states that the soak comes to their end.
    const BOUNDS: Bounds = Bounds {
        failures: 1,
        tickets: 2,
        sleepers: 1,
        drains: 1,
    };

    /// The queues that are explored: how many due keys an operation makes ready, how many failure
    /// records are kept of what grows, and whether keys are held. The first is for every test, the
    /// others are for the soak.
    fn setups(capacity: Option<usize>) -> impl Iterator<Item = Configuration> {
        const ANY: usize = usize::MAX;
        let setups = match capacity {
            // No more than one key can be due.
            Some(1) => &[(1, ANY, false)][..],
            Some(_) => &[(1, ANY, true), (1, ANY, false), (2, ANY, false)],
            None => &[(2, 1, false), (1, ANY, false)],
        };
        setups
            .iter()
            .map(|(due_keys_max, failure_records_max, holds)| {
                let mut setup = Configuration::exponential();
                setup.due_keys_max = *due_keys_max;
                setup.failure_records_max = *failure_records_max;
                setup.policy.cool_down_ns = u64::from(*holds);
                setup.policy.hold_failures = *holds;
                setup
            })
    }

    /// The depth in an ordinary test, and that in the soak.
    const DEPTHS: [usize; 2] = [3, 5];
    /// The same of states: in the soak until there is no new one.
    const DEPTHS_OF_STATES: [usize; 2] = [5, usize::MAX];

    fn explored<S: Subject + 'static>(
        name: &str,
        bounds: Option<Bounds>,
        [depth, in_soak]: [usize; 2],
    ) {
        let is_soak = rounds(1) > 1;
        let scope = Scope {
            steps: Operation::explored(2),
            depth: if is_soak { in_soak } else { depth },
            bounds,
        };
        let setups = setups(S::new(&Configuration::exponential()).capacity());
        for setup in setups.take(if is_soak { usize::MAX } else { 1 }) {
            match explore::<S>(&setup, &scope) {
                Ok(explored) => println!("explored: {name}: {explored}"),
                Err(failure) => panic!("{name}, {setup:?}:\n{failure}"),
            }
        }
    }

    macro_rules! explored {
        ($($name:ident: $subject:ty;)+) => {$(
            mod $name {
                use super::*;

                #[test]
                fn every_history() {
                    explored::<$subject>(stringify!($name), None, DEPTHS);
                }

                #[test]
                fn every_state() {
                    explored::<$subject>(stringify!($name), Some(BOUNDS), DEPTHS_OF_STATES);
                }
            }
        )+};
    }

    explored! {
        core_fixed_1: Direct<WithSuspension, Fixed<1>>;
        core_fixed_2: Direct<WithSuspension, Fixed<2>>;
        core_growable: Direct<Plain, Growable>;
    }
}
