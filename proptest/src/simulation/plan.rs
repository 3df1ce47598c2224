//! The history to be: which events happen when, and how the queue is shut down.

use std::cmp::Ordering;
use std::time::Duration;

use proptest::prelude::RngExt;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, TestRunner};

use super::World;
use super::check::Settings;
use super::choices::{Chosen, seeded};

/// How a queue is shut down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stop {
    /// Ready keys are processed, as long as
    /// [`Workers::drain_timeout`](requeue_core::Workers::drain_timeout) allows; delayed keys are
    /// handed back.
    Drain,
    /// Runs that have begun end; all other keys are handed back.
    Finish,
    /// Runs that have begun are aborted; their keys are handed back, too.
    Abort,
    /// The process dies, and nothing is handed back: its successor begins with what the world
    /// [lists](World::list).
    Crash,
}

impl Stop {
    /// From the simplest.
    pub(super) const ALL: [Self; 4] = [Self::Drain, Self::Finish, Self::Abort, Self::Crash];
}

/// All that makes a history, apart from the world and its reconciler.
#[derive(Clone)]
pub(super) struct Plan<K, E> {
    /// In the order of their times.
    pub(super) happenings: Vec<Happening<E>>,
    pub(super) chosen: Chosen<K>,
}

pub(super) type PlanOf<W> = Plan<<W as World>::Key, <W as World>::Event>;

/// What happens from outside, and how long after the beginning.
#[derive(Clone)]
pub(super) struct Happening<E> {
    pub(super) at: Duration,
    pub(super) what: What<E>,
}

#[derive(Clone)]
pub(super) enum What<E> {
    /// An event, and the number of its [`Tree`].
    Event(E, usize),
    Stop(Stop),
}

impl<K: Ord, E> Plan<K, E> {
    pub(super) fn events(&self) -> usize {
        let happenings = self.happenings.iter();
        happenings
            .filter(|it| matches!(it.what, What::Event(..)))
            .count()
    }

    /// Leaves out a run: what is chosen for later runs of the key is for those before them then.
    pub(super) fn leave_out_run(&mut self, key: &K, run: u64) {
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

/// Draws the happenings of a seed.
pub(super) fn drawn<W: World>(
    world: &W,
    seed: u64,
    settings: &Settings,
) -> (PlanOf<W>, Vec<Tree<W>>) {
    let mut rng = seeded(seed, 1);
    let mut runner = TestRunner::new_with_rng(Config::default(), seeded(seed, 3));
    let strategy = world.event();
    let most = [SHORT, 2 * SHORT, settings.events_max][rng.random_range(0..3)];
    let count = rng.random_range(1..=most.min(settings.events_max).max(1));
    let span_ms = u64::try_from(settings.within.as_millis()).unwrap_or(u64::MAX);
    // Some histories are crowded, some are leisurely.
    let span_ms = (span_ms / [1, 10, 100][rng.random_range(0..3)]).max(1);
    let (mut happenings, mut trees) = (Vec::new(), Vec::<Tree<W>>::new());
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
        let what = What::Event(trees[origin].current(), origin);
        happenings.push(Happening { at, what });
    }
    if settings.shuts_down && rng.random_range(0..4) == 0 {
        let within = u64::try_from(at.as_millis()).unwrap_or(u64::MAX) + span_ms / 4;
        let count = if world.list().is_some() { 4 } else { 3 };
        let at = Duration::from_millis(rng.random_range(0..=within));
        let what = What::Stop(Stop::ALL[rng.random_range(0..count)]);
        let place = happenings.partition_point(|before| before.at <= at);
        happenings.insert(place, Happening { at, what });
    }
    let chosen = Chosen::new();
    (Plan { happenings, chosen }, trees)
}

/// So many events a short history has at most. In a long one another event sets right what has gone
/// wrong with a key; what no call comes back to shows in short ones.
const SHORT: usize = 3;
