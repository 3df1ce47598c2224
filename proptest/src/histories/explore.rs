//! Every history of a few steps over two keys, instead of drawn ones. Its queues are named here and
//! not in its tests, which are not optimized: it goes through a million histories.

use std::collections::HashSet;
use std::time::Duration;

use requeue_core::Instant;
use requeue_core::priority::{Plain, WithSuspension};
use requeue_core::storage::{Fixed, Growable};

use super::pair::Pair;
use super::{Failure, Looks, Operation, PATIENCE, story};
use crate::operation::{Key, Operate};
use crate::stories::{Rule, Step};
use crate::subject::{Configuration, Direct, NewSubject, Subject, boxed};
use crate::watched::restarts;
use crate::{Fingerprint, rounds};

/// What histories are made of, and how far they are continued.
struct Scope {
    /// At most 256, and the same for every key: of histories that differ in the names of keys alone
    /// only one is tried.
    steps: Vec<Operation>,
    /// How many steps the longest history has.
    depth: usize,
    /// A history is continued only if it leads to a state [within
    /// bounds](State::is_within_bounds) that no earlier history has led to. Otherwise every
    /// history is continued.
    is_bounded: bool,
}

/// Does every history of the scope, the shortest first, to a new queue and to a model of it, and
/// looks in the end, as [`check`](super::check) does. Leaves out histories whose last step does
/// nothing, such as the completion of a run if there is none. Returns how many histories there are,
/// and how many states.
///
/// # Errors
///
/// [`Failure`] of the first history that fails. No shorter one of the scope does.
fn explore(
    new: NewSubject,
    setup: &Configuration,
    scope: &Scope,
) -> Result<(usize, usize), Failure> {
    let mut histories = 0;
    let mut known = HashSet::new();
    let mut frontier: Vec<Vec<u8>> = vec![Vec::new()];
    for _ in 0..scope.depth {
        let mut longer = Vec::new();
        for history in frontier.iter().flat_map(|it| scope.continuations(it)) {
            let Some(state) = scope.play(new, setup, &history)? else {
                continue;
            };
            histories += 1;
            let is_within = state.is_within_bounds();
            let goes_on = !scope.is_bounded || (known.insert(state) && is_within);
            longer.extend(goes_on.then_some(history));
        }
        if longer.is_empty() {
            break;
        }
        frontier = longer;
    }
    Ok((histories, known.len()))
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
        let keys = self.steps.iter().map(Operation::highest_key);
        let mut pair = Pair::new(new(setup), setup, keys.max().unwrap_or(0), PATIENCE);
        restarts();
        let mut is_done = false;
        for (step, left) in history.iter().zip((0..history.len()).rev()) {
            let step = &self.steps[usize::from(*step)];
            let before = pair.timeline.len();
            // The shorter histories have been checked.
            pair.is_known = left > 0;
            pair.guarded(|| format!("{step:?}"), |pair| pair.step(step, Looks::Last))?;
            is_done = pair.timeline.len() > before;
        }
        if !is_done {
            return Ok(None);
        }
        let state = State::of(&mut pair);
        let end = || String::from("in the end");
        pair.guarded(end, |pair| pair.conclude(Looks::Last))?;
        Ok(Some(state))
    }
}

/// What tells two histories apart, as far as it can be seen: what the model knows, with times
/// relative to now; what the queue says without reading the time; and what the test holds. Queues
/// in one state may still differ, for example in which slot holds which key, so that each of the
/// two ways to explore finds something.
#[derive(PartialEq, Eq, Hash)]
struct State {
    model: Fingerprint,
    /// What the queue says that depends on what it has released so far.
    queue: (usize, usize, usize, Option<Duration>),
    /// The key of each ticket, and whether it can still be used.
    tickets: Vec<(Key, bool)>,
    /// When each sleeper comes back by itself.
    sleepers: Vec<Option<Duration>>,
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
        let due = left(stats.next_deadline);
        let mut model = pair.model.clone();
        let failures = (1..=pair.keys).map(|key| model.failures(key));
        Self {
            tickets: tickets.collect(),
            sleepers: pair.sleepers.iter().map(|it| left(it.until)).collect(),
            queue: (stats.active, stats.delayed, stats.total, due),
            woken: pair.woken,
            failures: failures.max().unwrap_or(0),
            drains: pair.drains.len(),
            model: pair.model.fingerprint().relative(),
        }
    }

    /// The soak comes to the end of all states within these bounds. Without them, failures,
    /// tickets, sleepers and waits for the drain have no end.
    fn is_within_bounds(&self) -> bool {
        let (tickets, sleepers) = (self.tickets.len(), self.sleepers.len());
        self.failures <= 1 && tickets <= 2 && sleepers <= 1 && self.drains <= 1
    }
}

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
    let setups = setups.iter();
    setups.map(|(due_keys_max, failure_records_max, holds)| {
        let mut setup = Configuration::exponential();
        setup.due_keys_max = *due_keys_max;
        setup.failure_records_max = *failure_records_max;
        setup.policy.cool_down_ns = u64::from(*holds);
        setup.policy.hold_failures = *holds;
        setup
    })
}

/// What is explored.
fn steps() -> Result<Vec<Operation>, String> {
    let lines = Rule::read("explored", include_str!("explored.txt"), 1)?.lines()?;
    let steps = story::steps(&lines)?.into_iter().map(|step| match step {
        Step::Operation(operation) => Ok(operation),
        _ => Err(String::from("no step of a history")),
    });
    steps.collect()
}

/// Explores queues of core that have this capacity.
fn explore_core(
    capacity: Option<usize>,
    is_bounded: bool,
    depth: usize,
) -> Result<Vec<(usize, usize)>, String> {
    let new: NewSubject = match capacity {
        Some(1) => boxed::<Direct<WithSuspension, Fixed<1>>>,
        Some(_) => boxed::<Direct<WithSuspension, Fixed<2>>>,
        None => boxed::<Direct<Plain, Growable>>,
    };
    let steps = steps()?;
    let scope = Scope {
        steps,
        depth,
        is_bounded,
    };
    let is_soak = rounds(1) > 1;
    let setups = setups(capacity).take(if is_soak { usize::MAX } else { 1 });
    let explored = setups.map(|setup| {
        let failed = |why| format!("for {capacity:?} keys, {setup:?}:\n{why}");
        explore(new, &setup, &scope).map_err(failed)
    });
    explored.collect()
}

/// Does every history of at most so many steps over two keys to a queue of core, as
/// [`run`](super::run) does drawn ones. The queue has room for one key, for two, or grows. Returns
/// how many histories and how many states there are. In the soak there are more queues of each
/// capacity.
///
/// # Errors
///
/// The shortest history that fails, and its queue.
///
/// # Examples
///
/// ```
/// let explored = requeue_proptest::histories::every_history(Some(1), 1).unwrap();
/// assert!(explored[0].0 > 1);
/// ```
pub fn every_history(capacity: Option<usize>, steps: usize) -> Result<Vec<(usize, usize)>, String> {
    explore_core(capacity, false, steps)
}

/// As [`every_history`], but continues a history only if it leads to a new state. With few failures
/// and calls there is an end of states.
///
/// # Errors
///
/// As [`every_history`].
///
/// # Examples
///
/// ```
/// let explored = requeue_proptest::histories::every_state(Some(1), 1).unwrap();
/// assert!(explored[0].1 > 1);
/// ```
pub fn every_state(capacity: Option<usize>, steps: usize) -> Result<Vec<(usize, usize)>, String> {
    explore_core(capacity, true, steps)
}
