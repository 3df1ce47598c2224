//! Many seeds, and the shortest history of one that fails.

use std::env;
use std::fmt::{self, Debug};
use std::time::Duration;

use requeue_core::Workers;
use requeue_core::limiter::RateLimiter;

use super::World;
use super::choices::{ChoiceRng, Choices, Fault, Terms};
use super::driven::Driven;
use super::plan::{Bounds, Plan, Tree, drawn};
use super::play::{Played, play};
use super::settings::{Settings, limited};
use super::shrink::shrunk;
use super::timeline::{Breach, Property, excerpt, timeline};

/// Many histories of one world, each from its seed.
///
/// At first: 256 seeds, two workers, client-go's default limiter, up to 24 events within ten
/// seconds, calls of up to 20 ms and now and then of up to a second, up to six faults of any kind,
/// and a shutdown in a quarter of the histories. Then all is left alone until nothing is left to
/// do, or for half an hour where keys come back for ever.
///
/// 256 histories show what goes wrong in one of a hundred. What needs a rare event and a fault in
/// the run that follows takes thousands: give rare events more weight in [`World::event`], or run
/// more seeds at night (see [`run`](Self::run)).
///
/// # Examples
///
/// As a test of one's own, with the world of the [module](super)'s example:
///
/// ```no_run
/// # use requeue_proptest::proptest::prelude::*;
/// # use requeue_core::{Action, Workers};
/// # use requeue_proptest::simulation::{CallFailed, Check, Context, Keys, World};
/// # #[derive(Default)]
/// # struct Replica;
/// # impl World for Replica {
/// #     type Key = u8;
/// #     type Event = u8;
/// #     type Error = CallFailed;
/// #     fn event(&self) -> BoxedStrategy<u8> { any::<u8>().boxed() }
/// #     fn happen(&mut self, key: &u8, keys: &Keys<u8>) { let _ = keys.add(*key); }
/// #     async fn reconcile(_: Context<Self>, _: u8) -> Result<Action, CallFailed> {
/// #         Ok(Action::Success)
/// #     }
/// # }
/// #[test]
/// fn converges() {
///     Check::new(Replica::default)
///         .workers(Workers::new(3).max_retries(10))
///         .seeds(1_000)
///         .run();
/// }
/// ```
#[must_use = "nothing is checked until it is run"]
pub struct Check<W: World> {
    world: Box<dyn Fn() -> W>,
    settings: Settings<W>,
    bounds: Bounds,
    terms: Terms,
    settle: Duration,
    seeds: u64,
}

impl<W: World> Check<W> {
    /// Histories of the worlds that `world` makes, each a new one.
    pub fn new(world: impl Fn() -> W + 'static) -> Self {
        Self {
            world: Box::new(world),
            settings: Settings::new(),
            bounds: Bounds {
                events_max: 24,
                span: Duration::from_secs(10),
                stops: true,
            },
            terms: Terms {
                faults: Fault::ALL.to_vec(),
                faults_max: 6,
                latency: Duration::from_millis(20),
            },
            settle: Duration::from_secs(1_800),
            seeds: 256,
        }
    }

    /// Sets how many seeds there are, counted from zero.
    pub fn seeds(mut self, seeds: u64) -> Self {
        self.seeds = seeds;
        self
    }

    /// Sets how many workers there are, and what they do with keys that fail: a number, or what
    /// the runtimes' `run` takes.
    pub fn workers(mut self, workers: impl Into<Workers<'static, W::Key, W::Error>>) -> Self {
        self.settings.workers = std::rc::Rc::new(workers.into());
        self
    }

    /// Sets the limiter of the queues.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// let (base, max) = (Duration::from_millis(1), Duration::from_secs(60));
    /// let check = Check::new(Replica::default)
    ///     .limiter(move || Exponential::new(base, max))
    ///     .seeds(50);
    /// check.run();
    /// ```
    pub fn limiter<L: RateLimiter + 'static>(mut self, limiter: impl Fn() -> L + 'static) -> Self {
        self.settings.queue = limited(limiter);
        self
    }

    /// Sets how queues are made, for example with a capacity: any [`Queue`](requeue_core::Queue) of
    /// core. A [`Fixed`](requeue_core::storage::Fixed) one needs
    /// [`WithSuspension`](requeue_core::priority::WithSuspension).
    pub fn queue<Q: Driven<W::Key> + 'static>(mut self, queue: impl Fn() -> Q + 'static) -> Self {
        self.settings.queue = std::rc::Rc::new(move || Box::new(queue()));
        self
    }

    /// Sets how many events there are at most, and about how long they take to come.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// let storm = Check::new(Replica::default).events(500, Duration::from_secs(1)).seeds(10);
    /// storm.run();
    /// ```
    pub fn events(mut self, events_max: usize, within: Duration) -> Self {
        self.bounds.events_max = events_max;
        self.bounds.span = within;
        self
    }

    /// Sets which faults there are, and how many of them in a history at most.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// let check = Check::new(Replica::default).faults(&[Fault::AnswerLost], 50).seeds(50);
    /// check.run();
    /// ```
    pub fn faults(mut self, faults: &[Fault], at_most: u32) -> Self {
        self.terms.faults = faults.to_vec();
        self.terms.faults_max = at_most;
        self
    }

    /// Sets how long a call usually takes in each direction, in whole milliseconds.
    pub fn latency(mut self, latency: Duration) -> Self {
        self.terms.latency = latency;
        self
    }

    /// Lets no history shut its queue down.
    pub fn without_shutdown(mut self) -> Self {
        self.bounds.stops = false;
        self
    }

    /// Sets how long the simulation runs without events before it checks `eventually`, for a
    /// reconciler that always has work. Must be longer than the longest delay of the limiter.
    pub fn settle(mut self, settle: Duration) -> Self {
        self.settle = settle;
        self
    }

    /// Sets how long one run may take; ten minutes at first.
    pub fn run_max(mut self, run_max: Duration) -> Self {
        self.settings.run_max = run_max;
        self
    }

    /// Sets how many steps a history may have; 100,000 at first.
    pub fn steps_max(mut self, steps_max: u64) -> Self {
        self.settings.steps_max = steps_max;
        self
    }

    /// Checks every seed, as a test. `REQUEUE_SIM_SEEDS` sets how many there are, for a long run;
    /// `REQUEUE_SIM_FIRST` says with which they begin, so that the next long run has others;
    /// `REQUEUE_SIM_SEED` names the only one, to replay it.
    ///
    /// # Panics
    ///
    /// If a property is broken, with the [failure](Failure); or if a variable is not a number.
    #[track_caller]
    pub fn run(mut self) {
        if let Some(seeds) = number("REQUEUE_SIM_SEEDS") {
            self.seeds = seeds;
        }
        let outcome = match number("REQUEUE_SIM_SEED") {
            Some(seed) => self.replay(seed),
            None => self.find_from(number("REQUEUE_SIM_FIRST").unwrap_or(0)),
        };
        #[expect(clippy::panic, reason = "this is how a test fails")]
        if let Err(failure) = outcome {
            panic!("{failure}");
        }
    }

    /// Checks every seed, until one fails.
    ///
    /// # Errors
    ///
    /// The failure of the first that does.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// let checked = Check::new(Replica::default).seeds(100).find()?;
    /// assert_eq!(checked.histories, 100);
    /// # Ok::<(), Failure>(())
    /// ```
    pub fn find(&self) -> Result<Summary, Failure> {
        self.find_from(0)
    }

    fn find_from(&self, first: u64) -> Result<Summary, Failure> {
        let mut summary = Summary::default();
        for offset in 0..self.seeds {
            summary += self.replay(first.wrapping_add(offset))?;
        }
        Ok(summary)
    }

    /// Checks one seed.
    ///
    /// # Errors
    ///
    /// Its failure, if it fails.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// let check = Check::new(Replica::default).workers(3);
    /// assert_eq!(check.replay(7)?, check.replay(7)?);
    /// # Ok::<(), Failure>(())
    /// ```
    pub fn replay(&self, seed: u64) -> Result<Summary, Failure> {
        let (plan, trees) = drawn(&(self.world)(), seed, self.bounds);
        let played = self.play(&plan, self.choices(seed, &plan));
        if let Some(breach) = played.breach {
            let chosen = played.chosen;
            return Err(self.shorten(seed, breach, Plan { chosen, ..plan }, trees));
        }
        let summary = Summary {
            histories: 1,
            steps: played.steps,
            runs: played.runs,
        };
        // What one finds out only by trying is tried for one seed in so many.
        if seed.is_multiple_of(TWICE_EVERY) {
            let chosen = played.chosen;
            let plan = Plan { chosen, ..plan };
            if self.play_again(&plan).log != played.log {
                let breach = other_history("though it was only played once more");
                let log = excerpt(&timeline(&played.log));
                return Err(Failure::new(seed, breach, log, &plan, &plan));
            }
        }
        Ok(summary)
    }

    /// Returns what happens under a seed, whole: the virtual time, who, the key, and what.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// let check = Check::new(Replica::default);
    /// assert!(check.history(7).contains("run 1 begins"));
    /// assert_eq!(check.history(7), check.history(7));
    /// ```
    pub fn history(&self, seed: u64) -> String {
        let (plan, _) = drawn(&(self.world)(), seed, self.bounds);
        timeline(&self.play(&plan, self.choices(seed, &plan)).log)
    }

    /// Shortens what failed, and reports it.
    fn shorten(&self, seed: u64, breach: Breach, plan: Plan<W>, trees: Vec<Tree<W>>) -> Failure {
        let first = self.play_again(&plan);
        if first.breach.as_ref() != Some(&breach) {
            let log = excerpt(&timeline(&first.log));
            let reason = format!("first it was: {breach}");
            return Failure::new(seed, other_history(&reason), log, &plan, &plan);
        }
        let property = breach.property;
        let shortest = shrunk(plan.clone(), trees, |plan| {
            let breach = self.play_again(plan).breach;
            breach.is_some_and(|breach| breach.property == property)
        });
        let again = self.play_again(&shortest);
        let log = excerpt(&timeline(&again.log));
        Failure::new(seed, again.breach.unwrap_or(breach), log, &shortest, &plan)
    }

    fn choices(&self, seed: u64, plan: &Plan<W>) -> Choices<W::Key> {
        let events = u32::try_from(plan.arrivals.len()).unwrap_or(u32::MAX);
        let rng = ChoiceRng::new(seed, events, &self.terms);
        Choices::drawn(rng)
    }

    fn play_again(&self, plan: &Plan<W>) -> Played<W> {
        self.play(plan, Choices::replayed(plan.chosen.clone()))
    }

    fn play(&self, plan: &Plan<W>, choices: Choices<W::Key>) -> Played<W> {
        play((self.world)(), &self.settings, self.settle, plan, choices)
    }
}

impl<W: World> Debug for Check<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Check")
            .field("seeds", &self.seeds)
            .field("bounds", &self.bounds)
            .field("faults", &self.terms.faults)
            .finish_non_exhaustive()
    }
}

/// What was checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// Histories from their first event until all was quiet.
    pub histories: u64,
    /// Runs of the reconciler in them.
    pub runs: u64,
    /// Steps in them.
    pub steps: u64,
}

impl std::ops::AddAssign for Summary {
    fn add_assign(&mut self, other: Self) {
        self.histories += other.histories;
        self.runs += other.runs;
        self.steps += other.steps;
    }
}

/// A seed that fails, and the shortest history found that breaks the same property. Its `Display`
/// is the whole report.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Failure {
    /// The seed.
    pub seed: u64,
    /// The property, and why it does not hold in the shortest history.
    pub breach: Breach,
    /// The shortest history: the virtual time, who, the key, and what.
    pub timeline: String,
    /// How many events there are in the shortest history.
    pub events: usize,
    /// How many events the seed drew.
    pub events_drawn: usize,
    /// How many things are left to chance in it: delays, faults, and who goes first.
    pub choices: usize,
    /// How many the seed drew.
    pub choices_drawn: usize,
}

impl Failure {
    fn new<W: World>(
        seed: u64,
        breach: Breach,
        timeline: String,
        plan: &Plan<W>,
        drawn: &Plan<W>,
    ) -> Self {
        Self {
            seed,
            breach,
            timeline,
            events: plan.arrivals.len(),
            events_drawn: drawn.arrivals.len(),
            choices: plan.chosen.len(),
            choices_drawn: drawn.chosen.len(),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}: {}", self.seed, self.breach)?;
        writeln!(f, "to replay it: REQUEUE_SIM_SEED={}", self.seed)?;
        writeln!(
            f,
            "the shortest history found, with {} of {} events and {} of {} turns of chance:",
            self.events, self.events_drawn, self.choices, self.choices_drawn
        )?;
        f.write_str(&self.timeline)
    }
}

impl std::error::Error for Failure {}

fn other_history(reason: &str) -> Breach {
    Breach {
        property: Property::SameSeedSameHistory,
        reason: format!("something in the world is left to chance: {reason}"),
    }
}

/// The number in a variable of the environment, if it is set.
#[expect(
    clippy::panic,
    reason = "a test with a setting that is no number fails"
)]
fn number(variable: &str) -> Option<u64> {
    let text = env::var(variable).ok()?;
    match text.parse() {
        Ok(number) => Some(number),
        Err(error) => panic!("{variable}={text}: {error}"),
    }
}

/// Every so many seeds one is played twice.
const TWICE_EVERY: u64 = 16;
