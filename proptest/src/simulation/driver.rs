//! One history, step by step.

mod by_hand;
mod end;
mod turn;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt::{self, Debug};
use std::rc::Rc;
use std::time::Duration;

use requeue_core::limiter::RateLimiter;
use requeue_core::{Instant, Workers};

use super::World;
use super::choices::{Choices, Chosen, Point};
use super::context::Keys;
use super::driven::Driven;
use super::plan::Stop;
use super::settings::{Settings, limited};
use super::shared::{Shared, Task};
use super::timeline::{Breach, Entry, Property, Who, timeline};
use super::worker::{State, Worker};
use crate::caught::guarded;

/// A world, its queue and its workers, on virtual time: for scripted tests.
///
/// Time begins at zero and moves when [`step`](Self::step) finds nothing else to do. Calls take no
/// time, nothing fails unless it is [injected](Self::inject), and workers go on in the order in
/// which they are woken. [`World::always`] is checked after every step.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use requeue_proptest::proptest::prelude::*;
/// use requeue_core::limiter::Exponential;
/// use requeue_core::Action;
/// use requeue_proptest::simulation::{
///     Breach, CallFailed, Context, Fault, Keys, Simulation, Stop, World,
/// };
///
/// #[derive(Default)]
/// struct Pings(u32);
///
/// impl World for Pings {
///     type Key = &'static str;
///     type Event = ();
///     type Error = CallFailed;
///
///     fn event(&self) -> BoxedStrategy<()> {
///         Just(()).boxed()
///     }
///
///     fn happen(&mut self, (): &(), keys: &Keys<&'static str>) {
///         let _ = keys.add("host");
///     }
///
///     async fn reconcile(context: Context<Self>, _: &'static str) -> Result<Action, CallFailed> {
///         context.call("ping", |world| world.0 += 1).await?;
///         Ok(Action::RequeueAfter(Duration::from_secs(60)))
///     }
/// }
///
/// let second = Duration::from_secs(1);
/// let mut sim = Simulation::new(Pings::default())
///     .workers(1)
///     .limiter(move || Exponential::new(second, 8 * second));
/// sim.inject(Fault::RequestLost);
/// sim.happen(&())?;
/// sim.run_until_idle()?;
/// assert_eq!(sim.world(|world| world.0), 0, "the first call was lost");
///
/// sim.advance(second)?;
/// assert_eq!(sim.world(|world| world.0), 1);
/// sim.advance(120 * second)?;
/// assert_eq!(sim.world(|world| world.0), 3);
///
/// let leftovers = sim.shut_down(Stop::Drain)?;
/// assert_eq!((leftovers[0].key, leftovers[0].left), ("host", 60 * second));
/// println!("{}", sim.timeline());
/// # Ok::<(), Breach>(())
/// ```
#[must_use = "nothing happens until it is driven"]
pub struct Simulation<W: World> {
    shared: Rc<Shared<W::Key>>,
    world: Rc<RefCell<W>>,
    settings: Settings<W>,
    workers: Vec<Worker<W>>,
    /// How many times each worker has looked for a key, its successors included.
    looks: Vec<u32>,
    /// The workers of those who sleep, in the order in which they are woken.
    line: VecDeque<usize>,
    events: Vec<W::Event>,
    stop: Option<Stop>,
    /// Since when, and for how long after, keys are still taken.
    closing: Option<(Instant, Option<Duration>)>,
    /// The successor begins with what the world lists.
    has_crashed: bool,
    steps: u64,
    breach: Option<Breach>,
}

impl<W: World> Simulation<W> {
    /// Creates two workers, and a queue with client-go's default limiter.
    pub fn new(world: W) -> Self {
        Self::with(world, Settings::new(), Choices::replayed(Chosen::new()))
    }

    pub(super) fn with(world: W, settings: Settings<W>, choices: Choices<W::Key>) -> Self {
        let shared = Rc::new(Shared::new((settings.queue)(), choices));
        let mut simulation = Self {
            shared,
            world: Rc::new(RefCell::new(world)),
            settings,
            workers: Vec::new(),
            looks: Vec::new(),
            line: VecDeque::new(),
            events: Vec::new(),
            stop: None,
            closing: None,
            has_crashed: false,
            steps: 0,
            breach: None,
        };
        simulation.start_workers();
        simulation
    }

    /// Sets how many workers there are, and what they do with keys that fail: a number, or what the
    /// runtimes' `run` takes. Call it before keys are added.
    pub fn workers(mut self, workers: impl Into<Workers<'static, W::Key, W::Error>>) -> Self {
        self.settings.workers = Rc::new(workers.into());
        // Those who were there slept in the queue.
        let queue = Rc::clone(&self.settings.queue);
        self.on(queue)
    }

    /// Sets the limiter of the queue, and of its successors. Call it before keys are added.
    pub fn limiter<L: RateLimiter + 'static>(self, limiter: impl Fn() -> L + 'static) -> Self {
        self.on(limited(limiter))
    }

    /// Replaces the queue, and its successors, as [`Check::queue`](super::Check::queue) does. Call it
    /// before keys are added.
    pub fn queue<Q: Driven<W::Key> + 'static>(self, queue: impl Fn() -> Q + 'static) -> Self {
        self.on(Rc::new(move || Box::new(queue())))
    }

    fn on(mut self, queue: Rc<dyn Fn() -> Box<dyn Driven<W::Key>>>) -> Self {
        self.shared.replace_queue(queue());
        self.settings.queue = queue;
        self.start_workers();
        self
    }

    /// Does the next thing there is to do; if that is later, time moves on first. Returns whether
    /// there was anything. O(workers).
    ///
    /// # Errors
    ///
    /// [`Breach`] of a property, the same from then on.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// let mut sim = Simulation::new(Replica::default());
    /// assert_eq!(sim.step()?, false, "there is nothing to do");
    /// sim.happen(&5)?;
    /// let mut steps = 0;
    /// while sim.step()? {
    ///     steps += 1;
    /// }
    /// assert!(steps > 1);
    /// # Ok::<(), Breach>(())
    /// ```
    pub fn step(&mut self) -> Result<bool, Breach> {
        self.attempt(Self::try_step)
    }

    /// Does something that runs the world's code, of which a panic is a breach; nothing more after
    /// a breach.
    fn attempt<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, Breach>,
    ) -> Result<T, Breach> {
        if let Some(breach) = &self.breach {
            return Err(breach.clone());
        }
        let done = guarded(|| work(self));
        let done = done.unwrap_or_else(|panic| Err(self.breach(Property::WorldPanics, &panic)));
        self.breach = done.as_ref().err().cloned();
        done
    }

    fn try_step(&mut self) -> Result<bool, Breach> {
        self.deliver_wakes();
        let Some(next) = self.shared.next_time() else {
            return Ok(false);
        };
        if next > self.shared.now() {
            self.before_time_passes(next)?;
            self.shared.set_now(next);
        }
        match self.shared.next_task() {
            Some(Task::Turn(worker)) => self.turn(worker)?,
            Some(Task::Alarm(worker)) => {
                self.workers[worker].alarm = None;
                self.line.retain(|sleeper| *sleeper != worker);
                self.plan_turn(worker);
            }
            Some(Task::Wake(waker)) => waker.wake(),
            Some(Task::Event(event)) => self.happens(&self.events[event].clone()),
            Some(Task::Effect(effect)) => effect.0(),
            Some(Task::Stop) => self.stops(),
            None => {}
        }
        self.deliver_wakes();
        self.look_after()?;
        Ok(true)
    }

    fn happens(&mut self, event: &W::Event) {
        self.shared.write(Who::World, None, format!("{event:?}"));
        let keys = self.keys();
        self.world.borrow_mut().happen(event, &keys);
    }

    /// What the queue and the runs' wakers said: who has a turn.
    fn deliver_wakes(&mut self) {
        let shared = Rc::clone(&self.shared);
        let mut count = shared.wake_one.take();
        if shared.wake_all.take() {
            count = self.line.len();
        }
        for _ in 0..count {
            if let Some(worker) = self.line.pop_front() {
                self.plan_turn(worker);
            }
        }
        for worker in 0..self.workers.len() {
            let Worker { state, bell, .. } = &self.workers[worker];
            if matches!(state, State::Busy(_)) && bell.has_rung() {
                self.plan_turn(worker);
            }
        }
    }

    fn plan_turn(&mut self, number: usize) {
        let worker = &mut self.workers[number];
        if std::mem::replace(&mut worker.has_turn, true) {
            return;
        }
        if let Some(alarm) = worker.alarm.take() {
            let _ = self.shared.cancel(alarm);
        }
        let choice = match &worker.state {
            State::Busy(run) => {
                let point = run.points.replace(run.points.get() + 1);
                self.shared
                    .choose(Some(&run.key), run.number, point, Point::Turn)
            }
            State::Idle | State::Gone => {
                self.looks[number] += 1;
                let worker = u32::try_from(number).unwrap_or(u32::MAX);
                self.shared
                    .choose(None, worker, self.looks[number], Point::Turn)
            }
        };
        let at = self.shared.now() + choice.delay;
        self.shared.plan(at, choice.rank, Task::Turn(number));
    }

    /// Every worker comes to work on a new queue.
    fn start_workers(&mut self) {
        self.workers.clear();
        self.looks.resize(self.settings.workers.count(), 0);
        self.shared.cancel_turns();
        self.line.clear();
        self.closing = None;
        for number in 0..self.settings.workers.count() {
            self.workers.push(Worker::new());
            // They look before anything happens, and so sleep in order.
            let Worker { getter, alarm, .. } = &mut self.workers[number];
            if let requeue_core::binding::Next::Wait { until } = self.shared.get(getter) {
                let until = until.filter(|until| !until.is_never());
                *alarm = until.map(|at| self.shared.plan(at, 0, Task::Alarm(number)));
                self.line.push_back(number);
            }
        }
    }

    fn keys(&self) -> Keys<W::Key> {
        Keys {
            shared: Rc::clone(&self.shared),
            who: Who::World,
        }
    }

    fn breach(&self, property: Property, reason: &str) -> Breach {
        Breach {
            property,
            reason: format!("{reason} (at {})", self.shared.now()),
        }
    }

    pub(super) fn shared(&self) -> &Shared<W::Key> {
        &self.shared
    }

    pub(super) fn steps(&self) -> u64 {
        self.steps
    }

    pub(super) fn into_history(self) -> (Vec<Entry<W::Key>>, Chosen<W::Key>) {
        let log = self.shared.log.take();
        let choices = self
            .shared
            .choices
            .replace(Choices::replayed(Chosen::new()));
        (log, choices.into_chosen())
    }

    /// Returns the history so far: the virtual time, who, the key, and what.
    pub fn timeline(&self) -> String {
        timeline(&self.shared.log.borrow())
    }
}

impl<W: World> Debug for Simulation<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Simulation")
            .field("now", &self.shared.now())
            .field("workers", &self.workers.len())
            .field("steps", &self.steps)
            .finish_non_exhaustive()
    }
}
