//! Many seeds, and the shortest history of one that fails.

use std::collections::BTreeMap;
use std::env;
use std::fmt;
use std::rc::Rc;
use std::time::Duration;

use requeue_core::binding::Suspends;
use requeue_core::limiter::{RateLimiter, default_controller};
use requeue_core::metrics::Metrics;
use requeue_core::priority::Priorities;
use requeue_core::{Queue, Workers};

use super::World;
use super::driver::Simulation;
use super::history::excerpt;
use super::plan::{Fault, PlanOf, Temper, Tree, drawn};
use super::queue::{Simulated, Start, processes};
use super::shrink::shrunk;

/// Many histories of one world, each from its seed.
///
/// By default: 256 seeds, two workers, client-go's default limiter, and the defaults of
/// [`Settings`]. Now and then a call takes up to a second, and a quarter of the histories have a
/// shutdown. After the last event, a history goes on until nothing is left to do, or for half an
/// hour if keys run again for ever.
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
    pub(super) world: Box<dyn Fn() -> W>,
    pub(super) workers: Rc<Workers<'static, W::Key, W::Error>>,
    pub(super) start: Rc<Start<W>>,
    pub(super) settings: Settings,
    seeds: u64,
}

/// How the histories of a [`Check`] are drawn and played. [`Check::settings`] changes them.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// How many events there are at most; 24 by default.
    pub events_max: usize,
    /// About how long the events take to come; 10 seconds by default.
    pub within: Duration,
    /// Which faults there are; all by default.
    pub faults: Vec<Fault>,
    /// How many faults there are at most; 6 by default.
    pub faults_max: u32,
    /// How long a call usually takes in each direction, in whole milliseconds; 20 ms by default.
    pub latency: Duration,
    /// Whether some histories shut their queue down; true by default.
    pub shuts_down: bool,
    /// How long the simulation runs without events before it checks `eventually`, for a reconciler
    /// that always has work; half an hour by default. Must be longer than the longest delay of the
    /// limiter.
    pub settle: Duration,
    /// How long one run may take; ten minutes by default.
    pub run_max: Duration,
    /// How many steps a history may have; 100,000 by default.
    pub steps_max: u64,
}

impl<W: World> Check<W> {
    /// Creates a check of the worlds that `world` makes, a new one for each history.
    pub fn new(world: impl Fn() -> W + 'static) -> Self {
        Self {
            world: Box::new(world),
            workers: Rc::new(Workers::new(2)),
            // Its hashes are random, and no result depends on them: lists and a heap have an order.
            start: processes::<W, Simulated<_, _, _, _, _>>(|| {
                Queue::growable(default_controller())
            }),
            settings: Settings {
                events_max: 24,
                within: Duration::from_secs(10),
                faults: Fault::ALL.to_vec(),
                faults_max: 6,
                latency: Duration::from_millis(20),
                shuts_down: true,
                settle: Duration::from_secs(1_800),
                run_max: Duration::from_secs(600),
                steps_max: 100_000,
            },
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
        self.workers = Rc::new(workers.into());
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
    pub fn limiter<L: RateLimiter + 'static>(self, limiter: impl Fn() -> L + 'static) -> Self {
        self.queue(move || Queue::growable(limiter()))
    }

    /// Sets how queues are made, for example with a capacity: any [`Queue`] of core. A
    /// [`Fixed`](requeue_core::storage::Fixed) one needs
    /// [`WithSuspension`](requeue_core::priority::WithSuspension).
    ///
    /// # Examples
    ///
    /// A queue with room for one key, which is paused for a second:
    ///
    /// ```
    /// use requeue_core::limiter::NoLimit;
    /// use requeue_core::priority::WithSuspension;
    /// use requeue_core::storage::Fixed;
    /// use requeue_core::{Queue, Rejected};
    #[doc = include_str!("example.txt")]
    /// type Small = SimQueue<&'static str, WithSuspension, NoLimit, Fixed<1>>;
    ///
    /// let small = || Queue::<_, WithSuspension, NoLimit, Fixed<1>>::new(NoLimit);
    /// let mut sim = Check::new(Replica::default).queue(small).by_hand();
    /// let queue = sim.keys().queue::<Small>().expect("it has these types");
    /// queue.pause();
    /// sim.happen(&5)?;
    /// assert_eq!(sim.keys().add("other"), Err(Rejected::Full("other")));
    /// sim.advance(Duration::from_secs(1))?;
    /// assert_eq!(sim.world(|world| world.real), 0);
    ///
    /// queue.unpause();
    /// sim.run_until_idle()?;
    /// assert_eq!(sim.world(|world| world.real), 5);
    /// assert!(sim.keys().queue::<SimQueue<&'static str>>().is_none(), "it has other types");
    /// # Ok::<(), Breach>(())
    /// ```
    pub fn queue<P, L, S, M>(
        mut self,
        queue: impl Fn() -> Queue<W::Key, P, L, S, M> + 'static,
    ) -> Self
    where
        P: Priorities + 'static,
        L: RateLimiter + 'static,
        S: Suspends<P> + 'static,
        M: Metrics + 'static,
    {
        self.start = processes::<W, Simulated<_, P, L, S, M>>(queue);
        self
    }

    /// Changes the [`Settings`].
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// let storm = Check::new(Replica::default).seeds(10).settings(|settings| {
    ///     settings.events_max = 500;
    ///     settings.within = Duration::from_secs(1);
    ///     settings.faults = vec![Fault::AnswerLost];
    ///     settings.faults_max = 50;
    /// });
    /// storm.run();
    /// ```
    pub fn settings(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        change(&mut self.settings);
        self
    }

    /// Checks every seed, as a test. `REQUEUE_SIM_SEEDS` sets how many there are, for a long run;
    /// `REQUEUE_SIM_FIRST` sets the first, so that the next long run has others;
    /// `REQUEUE_SIM_SEED` sets the only one, to replay it.
    ///
    /// # Panics
    ///
    /// If a property is broken, with the [failure](Failure); or if a variable is not a number.
    #[track_caller]
    #[expect(clippy::panic, reason = "this is how a test fails")]
    pub fn run(self) {
        let number = |variable: &str| {
            let text = env::var(variable).ok()?;
            let number = text.parse();
            Some(number.unwrap_or_else(|error| panic!("{variable}={text}: {error}")))
        };
        let seeds = number("REQUEUE_SIM_SEEDS").unwrap_or(self.seeds);
        let outcome = match number("REQUEUE_SIM_SEED") {
            Some(seed) => self.replay(seed),
            None => self.find_from(number("REQUEUE_SIM_FIRST").unwrap_or(0), seeds),
        };
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
        self.find_from(0, self.seeds)
    }

    fn find_from(&self, first: u64, seeds: u64) -> Result<Summary, Failure> {
        let mut all = Summary::default();
        for offset in 0..seeds {
            let one = self.replay(first.wrapping_add(offset))?;
            all.histories += 1;
            all.runs += one.runs;
            all.steps += one.steps;
        }
        Ok(all)
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
        let (mut plan, trees, first) = self.draw(seed);
        let summary = Summary {
            histories: 1,
            runs: first.history.runs.take().into_values().sum(),
            steps: first.steps,
        };
        // Only a second try shows that something is left to chance. For one seed in so many.
        if first.breach.is_none() && !seed.is_multiple_of(TWICE_EVERY) {
            return Ok(summary);
        }
        let (events_drawn, choices_drawn) = (plan.events(), plan.chosen.len());
        let mut again = self.play(&plan, None);
        if again.timeline() != first.timeline() {
            let reason = "something in the world is left to chance: it was only played once more";
            again.breach = Some(Breach {
                property: Property::SameSeedSameHistory,
                reason: String::from(reason),
            });
        } else if let Some(breach) = first.breach {
            plan = shrunk::<W>(plan, trees, |plan| {
                let other = self.play(plan, None).breach;
                other.is_some_and(|other| other.property == breach.property)
            });
            again = self.play(&plan, None);
        }
        let timeline = excerpt(&again.timeline());
        again.breach.map_or(Ok(summary), |breach| {
            Err(Failure {
                seed,
                breach,
                timeline,
                events: plan.events(),
                events_drawn,
                choices: plan.chosen.len(),
                choices_drawn,
            })
        })
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
        self.draw(seed).2.timeline()
    }

    /// Creates a simulation with these workers and queues, for a scripted test, in which nothing is
    /// left to chance.
    pub fn by_hand(&self) -> Simulation<W> {
        Simulation::new(self, BTreeMap::new(), None)
    }

    /// Draws the plan of a seed, and plays it.
    fn draw(&self, seed: u64) -> (PlanOf<W>, Vec<Tree<W>>, Simulation<W>) {
        let (mut plan, trees, temper) = drawn(seed, &(self.world)(), &self.settings);
        let played = self.play(&plan, Some(temper));
        plan.chosen = played.history.chosen.take();
        (plan, trees, played)
    }

    /// Plays a plan with its own choices, or as the temper chooses.
    fn play(&self, plan: &PlanOf<W>, temper: Option<Temper>) -> Simulation<W> {
        let mut simulation = Simulation::new(self, plan.chosen.clone(), temper);
        simulation.breach = simulation.play(&plan.happenings).err();
        simulation
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

/// A kind of promise that a history can break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Property {
    /// [`World::always`], after some step.
    Always,
    /// [`World::eventually`], once all was quiet.
    Eventually,
    /// A run ends.
    RunEnds,
    /// A history ends: it does not take steps for ever.
    HistoryEnds,
    /// The world's own code does not panic.
    WorldPanics,
    /// The same seed gives the same history.
    SameSeedSameHistory,
}

/// A property that does not hold, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Breach {
    /// The property that does not hold.
    pub property: Property,
    /// The reason in words, with the virtual time, and the key if there is one.
    pub reason: String,
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.property {
            Property::Always => "`always` does not hold",
            Property::Eventually => "`eventually` does not hold",
            Property::RunEnds => "a run does not end",
            Property::HistoryEnds => "there is no end to it",
            Property::WorldPanics => "the world panics",
            Property::SameSeedSameHistory => "the same seed gives another history",
        };
        write!(f, "{what}: {}", self.reason)
    }
}

impl std::error::Error for Breach {}

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
    /// How many of its delays and faults are drawn.
    pub choices: usize,
    /// How many the seed drew.
    pub choices_drawn: usize,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}: {}", self.seed, self.breach)?;
        writeln!(f, "to replay it: REQUEUE_SIM_SEED={}", self.seed)?;
        writeln!(
            f,
            "the shortest history found, with {} of {} events and {} of {} choices:",
            self.events, self.events_drawn, self.choices, self.choices_drawn
        )?;
        f.write_str(&self.timeline)
    }
}

impl std::error::Error for Failure {}

/// Every so many seeds one is played twice.
const TWICE_EVERY: u64 = 16;
