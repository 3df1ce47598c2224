//! What is left to chance: how long things take, who goes first, and what goes wrong.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::RngExt;
use proptest::test_runner::{RngAlgorithm, TestRng};

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

/// Where in a history something is chosen. A site is named by the key and its run rather than by a
/// count of steps, so that it means the same when other parts of the history are left out.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Site<K> {
    /// The active key; `None` while a worker looks for one.
    pub(super) key: Option<K>,
    /// The number of its run, or of the worker.
    pub(super) run: u64,
    /// Counts the choices within the run.
    pub(super) point: u32,
}

/// What may go wrong at a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Point {
    /// A request is on its way.
    Request,
    /// An answer is on its way.
    Answer,
    /// The run lets others go first.
    Pause,
    /// A worker could go on, and waits for its turn; so does a request that nobody waits for.
    Turn,
}

/// What is chosen. The default is what happens where nothing is left to chance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) delay: Duration,
    /// Among those whose time comes together the lowest goes first.
    pub(super) rank: u8,
    pub(super) fault: Option<Fault>,
}

/// The rank where nothing is chosen.
pub(super) const RANK: u8 = 2;

impl Default for Choice {
    fn default() -> Self {
        Self {
            delay: Duration::ZERO,
            rank: RANK,
            fault: None,
        }
    }
}

/// What is chosen at each site, apart from the defaults.
pub(super) type Chosen<K> = BTreeMap<Site<K>, Choice>;

/// Draws choices from a seed and remembers them, or repeats those that were made.
pub(super) struct Choices<K> {
    pub(super) chosen: Chosen<K>,
    /// `None` if only what is chosen already is repeated.
    rng: Option<ChoiceRng>,
    /// Happens at the next point where it can.
    pub(super) injected: Option<Fault>,
}

/// How a seed chooses.
pub(super) struct ChoiceRng {
    rng: TestRng,
    faults: Vec<Fault>,
    faults_left: u32,
    /// So many points come before the first that has a fault.
    calm_left: u32,
    /// One point in so many has a fault then.
    odds: u32,
    /// The same, once there was one.
    later_odds: u32,
    latency_ms: u64,
}

impl ChoiceRng {
    /// The temper of a history is drawn first, so that some are calm and some are wild.
    ///
    /// The first fault comes wherever a history with so many events may have got to: what fails
    /// early is mostly set right by what comes later, and what no call comes back to is late.
    pub(super) fn new(seed: u64, events: usize, settings: &Settings) -> Self {
        let mut rng = seeded(seed, 2);
        let events = u32::try_from(events).unwrap_or(u32::MAX);
        let is_wild = rng.random_range(0..6) > 0;
        let latency_ms = u64::try_from(settings.latency.as_millis()).unwrap_or(u64::MAX);
        let scale = [1, 4, 20][rng.random_range(0..3)];
        Self {
            faults: some_of(&settings.faults, &mut rng),
            faults_left: match settings.faults_max {
                1.. if is_wild => rng.random_range(1..=settings.faults_max),
                _ => 0,
            },
            calm_left: rng.random_range(0..=POINTS_PER_EVENT.saturating_mul(events)),
            odds: 1,
            later_odds: [2, 8, 32][rng.random_range(0..3)],
            latency_ms: (latency_ms / scale).max(1),
            rng,
        }
    }

    fn choose(&mut self, point: Point) -> Choice {
        // A task that is ready to run mostly does.
        if point == Point::Turn && self.rng.random_range(0..8) > 0 {
            return Choice::default();
        }
        Choice {
            delay: self.delay(),
            rank: self.rng.random_range(0..=2 * RANK),
            fault: self.fault(point),
        }
    }

    /// Whole milliseconds, so that times tie. Now and then something takes far too long.
    fn delay(&mut self) -> Duration {
        let most = self.latency_ms;
        Duration::from_millis(match self.rng.random_range(0..8) {
            0..=2 => 0,
            3..=6 => self.rng.random_range(1..=most),
            _ => self.rng.random_range(1..=most.saturating_mul(50)),
        })
    }

    fn fault(&mut self, point: Point) -> Option<Fault> {
        if point == Point::Turn {
            return None;
        }
        if self.calm_left > 0 {
            self.calm_left -= 1;
            return None;
        }
        if self.faults_left == 0 || self.rng.random_range(0..self.odds) > 0 {
            return None;
        }
        let possible = self.faults.iter().filter(|it| it.is_possible_at(point));
        let possible: Vec<_> = possible.copied().collect();
        let pick = self.rng.random_range(0..possible.len().max(1));
        let fault = *possible.get(pick)?;
        self.faults_left -= 1;
        self.odds = self.later_odds;
        Some(fault)
    }
}

impl Fault {
    fn is_possible_at(self, point: Point) -> bool {
        match self {
            Self::RequestLost | Self::EffectLate => point == Point::Request,
            Self::AnswerLost => point == Point::Answer,
            Self::Panic | Self::Abort => point != Point::Turn,
        }
    }
}

impl<K: Ord> Choices<K> {
    pub(super) fn new(chosen: Chosen<K>, rng: Option<ChoiceRng>) -> Self {
        Self {
            chosen,
            rng,
            injected: None,
        }
    }

    pub(super) fn choose(&mut self, site: Site<K>, point: Point) -> Choice {
        let mut choice = match &mut self.rng {
            Some(rng) if self.chosen.len() < CHOICES_MAX => rng.choose(point),
            _ => self.chosen.get(&site).copied().unwrap_or_default(),
        };
        let injected = self.injected.take_if(|fault| fault.is_possible_at(point));
        // In a history that was shortened, another kind of point may have the site.
        let fault = injected.or(choice.fault);
        choice.fault = fault.filter(|fault| fault.is_possible_at(point));
        if self.rng.is_some() && choice != Choice::default() {
            self.chosen.insert(site, choice);
        }
        choice
    }
}

/// All kinds, or one alone: that comes where it matters more often than among others.
fn some_of(faults: &[Fault], rng: &mut TestRng) -> Vec<Fault> {
    let alone = rng.random_range(0..2 * faults.len().max(1));
    match faults.get(alone) {
        Some(fault) => vec![*fault],
        None => faults.to_vec(),
    }
}

/// The random numbers of a seed, for one of its purposes.
pub(super) fn seeded(seed: u64, purpose: u8) -> TestRng {
    let mut bytes = [purpose; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    TestRng::from_seed(RngAlgorithm::ChaCha, &bytes)
}

/// After so many choices a history goes on without chance.
const CHOICES_MAX: usize = 1_000;

/// About so many points there are in the run that an event leads to.
const POINTS_PER_EVENT: u32 = 4;
