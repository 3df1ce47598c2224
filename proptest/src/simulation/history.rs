//! What the world, the runs and the simulation share: the queue, the clock, what is left to chance,
//! and what has happened.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::rc::Rc;
use std::time::Duration;

use requeue_core::Instant;
use requeue_core::binding::Clock;

use super::choices::{Choice, Choices, Point, Site};
use super::clock::VirtualClock;
use super::queue::AnyQueue;
use super::timeline::Entry;

pub(super) struct History<K> {
    pub(super) clock: VirtualClock,
    pub(super) queue: RefCell<Rc<dyn AnyQueue<K>>>,
    pub(super) choices: RefCell<Choices<K>>,
    pub(super) log: RefCell<Vec<Entry<K>>>,
    /// How many runs each key has had.
    pub(super) runs: RefCell<BTreeMap<K, u32>>,
    /// Keys that were added after shutdown: a successor gets them.
    pub(super) refused: RefCell<Vec<K>>,
    /// How long after shutdown workers take keys.
    pub(super) drain_limit: Cell<Option<Duration>>,
    /// The run that is polled is to be dropped.
    pub(super) aborts: Cell<bool>,
    /// When an event, a fault or a shutdown happened last.
    pub(super) last_trouble: Cell<Instant>,
}

impl<K: Ord + Clone + Debug + 'static> History<K> {
    pub(super) fn now(&self) -> Instant {
        self.clock.now()
    }

    pub(super) fn queue(&self) -> Rc<dyn AnyQueue<K>> {
        Rc::clone(&self.queue.borrow())
    }

    /// Writes a line: what a worker does with a key. `None` is the world, and no key.
    pub(super) fn write(&self, worker: Option<usize>, key: Option<&K>, what: impl Into<String>) {
        self.log.borrow_mut().push(Entry {
            at: self.now(),
            worker,
            key: key.cloned(),
            what: what.into(),
        });
    }

    pub(super) fn choose(&self, site: Site<K>, point: Point) -> Choice {
        let choice = self.choices.borrow_mut().choose(site, point);
        if choice.fault.is_some() {
            self.last_trouble.set(self.now());
        }
        choice
    }

    /// Counts a run of a key. Returns its number.
    pub(super) fn count_run(&self, key: &K) -> u32 {
        let mut runs = self.runs.borrow_mut();
        let runs = runs.entry(key.clone()).or_insert(0);
        *runs += 1;
        *runs
    }
}
