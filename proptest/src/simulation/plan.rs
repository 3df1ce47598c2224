//! What a seed decides: which events come when, how the queue is shut down, how long calls take and
//! runs wait, and what fails.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::RngExt;
use proptest::sample::select;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::World;
use super::check::Settings;

/// Something that goes wrong in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Fault {
    /// A call fails, and had no effect.
    RequestLost,
    /// A call fails, and had its effect all the same.
    AnswerLost,
    /// A call fails, as one that times out, and has its effect later. Its key is added then, as by a
    /// watch that sees the effect.
    EffectLate,
    /// The run panics.
    Panic,
    /// The run's future is dropped, as an aborted task's is.
    Abort,
}

impl Fault {
    /// All there are.
    pub const ALL: &'static [Self] = &[
        Self::RequestLost,
        Self::AnswerLost,
        Self::EffectLate,
        Self::Panic,
        Self::Abort,
    ];
}

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

/// All that makes a history, apart from the world and its reconciler.
#[derive(Clone)]
pub(super) struct Plan<K, E> {
    pub(super) happenings: Vec<Happening<E>>,
    pub(super) chosen: Chosen<K>,
}

pub(super) type PlanOf<W> = Plan<<W as World>::Key, <W as World>::Event>;

/// What happens from outside, and how long after what happened before.
#[derive(Clone)]
pub(super) struct Happening<E> {
    pub(super) gap: Duration,
    pub(super) what: What<E>,
    /// The number of its [`Tree`].
    pub(super) tree: usize,
}

#[derive(Clone, Debug)]
pub(super) enum What<E> {
    Event(E),
    Stop(Stop),
}

/// How a happening that was drawn is made simpler.
pub(super) type Tree<W> = Box<dyn ValueTree<Value = What<<W as World>::Event>>>;

/// What is chosen at each site, apart from the defaults.
pub(super) type Chosen<K> = BTreeMap<Site<K>, Choice>;

/// Where in a history something is chosen. A site is named by the key and its run rather than by a
/// count of steps, so that it means the same when other parts of the history are left out.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Site<K> {
    pub(super) key: K,
    /// The number of the run of the key.
    pub(super) run: u64,
    /// Counts the choices within the run.
    pub(super) point: u32,
}

/// What is chosen. The default is what happens where nothing is left to chance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) delay: Duration,
    pub(super) fault: Option<Fault>,
}

impl<K, E> Plan<K, E> {
    pub(super) fn events(&self) -> usize {
        let whats = self.happenings.iter().map(|it| &it.what);
        whats.filter(|what| matches!(what, What::Event(_))).count()
    }
}

/// Draws a plan in which nothing is chosen yet, and how it will be.
pub(super) fn drawn<W: World>(
    seed: u64,
    world: &W,
    settings: &Settings,
) -> (PlanOf<W>, Vec<Tree<W>>, Temper) {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let mut rng = runner.new_rng();
    let events = world.event().prop_map(What::Event).boxed();
    let mut stops = vec![Stop::Drain, Stop::Finish, Stop::Abort];
    stops.extend(world.list().map(|_| Stop::Crash));
    let stops = select(stops).prop_map(What::Stop).boxed();
    let most = [SHORT, 2 * SHORT, settings.events_max][rng.random_range(0..3)];
    let count = rng.random_range(1..=most.min(settings.events_max).max(1));
    // In a quarter of the histories the queue is shut down, after some event.
    let shuts_down = settings.shuts_down && rng.random_ratio(1, 4);
    let stop_place = shuts_down.then(|| rng.random_range(1..=count));
    // Some histories are crowded, some are leisurely.
    let span_ms = millis(settings.within) / [1, 10, 100][rng.random_range(0..3)];
    let gap_max_ms = 2 * span_ms / count as u64;
    let (mut happenings, mut trees) = (Vec::new(), Vec::<Tree<W>>::new());
    for place in 0..count + usize::from(shuts_down) {
        // A third comes in bursts, and half of a burst is the same event again.
        let is_burst = rng.random_ratio(1, 3);
        let is_stop = stop_place == Some(place);
        if is_stop || !is_burst || rng.random_ratio(1, 2) {
            // A filter that is too strict draws no event.
            trees.extend(if is_stop { &stops } else { &events }.new_tree(&mut runner));
        }
        let gaps_ms = if is_burst { 0..=0 } else { 0..=gap_max_ms };
        happenings.extend(trees.last().map(|tree| Happening {
            gap: Duration::from_millis(rng.random_range(gaps_ms)),
            what: tree.current(),
            tree: trees.len() - 1,
        }));
    }
    let chosen = Chosen::new();
    let plan = Plan { happenings, chosen };
    let temper = Temper::new(runner.new_rng(), plan.events(), settings);
    (plan, trees, temper)
}

/// How a history chooses. Some histories are calm, and some are wild.
pub(super) struct Temper {
    rng: TestRng,
    faults: Vec<Fault>,
    faults_left: u32,
    /// How many points come before the next fault.
    calm_left: u32,
    /// How many points come between two faults at most.
    calm_max: u32,
    latency_ms: u64,
}

impl Temper {
    /// The first fault may come anywhere in a history with so many events. A later event usually
    /// repairs what an early fault has broken, so only a late fault shows what no run repairs.
    fn new(mut rng: TestRng, events: usize, settings: &Settings) -> Self {
        let events = u32::try_from(events).unwrap_or(u32::MAX);
        let mut faults = settings.faults.clone();
        // One kind alone comes where it matters more often than among others.
        if !faults.is_empty() && rng.random_ratio(1, 2) {
            faults = vec![faults[rng.random_range(0..faults.len())]];
        }
        Self {
            faults,
            faults_left: rng.random_range(0..=settings.faults_max),
            calm_left: rng.random_range(0..=POINTS_PER_EVENT.saturating_mul(events)),
            calm_max: [1, 7, 31][rng.random_range(0..3)],
            latency_ms: (millis(settings.latency) / [1, 4, 20][rng.random_range(0..3)]).max(1),
            rng,
        }
    }

    pub(super) fn choose(&mut self, possible: &[Fault]) -> Choice {
        // A task that is ready to run mostly does.
        if possible.is_empty() && self.rng.random_ratio(7, 8) {
            return Choice::default();
        }
        // Whole milliseconds, so that times tie. Now and then something takes far too long.
        let far_too_long_ms = self.latency_ms.saturating_mul(50);
        let delay_ms = match self.rng.random_range(0..8) {
            0..=2 => 0,
            3..=6 => self.rng.random_range(1..=self.latency_ms),
            _ => self.rng.random_range(1..=far_too_long_ms),
        };
        Choice {
            delay: Duration::from_millis(delay_ms),
            fault: self.fault(possible),
        }
    }

    fn fault(&mut self, possible: &[Fault]) -> Option<Fault> {
        if possible.is_empty() || self.faults_left == 0 {
            return None;
        }
        if self.calm_left > 0 {
            self.calm_left -= 1;
            return None;
        }
        let faults = self.faults.iter().filter(|fault| possible.contains(fault));
        let faults: Vec<_> = faults.copied().collect();
        let pick = self.rng.random_range(0..faults.len().max(1));
        let fault = *faults.get(pick)?;
        self.faults_left -= 1;
        self.calm_left = self.rng.random_range(0..=self.calm_max);
        Some(fault)
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// So many events a short history has at most. In a long one another event sets right what has gone
/// wrong with a key; what no call comes back to shows in short ones.
const SHORT: usize = 3;

/// About so many points there are in the run that an event leads to.
const POINTS_PER_EVENT: u32 = 4;
