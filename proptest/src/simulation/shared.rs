//! What the world, the runs and the driver share: the clock, the queue, and the history.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt::{self, Debug};
use std::task::Waker;
use std::time::Duration;

use requeue_core::binding::{Getter, Next, Runs, Ticket, Wake, Work};
use requeue_core::{Action, AddOptions, Added, Finished, Instant, Leftover, Rejected, Scheduled};

use super::choices::{Choice, Choices, Point, Site};
use super::driven::Driven;
use super::timeline::{Entry, Who};

/// What the driver is to do at some time.
#[derive(Debug)]
pub(super) enum Task {
    /// A worker goes on.
    Turn(usize),
    /// A worker that sleeps looks at the queue by itself.
    Alarm(usize),
    /// A future of the kit is woken.
    Wake(Waker),
    /// An event of the world.
    Event(usize),
    /// The effect of a call that has failed.
    Effect(Effect),
    /// The queue is shut down.
    Stop,
}

/// What a call does to the world.
pub(super) struct Effect(pub(super) Box<dyn FnOnce()>);

impl Debug for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Effect")
    }
}

/// When something is to be done: the time, the rank, and the order of asking.
pub(super) type Slot = (Instant, u8, u64);

pub(super) struct Shared<K> {
    now: Cell<Instant>,
    queue: RefCell<Box<dyn Driven<K>>>,
    agenda: RefCell<BTreeMap<Slot, Task>>,
    asked: Cell<u64>,
    /// How many runs each key has had.
    runs: RefCell<BTreeMap<K, u32>>,
    pub(super) choices: RefCell<Choices<K>>,
    pub(super) log: RefCell<Vec<Entry<K>>>,
    /// Keys that were added after shutdown: a successor gets them.
    refused: RefCell<Vec<K>>,
    /// How many sleepers are to be woken: one each, or all.
    pub(super) wake_one: Cell<usize>,
    pub(super) wake_all: Cell<bool>,
    /// The run that is polled is to be dropped.
    pub(super) aborts: Cell<bool>,
    /// When a fault last struck.
    pub(super) last_fault: Cell<Instant>,
}

impl<K: Ord + Clone + Debug + 'static> Runs<K> for Shared<K> {
    fn now(&self) -> Instant {
        self.now.get()
    }

    /// A run keeps its key in the queue.
    fn contains(&self, _: &K) -> bool {
        true
    }
}

impl<K: Ord + Clone + Debug + 'static> Shared<K> {
    pub(super) fn new(queue: Box<dyn Driven<K>>, choices: Choices<K>) -> Self {
        Self {
            now: Cell::new(Instant::EPOCH),
            queue: RefCell::new(queue),
            agenda: RefCell::new(BTreeMap::new()),
            asked: Cell::new(0),
            runs: RefCell::new(BTreeMap::new()),
            choices: RefCell::new(choices),
            log: RefCell::new(Vec::new()),
            refused: RefCell::new(Vec::new()),
            wake_one: Cell::new(0),
            wake_all: Cell::new(false),
            aborts: Cell::new(false),
            last_fault: Cell::new(Instant::EPOCH),
        }
    }

    pub(super) fn now(&self) -> Instant {
        self.now.get()
    }

    pub(super) fn set_now(&self, now: Instant) {
        self.now.set(now);
    }

    pub(super) fn write(&self, who: Who, key: Option<&K>, what: impl Into<String>) {
        let (at, what) = (self.now(), what.into());
        let key = key.cloned();
        let entry = Entry { at, who, key, what };
        self.log.borrow_mut().push(entry);
    }

    pub(super) fn choose(&self, key: Option<&K>, run: u32, point: u32, kind: Point) -> Choice {
        let key = key.cloned();
        let choice = self
            .choices
            .borrow_mut()
            .choose(Site { key, run, point }, kind);
        if choice.fault.is_some() {
            self.last_fault.set(self.now());
        }
        choice
    }

    /// Plans a task.
    pub(super) fn plan(&self, at: Instant, rank: u8, task: Task) -> Slot {
        let slot = (at, rank, self.asked.get());
        self.asked.set(slot.2 + 1);
        self.agenda.borrow_mut().insert(slot, task);
        slot
    }

    pub(super) fn cancel(&self, slot: Slot) -> Option<Task> {
        self.agenda.borrow_mut().remove(&slot)
    }

    /// No task has a turn any more.
    pub(super) fn cancel_turns(&self) {
        let mut agenda = self.agenda.borrow_mut();
        agenda.retain(|_, task| !matches!(task, Task::Turn(_) | Task::Alarm(_)));
    }

    /// The same task for another waker; false if it was done.
    pub(super) fn renew(&self, slot: Slot, waker: &Waker) -> bool {
        match self.agenda.borrow_mut().get_mut(&slot) {
            Some(Task::Wake(present)) => {
                present.clone_from(waker);
                true
            }
            _ => false,
        }
    }

    pub(super) fn next_time(&self) -> Option<Instant> {
        let agenda = self.agenda.borrow();
        agenda.first_key_value().map(|(slot, _)| slot.0)
    }

    pub(super) fn next_task(&self) -> Option<Task> {
        let first = self.agenda.borrow_mut().pop_first();
        first.map(|(_, task)| task)
    }

    // ----- the queue

    pub(super) fn add(&self, who: Who, key: K, options: AddOptions) -> Result<Added, Rejected<K>> {
        let now = self.now();
        let limited = self.act(|queue| queue.add_with(key.clone(), options, now));
        let how = match options {
            AddOptions {
                rate_limited: true, ..
            } => "add_rate_limited",
            AddOptions { after: Some(_), .. } => "add_after",
            _ => "add",
        };
        let outcome = match &limited {
            Ok(Scheduled { added, .. }) => format!("{added:?}").to_lowercase(),
            Err(Rejected::Closed(_)) => {
                self.refused.borrow_mut().push(key.clone());
                String::from("refused, the queue is shutting down")
            }
            Err(other) => other.to_string(),
        };
        self.write(who, Some(&key), format!("{how}: {outcome}"));
        limited.map(|limited| limited.added)
    }

    pub(super) fn get(&self, getter: &mut Getter) -> Next<Work<K>> {
        let now = self.now();
        self.act(|queue| queue.get(now, getter))
    }

    pub(super) fn leave(&self, getter: &mut Getter) {
        self.act(|queue| queue.leave(getter));
    }

    /// A run begins. Returns its number, counted from one.
    pub(super) fn begin(&self, key: &K) -> u32 {
        let mut runs = self.runs.borrow_mut();
        let runs = runs.entry(key.clone()).or_insert(0);
        *runs += 1;
        *runs
    }

    /// How many runs there were.
    pub(super) fn runs(&self) -> u64 {
        self.runs.borrow().values().copied().map(u64::from).sum()
    }

    pub(super) fn finish(&self, ticket: Ticket, action: Action) -> Finished {
        let now = self.now();
        self.act(|queue| queue.finish(ticket, action, now))
    }

    pub(super) fn suspend(&self, who: Who, key: &K, timeout: Duration) -> bool {
        let now = self.now();
        let suspends = self.act(|queue| queue.suspend(key, timeout, now));
        let what = match suspends {
            true => format!("suspend: for {timeout:?} at most"),
            false => String::from("suspend: the queue does not have the key"),
        };
        self.write(who, Some(key), what);
        suspends
    }

    pub(super) fn resume(&self, who: Who, key: &K) -> bool {
        let now = self.now();
        let was_suspended = self.act(|queue| queue.resume(key, now));
        let was = if was_suspended { "was" } else { "was not" };
        self.write(who, Some(key), format!("resume: it {was} suspended"));
        was_suspended
    }

    /// Whether no key is ready or active.
    pub(super) fn is_idle(&self) -> bool {
        let now = self.now();
        self.act(|queue| queue.is_idle(now))
    }

    pub(super) fn shut_down(&self) {
        let now = self.now();
        self.act(|queue| queue.shut_down(now));
    }

    pub(super) fn is_shutting_down(&self) -> bool {
        self.queue.borrow().is_shutting_down()
    }

    pub(super) fn take_leftover(&self) -> Option<Leftover<K>> {
        let now = self.now();
        self.act(|queue| queue.take_leftover(now))
    }

    pub(super) fn take_refused(&self) -> Vec<K> {
        self.refused.take()
    }

    pub(super) fn replace_queue(&self, queue: Box<dyn Driven<K>>) {
        self.queue.replace(queue);
    }

    /// Something else that is done with the queue; `None` if it is of another type.
    pub(super) fn with_queue<Q: 'static, T>(
        &self,
        work: impl FnOnce(&mut Q, Instant) -> T,
    ) -> Option<T> {
        let now = self.now();
        self.act(|queue| {
            let queue: &mut dyn Any = queue;
            queue.downcast_mut().map(|queue| work(queue, now))
        })
    }

    fn act<T>(&self, work: impl FnOnce(&mut dyn Driven<K>) -> T) -> T {
        let mut queue = self.queue.borrow_mut();
        let value = work(&mut **queue);
        let wake = queue.wake();
        drop(queue);
        if wake == Wake::ALL {
            self.wake_all.set(true);
        } else if wake.contains(Wake::ONE) {
            self.wake_one.set(self.wake_one.get() + 1);
        }
        value
    }
}
