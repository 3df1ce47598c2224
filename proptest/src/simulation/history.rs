//! What the world, the runs and the simulation share: the queue, the clock, what is left to chance,
//! and what has happened, with its lines.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt::{Debug, Write};
use std::rc::Rc;
use std::time::Duration;

use requeue_core::Instant;
use requeue_core::binding::Clock;

use super::choices::{Choice, Choices, Point, Site};
use super::clock::VirtualClock;
use super::queue::AnyQueue;

pub(super) struct History<K> {
    pub(super) clock: VirtualClock,
    pub(super) queue: RefCell<Rc<dyn AnyQueue<K>>>,
    pub(super) choices: RefCell<Choices<K>>,
    pub(super) log: RefCell<Vec<Entry<K>>>,
    /// How many runs each key has had.
    pub(super) runs: RefCell<BTreeMap<K, u64>>,
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
    pub(super) fn count_run(&self, key: &K) -> u64 {
        let mut runs = self.runs.borrow_mut();
        let runs = runs.entry(key.clone()).or_insert(0);
        *runs += 1;
        *runs
    }
}

/// One line of a history.
pub(super) struct Entry<K> {
    pub(super) at: Instant,
    /// `None` for the world, or the test.
    pub(super) worker: Option<usize>,
    pub(super) key: Option<K>,
    pub(super) what: String,
}

/// The lines of a history: the virtual time, who, the key, and what.
pub(super) fn timeline<K: Debug>(entries: &[Entry<K>]) -> String {
    let columns = entries.iter().map(
        |Entry {
             at, worker, key, ..
         }| {
            let who = worker.map_or(String::from("world"), |number| format!("worker {number}"));
            let key = key.as_ref().map_or(String::new(), |key| format!("{key:?}"));
            [at.to_string(), who, key]
        },
    );
    let columns: Vec<[String; 3]> = columns.collect();
    let [times, whos, keys] = [0, 1, 2].map(|column| {
        let widths = columns.iter().map(|line| line[column].chars().count());
        widths.max().unwrap_or(0)
    });
    let mut text = String::new();
    for ([time, who, key], Entry { what, .. }) in columns.iter().zip(entries) {
        // Writing to a string does not fail.
        let _ = writeln!(text, "  {time:>times$}  {who:<whos$}  {key:<keys$}  {what}");
    }
    text
}

/// The beginning and the end of a history that is too long to be read.
pub(super) fn excerpt(timeline: &str) -> String {
    let lines: Vec<_> = timeline.split_inclusive('\n').collect();
    let left_out = lines.len().saturating_sub(2 * EXCERPT);
    if left_out == 0 {
        return String::from(timeline);
    }
    let (first, last) = (&lines[..EXCERPT], &lines[EXCERPT + left_out..]);
    let between = format!("  … {left_out} lines are left out …\n");
    [&first.concat(), &*between, &last.concat()].concat()
}

/// How many lines are shown at both ends of a history.
const EXCERPT: usize = 60;
