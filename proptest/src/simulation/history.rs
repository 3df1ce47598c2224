//! What the world, the runs and the simulation share: the queue, the clock, the choices, and the
//! lines of the history so far.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::rc::Rc;
use std::task::{Context, Waker};
use std::time::Duration;

use requeue_core::binding::Clock;
use requeue_core::{Instant, RunContext};

use super::plan::{Choice, Chosen, Fault, Site, Temper};
use super::queue::{AnyQueue, Task};
use crate::subject::{HandClock, Sleep};

pub(super) struct History<K> {
    pub(super) clock: HandClock,
    pub(super) queue: RefCell<Rc<dyn AnyQueue<K>>>,
    pub(super) chosen: RefCell<Chosen<K>>,
    /// How a seed chooses. `None` if choices are only repeated.
    pub(super) temper: RefCell<Option<Temper>>,
    /// Happens at the next point where it can.
    pub(super) injected: RefCell<Option<Fault>>,
    /// Lines: the virtual time, who, the key, and what.
    pub(super) lines: RefCell<Vec<[String; 4]>>,
    /// Requests that have failed and will have their effect.
    pub(super) late: RefCell<Vec<Task>>,
    /// How many runs each key has had.
    pub(super) runs: RefCell<BTreeMap<K, u64>>,
    /// The runs that have begun and not ended, by worker.
    pub(super) active: RefCell<BTreeMap<usize, Rc<Run<K>>>>,
    /// Keys that were added after shutdown. The next process gets them.
    pub(super) refused: RefCell<Vec<K>>,
    /// How long after shutdown workers take keys.
    pub(super) drain_limit: Cell<Option<Duration>>,
    /// Whether to drop the run that is polled.
    pub(super) aborts: Cell<bool>,
    /// When an event, a fault or a shutdown happened last.
    pub(super) last_trouble: Cell<Instant>,
}

/// One run of a key.
pub(super) struct Run<K> {
    pub(super) worker: usize,
    pub(super) key: K,
    /// Counts the runs of the key, from one.
    pub(super) number: u64,
    pub(super) began: Instant,
    pub(super) context: RunContext,
    pub(super) polls: Cell<u32>,
    /// Counts the choices in the run.
    points: Cell<u32>,
}

impl<K: Ord + Clone + Debug + 'static> History<K> {
    pub(super) fn queue(&self) -> Rc<dyn AnyQueue<K>> {
        Rc::clone(&self.queue.borrow())
    }

    pub(super) fn sleep(&self, delay: Duration) -> Sleep {
        self.clock.sleep_until(self.clock.now() + delay)
    }

    /// Makes the next choice in a run: with these faults, or with none if a worker or a request only
    /// waits there.
    pub(super) fn choose(&self, run: &Run<K>, possible: &[Fault]) -> Choice {
        let point = run.points.replace(run.points.get() + 1);
        let site = Site {
            key: run.key.clone(),
            run: run.number,
            point,
        };
        let (mut chosen, mut temper) = (self.chosen.borrow_mut(), self.temper.borrow_mut());
        let mut choice = match &mut *temper {
            Some(temper) if chosen.len() < CHOICES_MAX => temper.choose(possible),
            _ => chosen.get(&site).copied().unwrap_or_default(),
        };
        let is_possible = |fault: &Fault| possible.contains(fault);
        let injected = self.injected.borrow_mut().take_if(|it| is_possible(it));
        // In a history that was shortened, another kind of point may have the site.
        choice.fault = injected.or(choice.fault.filter(is_possible));
        if temper.is_some() && choice != Choice::default() {
            chosen.insert(site, choice);
        }
        if choice.fault.is_some() {
            self.last_trouble.set(self.clock.now());
        }
        choice
    }

    pub(super) fn begin_run(&self, worker: usize, key: K, context: RunContext) -> Rc<Run<K>> {
        let mut runs = self.runs.borrow_mut();
        let number = runs.entry(key.clone()).or_insert(0);
        *number += 1;
        let run = Rc::new(Run {
            worker,
            key,
            number: *number,
            began: self.clock.now(),
            context,
            polls: Cell::new(0),
            points: Cell::new(0),
        });
        self.active.borrow_mut().insert(worker, Rc::clone(&run));
        run
    }
}

pub(super) fn is_pending(request: &mut Task) -> bool {
    let mut context = Context::from_waker(Waker::noop());
    request.as_mut().poll(&mut context).is_pending()
}

/// Returns the beginning and the end of a timeline that is too long to be read.
pub(super) fn excerpt(timeline: &str) -> String {
    let mut lines: Vec<_> = timeline.split_inclusive('\n').collect();
    let left_out = lines.len().saturating_sub(2 * EXCERPT);
    let between = format!("  … {left_out} lines are left out …\n");
    if left_out > 0 {
        lines.splice(EXCERPT..EXCERPT + left_out, [&*between]);
    }
    lines.concat()
}

/// After so many choices a history goes on without chance.
const CHOICES_MAX: usize = 1_000;

/// How many lines are shown at both ends of a history.
const EXCERPT: usize = 60;
