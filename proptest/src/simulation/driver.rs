//! One history, step by step. Owns which worker is polled next, when it is aborted, and when time
//! moves on.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Wake};
use std::time::Duration;

use requeue_core::binding::Clock;
use requeue_core::{Instant, Leftover, Workers};

use super::World;
use super::check::{Breach, Check, Property, Settings};
use super::context::Keys;
use super::history::{History, Run, is_pending};
use super::plan::{Chosen, Fault, Happening, Stop, Temper, What};
use super::queue::{Spawn, Start, Task, WorkerLoop};
use crate::bell::Bell;
use crate::caught::guarded;
use crate::subject::HandClock;

/// A world, its queue and its workers, on virtual time: for scripted tests. Made by
/// [`Check::by_hand`](super::Check::by_hand).
///
/// Time begins at zero and moves when [`step`](Self::step) finds nothing else to do. Calls take no
/// time, and nothing fails unless you [inject](Self::inject) a fault. [`World::always`] is checked
/// after every step.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use requeue_proptest::proptest::prelude::*;
/// use requeue_core::limiter::Exponential;
/// use requeue_core::Action;
/// use requeue_proptest::simulation::{
///     Breach, CallFailed, Check, Context, Fault, Keys, Stop, World,
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
/// let mut sim = Check::new(Pings::default)
///     .workers(1)
///     .limiter(move || Exponential::new(second, 8 * second))
///     .by_hand();
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
    pub(super) history: Rc<History<W::Key>>,
    world: Rc<RefCell<W>>,
    workers: Rc<Workers<'static, W::Key, W::Error>>,
    start: Rc<Start<W>>,
    settings: Settings,
    spawn: Spawn<W>,
    slots: Vec<Slot>,
    /// The worker after the one that was polled last.
    next: usize,
    /// Whether the next process begins with the keys that the world lists.
    has_crashed: bool,
    pub(super) steps: u64,
    pub(super) breach: Option<Breach>,
}

/// One worker: its task, and its waker.
#[derive(Default)]
struct Slot {
    /// `None` if the worker has ended.
    task: Option<Task>,
    bell: Arc<Bell>,
}

impl<W: World> Simulation<W> {
    pub(super) fn new(check: &Check<W>, chosen: Chosen<W::Key>, temper: Option<Temper>) -> Self {
        let clock = HandClock::new();
        let (queue, spawn) = (check.start)(clock.clone());
        let history = History {
            clock,
            queue: RefCell::new(queue),
            chosen: RefCell::new(chosen),
            temper: RefCell::new(temper),
            injected: RefCell::default(),
            lines: RefCell::default(),
            runs: RefCell::default(),
            active: RefCell::default(),
            late: RefCell::default(),
            refused: RefCell::default(),
            drain_limit: Cell::new(check.workers.drain_limit()),
            aborts: Cell::new(false),
            last_trouble: Cell::new(Instant::EPOCH),
        };
        Self {
            history: Rc::new(history),
            world: Rc::new(RefCell::new((check.world)())),
            workers: Rc::clone(&check.workers),
            start: Rc::clone(&check.start),
            settings: check.settings.clone(),
            spawn,
            slots: Vec::new(),
            next: 0,
            has_crashed: false,
            steps: 0,
            breach: None,
        }
    }

    /// Returns the queue's keys, to add some.
    pub fn keys(&self) -> Keys<W::Key> {
        Keys {
            history: Rc::clone(&self.history),
            run: None,
        }
    }

    /// Lets an event happen now.
    ///
    /// # Errors
    ///
    /// [`Breach`] if the world panics, or [`World::always`] does not hold.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// let mut sim = Check::new(Replica::default).by_hand();
    /// sim.happen(&5)?;
    /// sim.run_until_idle()?;
    /// assert_eq!(sim.world(|world| world.real), 5);
    /// # Ok::<(), Breach>(())
    /// ```
    pub fn happen(&mut self, event: &W::Event) -> Result<(), Breach> {
        self.attempt(|simulation| {
            let keys = simulation.keys();
            keys.note(format!("{event:?}"));
            simulation.world.borrow_mut().happen(event, &keys);
            simulation.look_after()
        })
    }

    /// Injects a fault at the next point where it is possible: a call, or a pause.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// let mut sim = Check::new(Replica::default).by_hand();
    /// sim.inject(Fault::Panic);
    /// sim.happen(&5)?;
    /// sim.run_until_idle()?;
    /// assert!(sim.timeline().contains("run PANICS: simulated"));
    /// sim.advance(Duration::from_secs(1))?;
    /// assert_eq!(sim.world(|world| world.real), 5, "it was tried again");
    /// # Ok::<(), Breach>(())
    /// ```
    pub fn inject(&mut self, fault: Fault) {
        self.history.injected.replace(Some(fault));
    }

    /// Does the next thing there is to do; if that is later, time moves on first. Returns whether
    /// there was anything. O(workers).
    ///
    /// # Errors
    ///
    /// [`Breach`] of a property.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// let mut sim = Check::new(Replica::default).by_hand();
    /// sim.happen(&5)?;
    /// let mut steps = 0;
    /// while sim.step()? {
    ///     steps += 1;
    /// }
    /// assert!(steps > 1);
    /// # Ok::<(), Breach>(())
    /// ```
    pub fn step(&mut self) -> Result<bool, Breach> {
        let next = self.next_time();
        self.attempt(|simulation| {
            let Some(next) = next else {
                return Ok(false);
            };
            simulation.move_to(next)?;
            if !simulation.land()
                && let Some(number) = simulation.woken()
            {
                simulation.poll(number);
            }
            simulation.look_after()?;
            Ok(true)
        })
    }

    /// Lets this much time pass, and everything happen that is due by then.
    ///
    /// # Errors
    ///
    /// [`Breach`] of a property; of [`Property::HistoryEnds`] after 100,000 steps.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// let mut sim = Check::new(Replica::default).by_hand();
    /// sim.world(|world| world.wanted = 5);
    /// sim.keys().add_after("config", Duration::from_secs(60)).unwrap();
    /// sim.advance(Duration::from_secs(59))?;
    /// assert_eq!(sim.world(|world| world.real), 0);
    /// sim.advance(Duration::from_secs(1))?;
    /// assert_eq!(sim.world(|world| world.real), 5);
    /// # Ok::<(), Breach>(())
    /// ```
    pub fn advance(&mut self, by: Duration) -> Result<(), Breach> {
        let end = self.history.clock.now() + by;
        while self.next_time().is_some_and(|next| next <= end) {
            self.step()?;
        }
        self.move_to(end)
    }

    /// Takes steps until no key is ready or active. Delayed and suspended keys keep waiting:
    /// [`advance`](Self::advance) to their times.
    ///
    /// # Errors
    ///
    /// [`Breach`] of a property; of [`Property::RunEnds`] if a run waits for something that never
    /// happens.
    pub fn run_until_idle(&mut self) -> Result<(), Breach> {
        self.step_until(|simulation| simulation.history.queue().is_idle())
    }

    /// Shuts the queue down, takes steps until all workers have ended, and returns the keys that
    /// were not processed.
    ///
    /// # Errors
    ///
    /// [`Breach`] of a property; of [`Property::RunEnds`] if a run waits for something that never
    /// happens.
    ///
    /// # Examples
    ///
    /// A run is aborted. Its key waits for its retry, and the drain processes the other key:
    ///
    /// ```
    /// use std::sync::mpsc::channel;
    /// use requeue_core::RunEvent;
    #[doc = include_str!("example.txt")]
    /// let (sender, aborted) = channel();
    /// let workers = Workers::new(1).on_event(move |key, event| {
    ///     if matches!(event, RunEvent::Aborted) {
    ///         sender.send(*key).unwrap();
    ///     }
    /// });
    /// let mut sim = Check::new(Replica::default).workers(workers).by_hand();
    /// sim.happen(&5)?;
    /// sim.keys().add("other").unwrap();
    /// sim.inject(Fault::Abort);
    /// sim.step()?;
    /// let leftovers = sim.shut_down(Stop::Drain)?;
    /// assert_eq!((leftovers[0].key, leftovers.len()), ("config", 1));
    /// assert_eq!(aborted.try_iter().collect::<Vec<_>>(), ["config"]);
    /// assert_eq!(sim.world(|world| world.real), 5, "the other run wrote it");
    /// # Ok::<(), Breach>(())
    /// ```
    pub fn shut_down(&mut self, stop: Stop) -> Result<Vec<Leftover<W::Key>>, Breach> {
        self.begin_stop(stop)?;
        self.step_until(Self::is_over)?;
        Ok(self.history.queue().leftovers())
    }

    /// Starts the next process after a [shutdown](Self::shut_down): a queue with these keys and
    /// those that were added meanwhile, and workers.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// let mut sim = Check::new(Replica::default).by_hand();
    /// sim.happen(&5)?;
    /// let leftovers = sim.shut_down(Stop::Abort)?;
    /// assert_eq!(leftovers[0].key, "config");
    /// assert_eq!(sim.world(|world| world.real), 0);
    ///
    /// sim.restart(leftovers);
    /// sim.run_until_idle()?;
    /// assert_eq!(sim.world(|world| world.real), 5);
    /// # Ok::<(), Breach>(())
    /// ```
    pub fn restart(&mut self, leftovers: Vec<Leftover<W::Key>>) {
        let keys = self.keys();
        keys.note("a successor starts with what was handed back");
        let (queue, spawn) = (self.start)(self.history.clock.clone());
        self.spawn = spawn;
        self.history.queue.replace(queue);
        self.history.drain_limit.set(self.workers.drain_limit());
        let mut added = self.history.refused.take();
        if std::mem::take(&mut self.has_crashed) {
            added.extend(self.world.borrow().list().unwrap_or_default());
        }
        // The history shows what becomes of these.
        for Leftover { key, left, .. } in leftovers {
            let _ = keys.add_after(key, left);
        }
        for key in added {
            let _ = keys.add(key);
        }
    }

    /// Reads the world, or changes it, or asks whether its [`eventually`](World::eventually) holds.
    pub fn world<T>(&mut self, look: impl FnOnce(&mut W) -> T) -> T {
        look(&mut self.world.borrow_mut())
    }

    /// Returns the history so far: the virtual time, who, the key, and what.
    pub fn timeline(&self) -> String {
        let lines = self.history.lines.borrow();
        let [times, whos, keys] = [0, 1, 2].map(|column| {
            let widths = lines.iter().map(|line| line[column].chars().count());
            widths.max().unwrap_or(0)
        });
        let texts = lines.iter().map(|[time, who, key, what]| {
            format!("  {time:>times$}  {who:<whos$}  {key:<keys$}  {what}\n")
        });
        texts.collect()
    }

    /// Lets all of a plan happen at its times, until all is quiet. Bounded by the steps that a
    /// simulation takes.
    pub(super) fn play(&mut self, happenings: &[Happening<W::Event>]) -> Result<(), Breach> {
        let mut coming = happenings.iter().peekable();
        let mut at = Instant::EPOCH;
        loop {
            if self.is_over() {
                let leftovers = self.history.queue().leftovers();
                self.restart(leftovers);
            }
            let next = self.next_time();
            let is_first = |it: &&Happening<_>| next.is_none_or(|next| next >= at + it.gap);
            if let Some(happening) = coming.next_if(is_first) {
                at = at + happening.gap;
                self.move_to(at)?;
                self.history.last_trouble.set(at);
                match &happening.what {
                    What::Event(event) => self.happen(event)?,
                    What::Stop(stop) => self.begin_stop(*stop)?,
                }
                continue;
            }
            if !self.step()? {
                self.no_run(|_| true)?;
                break;
            }
            let (now, settle) = (self.history.clock.now(), self.settings.settle);
            let calm = now.saturating_since(self.history.last_trouble.get());
            // If keys run again for ever there is a moment when none is active; or else it is late.
            let is_quiet = calm >= settle && self.history.queue().is_idle();
            if coming.peek().is_none() && (is_quiet || calm >= settle.saturating_mul(2)) {
                break;
            }
        }
        self.holds(Property::Eventually, W::eventually)
    }

    /// Takes steps until this is so. If there is nothing left to do, ever, all runs have ended.
    fn step_until(&mut self, is_done: fn(&Self) -> bool) -> Result<(), Breach> {
        while !is_done(self) {
            if !self.step()? {
                return self.no_run(|_| true);
            }
        }
        Ok(())
    }

    /// Does something that runs the world's code, of which a panic is a breach.
    fn attempt<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, Breach>,
    ) -> Result<T, Breach> {
        let done = guarded(|| work(self));
        done.unwrap_or_else(|panic| Err(self.breach(Property::WorldPanics, &panic)))
    }

    fn start_worker(&mut self, number: usize) {
        let slot = &mut self.slots[number];
        Arc::clone(&slot.bell).wake();
        slot.task = Some((self.spawn)(WorkerLoop {
            number,
            workers: Rc::clone(&self.workers),
            world: Rc::clone(&self.world),
            history: Rc::clone(&self.history),
        }));
    }

    fn poll(&mut self, number: usize) {
        self.next = number + 1;
        let slot = &mut self.slots[number];
        slot.bell.take();
        let Some(task) = &mut slot.task else {
            return;
        };
        let waker = Arc::clone(&slot.bell).into();
        let mut context = Context::from_waker(&waker);
        if task.as_mut().poll(&mut context).is_ready() {
            slot.task = None;
        }
        if let Some(run) = self.history.active.borrow().get(&number) {
            run.polls.set(run.polls.get() + 1);
        }
        if self.history.aborts.take() {
            self.abort(number);
            self.start_worker(number);
        }
    }

    /// Drops the worker's task, and the guard of its run with it: the key is retried.
    fn abort(&mut self, number: usize) {
        let run = self.history.active.borrow_mut().remove(&number);
        if let Some(run) = run {
            self.workers.aborted(&run.key);
            let run = Some(run);
            Keys { run, ..self.keys() }.note("run is ABORTED, its future dropped");
        }
        self.slots[number].task = None;
    }

    /// Starts missing workers, and returns when there is something to do next.
    fn next_time(&mut self) -> Option<Instant> {
        let count = self.workers.count();
        let len = self.slots.len().max(count);
        self.slots.resize_with(len, Slot::default);
        for number in 0..count {
            let is_missing = self.slots[number].task.is_none();
            if is_missing && !self.history.queue().is_shutting_down() {
                self.start_worker(number);
            }
        }
        let now = self.woken().map(|_| self.history.clock.now());
        now.or_else(|| self.history.clock.next_due())
    }

    /// Returns a worker that was woken. The worker that was polled last comes last.
    fn woken(&self) -> Option<usize> {
        let len = self.slots.len();
        let mut numbers = (self.next..len).chain(0..len);
        numbers.find(|number| self.slots[*number].bell.rings())
    }

    /// Lets requests land whose time has come. Returns whether there were any.
    fn land(&self) -> bool {
        let mut late = self.history.late.borrow_mut();
        let before = late.len();
        late.retain_mut(is_pending);
        late.len() < before
    }

    /// Lets time pass, now that everything is done that was to be done, if all runs end.
    fn move_to(&self, next: Instant) -> Result<(), Breach> {
        let age = |run: &Run<_>| next.saturating_since(run.began);
        self.no_run(|run| age(run) > self.settings.run_max || run.polls.get() >= POLLS_MAX)?;
        let by = next.saturating_since(self.history.clock.now());
        self.history.clock.advance(by);
        Ok(())
    }

    /// What is checked after every step.
    fn look_after(&mut self) -> Result<(), Breach> {
        self.steps += 1;
        let steps_max = self.settings.steps_max;
        if self.steps > steps_max {
            let reason = format!("not quiet after {steps_max} steps");
            return Err(self.breach(Property::HistoryEnds, &reason));
        }
        self.holds(Property::Always, W::always)
    }

    /// Checks that no run is one that does not end.
    fn no_run(&self, is_endless: impl Fn(&Run<W::Key>) -> bool) -> Result<(), Breach> {
        let active = self.history.active.borrow();
        let Some(run) = active.values().find(|run| is_endless(run)) else {
            return Ok(());
        };
        let Run { key, number, .. } = &**run;
        let (worker, began, polls) = (run.worker, run.began, run.polls.get());
        let reason = format!(
            "run {number} of {key:?} began at {began} on worker {worker} and was polled {polls} times"
        );
        Err(self.breach(Property::RunEnds, &reason))
    }

    fn holds(&self, property: Property, check: fn(&W) -> Result<(), String>) -> Result<(), Breach> {
        guarded(|| check(&self.world.borrow()))
            .and_then(|held| held)
            .map_err(|reason| self.breach(property, &reason))
    }

    fn breach(&self, property: Property, reason: &str) -> Breach {
        Breach {
            property,
            reason: format!("{reason} (at {})", self.history.clock.now()),
        }
    }

    fn begin_stop(&mut self, stop: Stop) -> Result<(), Breach> {
        self.keys()
            .note(format!("the queue is SHUT DOWN: {stop:?}"));
        if stop != Stop::Drain {
            self.history.drain_limit.set(Some(Duration::ZERO));
        }
        self.history.queue().shut_down();
        self.attempt(|simulation| {
            if matches!(stop, Stop::Abort | Stop::Crash) {
                (0..simulation.slots.len()).for_each(|number| simulation.abort(number));
            }
            if stop == Stop::Crash {
                simulation.has_crashed = true;
                simulation.history.refused.take();
                simulation.history.queue().leftovers();
            }
            Ok(())
        })
    }

    /// Whether the queue is shut down, and all workers have ended.
    fn is_over(&self) -> bool {
        self.history.queue().is_shutting_down() && self.slots.iter().all(|slot| slot.task.is_none())
    }
}

/// A run that is polled so often waits for nothing: it wakes itself.
const POLLS_MAX: u32 = 10_000;
