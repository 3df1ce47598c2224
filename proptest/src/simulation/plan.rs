//! The history to be: which events come when, and what ends the queue.

use std::cmp::Ordering;
use std::time::Duration;

use proptest::prelude::RngExt;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, TestRunner};

use super::World;
use super::choices::{Chosen, seeded};

/// How a queue is shut down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stop {
    /// Ready keys are worked on, as long as the workers'
    /// [deadline](requeue_core::Workers::drain_timeout) allows; what is delayed is handed back.
    Drain,
    /// Runs that have begun end; all else is handed back.
    Finish,
    /// Runs that have begun are aborted; their keys are handed back, too.
    Abort,
    /// The process dies, and nothing is handed back: its successor begins with what the world
    /// [lists](World::list).
    Crash,
}

/// All that makes a history, apart from the world and its reconciler.
pub(super) struct Plan<W: World> {
    pub(super) arrivals: Vec<Arrival<W::Event>>,
    pub(super) stop: Option<(Duration, Stop)>,
    pub(super) chosen: Chosen<W::Key>,
}

/// An event, and when it comes.
#[derive(Clone, Debug)]
pub(super) struct Arrival<E> {
    pub(super) at: Duration,
    pub(super) event: E,
    /// Whose value the event is, among those that were drawn.
    pub(super) origin: usize,
}

impl<W: World> Clone for Plan<W> {
    fn clone(&self) -> Self {
        Self {
            arrivals: self.arrivals.clone(),
            stop: self.stop,
            chosen: self.chosen.clone(),
        }
    }
}

impl<W: World> Plan<W> {
    /// Leaves out a run: what is chosen for later runs of the key is for those before them then.
    pub(super) fn leave_out_run(&mut self, key: &W::Key, run: u32) {
        let chosen = std::mem::take(&mut self.chosen).into_iter();
        let moved = chosen.filter_map(|(mut site, choice)| {
            if site.key.as_ref() == Some(key) {
                match site.run.cmp(&run) {
                    Ordering::Less => {}
                    Ordering::Equal => return None,
                    Ordering::Greater => site.run -= 1,
                }
            }
            Some((site, choice))
        });
        self.chosen = moved.collect();
    }
}

/// How an event that was drawn is made simpler.
pub(super) type Tree<W> = Box<dyn ValueTree<Value = <W as World>::Event>>;

/// Within which bounds histories are drawn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) events_max: usize,
    pub(super) span: Duration,
    pub(super) stops: bool,
}

/// Draws the events of a seed.
pub(super) fn drawn<W: World>(world: &W, seed: u64, bounds: Bounds) -> (Plan<W>, Vec<Tree<W>>) {
    let mut rng = seeded(seed, 1);
    let mut runner = TestRunner::new_with_rng(Config::default(), seeded(seed, 3));
    let strategy = world.event();
    let most = [SHORT, 2 * SHORT, bounds.events_max][rng.random_range(0..3)];
    let count = rng.random_range(1..=most.min(bounds.events_max).max(1));
    let span_ms = u64::try_from(bounds.span.as_millis()).unwrap_or(u64::MAX);
    // Some histories are crowded, some are leisurely.
    let span_ms = (span_ms / [1, 10, 100][rng.random_range(0..3)]).max(1);
    let (mut arrivals, mut trees) = (Vec::new(), Vec::<Tree<W>>::new());
    let mut at = Duration::ZERO;
    for _ in 0..count {
        // A third comes in bursts, and some of a burst are the same again.
        let is_burst = rng.random_range(0..3) == 0;
        if !is_burst {
            let gap = rng.random_range(0..=2 * span_ms / count as u64);
            at += Duration::from_millis(gap);
        }
        let is_same = is_burst && rng.random_range(0..2) == 0 && !trees.is_empty();
        if !is_same {
            match strategy.new_tree(&mut runner) {
                Ok(tree) => trees.push(tree),
                // A filter that was too strict: one event less.
                Err(_) => continue,
            }
        }
        let origin = trees.len() - 1;
        let event = trees[origin].current();
        arrivals.push(Arrival { at, event, origin });
    }
    let stop = (bounds.stops && rng.random_range(0..4) == 0).then(|| {
        let within = u64::try_from(at.as_millis()).unwrap_or(u64::MAX) + span_ms / 4;
        let kinds = [Stop::Drain, Stop::Finish, Stop::Abort, Stop::Crash];
        let count = if world.list().is_some() { 4 } else { 3 };
        let at = Duration::from_millis(rng.random_range(0..=within));
        (at, kinds[rng.random_range(0..count)])
    });
    let chosen = Chosen::new();
    let plan = Plan {
        arrivals,
        stop,
        chosen,
    };
    (plan, trees)
}

/// So many events a short history has at most. In a long one another event sets right what has gone
/// wrong with a key; what no call comes back to shows in short ones.
const SHORT: usize = 3;
