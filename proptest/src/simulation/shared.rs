//! What the world, the runs and the driver share: the clock, the queue, and the history.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt::{self, Debug};
use std::task::Waker;
use std::time::Duration;

use requeue_core::binding::{Getter, Next, Runs, Ticket, Wake};
use requeue_core::{Action, AddOptions, Added, Finished, Instant, Leftover, Rejected, Scheduled};

use super::choices::{Choice, Choices, Point, Site};
use super::driven::{Driven, Taken};
use super::ledger::Ledger;
use super::timeline::{Entry, What, Who};

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
    pub(super) ledger: RefCell<Ledger<K>>,
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
            ledger: RefCell::new(Ledger::new()),
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

    pub(super) fn write(&self, who: Who, key: Option<&K>, what: What) {
        let at = self.now();
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
        match &limited {
            Ok(Scheduled { delay, added, .. }) => {
                let due = now + *delay;
                let mut ledger = self.ledger.borrow_mut();
                ledger.merged(&key, options.merge, due, now);
                let added = format!("{added:?}").to_lowercase();
                self.write(who, Some(&key), What::Added(how, added));
            }
            Err(Rejected::Closed(_)) => {
                self.refused.borrow_mut().push(key.clone());
                self.write(who, Some(&key), What::Refused);
            }
            Err(other) => self.write(who, Some(&key), What::Added(how, other.to_string())),
        }
        limited.map(|limited| limited.added)
    }

    pub(super) fn get(&self, getter: &mut Getter) -> Next<Taken<K>> {
        let now = self.now();
        self.act(|queue| queue.get(now, getter))
    }

    pub(super) fn leave(&self, getter: &mut Getter) {
        self.act(|queue| queue.leave(getter));
    }

    pub(super) fn finish(&self, ticket: Ticket, key: &K, action: Action) -> Finished {
        let now = self.now();
        let finished = self.act(|queue| queue.finish(ticket, key, action, now));
        let mut ledger = self.ledger.borrow_mut();
        let (action, _) = action.into_parts();
        let asks = match (action, finished) {
            // A queue that suspends no keys delays them.
            (Action::Suspend(_), Finished::Delayed(_)) => None,
            (Action::Suspend(timeout), _) => Some(now + timeout),
            _ => None,
        };
        ledger.ends(key, asks, now);
        match (action, finished) {
            (Action::RequeueAfter(delay) | Action::Snooze(delay), _)
            | (
                Action::Retry | Action::Poll(..),
                Finished::Delayed(delay) | Finished::Leftover(delay),
            )
            | (Action::Suspend(_), Finished::Delayed(delay)) => {
                ledger.added(key, now + delay, now);
            }
            (Action::Retry | Action::Poll(..), Finished::Ready | Finished::Suspended(_)) => {
                if finished == Finished::Ready {
                    ledger.added(key, now, now);
                }
                // The delay is not reported of a key that was added during its run, or suspended.
                if let Some(due) = self.act(|queue| queue.due(key, now)) {
                    ledger.added(key, due, now);
                }
            }
            // A failure that is the end of a key is none that the workers gave up.
            (Action::Retry, _) => ledger.added(key, now, now),
            _ => {}
        }
        finished
    }

    pub(super) fn suspend(&self, who: Who, key: &K, timeout: Duration) -> bool {
        let now = self.now();
        let suspends = self.act(|queue| queue.suspend(key, timeout, now));
        let mut ledger = self.ledger.borrow_mut();
        ledger.suspend(key, now + timeout, now);
        self.write(who, Some(key), What::Suspend(timeout, suspends));
        suspends
    }

    pub(super) fn resume(&self, who: Who, key: &K) -> bool {
        let now = self.now();
        let was_suspended = self.act(|queue| queue.resume(key, now));
        self.ledger.borrow_mut().resume(key, now);
        self.write(who, Some(key), What::Resume(was_suspended));
        was_suspended
    }

    pub(super) fn shut_down(&self) {
        let now = self.now();
        self.act(|queue| queue.shut_down(now));
        self.ledger.borrow_mut().close(now);
    }

    pub(super) fn is_drained(&self) -> bool {
        self.queue.borrow().is_drained()
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
    pub(super) fn with_queue<Q: Driven<K>, T>(
        &self,
        work: impl FnOnce(&mut Q, Instant) -> T,
    ) -> Option<T> {
        let now = self.now();
        self.act(|queue| {
            let queue: &mut dyn Any = queue;
            queue.downcast_mut().map(|queue| work(queue, now))
        })
    }

    pub(super) fn holds_back(&self, key: &K, until: Instant) -> bool {
        self.queue.borrow().holds_back(key, until)
    }

    pub(super) fn assert_valid(&self) {
        self.queue.borrow().assert_valid();
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
