//! The runs of a queue's workers: those in progress, the last that ended, and how long all took. Owns
//! what is kept of a run; never touches the queue.

use std::collections::{HashMap, VecDeque};
use std::fmt::Display;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use requeue_core::{Concurrency, Instant, RunContext, RunEvent};

use crate::text::{cut, id, millis};
use crate::view::{EndView, QueueView, RunView, Times};

/// How much of an error's text is kept.
const ERROR_MAX: usize = 2 * 1024;

/// What workers report.
pub(crate) struct History<K>(Mutex<State<K>>);

struct State<K> {
    running: HashMap<K, Run>,
    /// The last runs that have failed, and those that have not: a flood of either evicts none of
    /// the other.
    failed: VecDeque<End<K>>,
    fine: VecDeque<End<K>>,
    /// How many of each are kept.
    capacity: usize,
    waits: Times,
    /// Whether the queue measures how long keys wait.
    keeps_times: bool,
    run_times: Times,
    runs: u64,
    failures: u64,
    given_up: u64,
    /// Where the workers take their number from.
    workers: Vec<Concurrency>,
}

#[derive(Clone, Copy)]
struct Run {
    since: Instant,
    attempt: u32,
    overdue: bool,
}

struct End<K> {
    key: K,
    outcome: &'static str,
    error: Option<String>,
    attempt: u32,
    took: Duration,
    at: Instant,
}

impl<K: Clone + Eq + Hash> History<K> {
    pub(crate) fn new(capacity: usize) -> Self {
        Self(Mutex::new(State {
            running: HashMap::new(),
            failed: VecDeque::new(),
            fine: VecDeque::new(),
            capacity,
            waits: Times::default(),
            keeps_times: false,
            run_times: Times::default(),
            runs: 0,
            failures: 0,
            given_up: 0,
            workers: Vec::new(),
        }))
    }

    pub(crate) fn set_capacity(&self, ends: usize) {
        self.lock().capacity = ends;
    }

    pub(crate) fn watch(&self, workers: &Concurrency) {
        self.lock().workers.push(workers.clone());
    }

    pub(crate) fn note<E: Display>(&self, key: &K, event: &RunEvent<'_, E>, now: Instant) {
        let outcome = event.outcome().unwrap_or_default();
        match event {
            RunEvent::Started(context) => self.lock().begin(key, context, now),
            RunEvent::Finished { took, .. } => self.end(key, outcome, None, *took, now),
            RunEvent::Failed {
                failure,
                is_given_up,
                took,
                ..
            } => {
                let error = cut(*failure, ERROR_MAX);
                if *is_given_up {
                    self.lock().given_up += 1;
                }
                self.end(key, outcome, Some(error), *took, now);
            }
            RunEvent::Overdue(_) => {
                if let Some(run) = self.lock().running.get_mut(key) {
                    run.overdue = true;
                }
            }
            RunEvent::Aborted => {
                let since = self.lock().running.get(key).map(|run| run.since);
                let took = since.map_or(Duration::ZERO, |since| now.saturating_since(since));
                self.end(key, "aborted", None, took, now);
            }
            _ => {}
        }
    }

    fn end(
        &self,
        key: &K,
        outcome: &'static str,
        error: Option<String>,
        took: Duration,
        at: Instant,
    ) {
        let mut state = self.lock();
        // With the key that the run was noted with, which is not cloned again.
        let run = state.running.remove_entry(key);
        state.runs += 1;
        state.run_times.note(took);
        let has_failed = error.is_some();
        state.failures += u64::from(has_failed);
        let attempt = run.as_ref().map_or(1, |(_, run)| run.attempt);
        let end = End {
            key: run.map_or_else(|| key.clone(), |(key, _)| key),
            outcome,
            error,
            attempt,
            took,
            at,
        };
        let capacity = state.capacity;
        let ends = match has_failed {
            true => &mut state.failed,
            false => &mut state.fine,
        };
        ends.push_back(end);
        let oldest = (ends.len() > capacity).then(|| ends.pop_front());
        drop(state);
        // The `Drop` of a key is foreign code.
        drop(oldest);
    }

    /// Adds what is known of the runs to the view of their queue.
    pub(crate) fn fill(&self, view: &mut QueueView) {
        let state = self.lock();
        let workers = state.workers.iter().map(Concurrency::get);
        view.workers = (!state.workers.is_empty()).then(|| workers.sum());
        view.runs = state.runs;
        view.failures = state.failures;
        view.given_up = state.given_up;
        if state.keeps_times {
            view.waits = state.waits.view();
        }
        view.run_times = state.run_times.view();
    }

    /// Sets the number of workers. Returns `false` if it is not that of one `run` alone.
    pub(crate) fn set_workers(&self, count: usize) -> bool {
        let workers = self.lock().workers.clone();
        if let [one] = &*workers {
            one.set(count);
        }
        workers.len() == 1
    }

    /// For how long a key's run has been going on, and which attempt it is.
    pub(crate) fn run_of(&self, key: &K, now: Instant) -> Option<(Duration, u32)> {
        let run = *self.lock().running.get(key)?;
        Some((now.saturating_since(run.since), run.attempt))
    }

    /// Why a key's last run failed that has failed.
    pub(crate) fn last_error(&self, key: &K) -> Option<String> {
        let state = self.lock();
        let end = state.failed.iter().rev().find(|end| end.key == *key)?;
        end.error.clone()
    }

    /// A key that is known from its runs.
    pub(crate) fn find(&self, mut is_wanted: impl FnMut(&K) -> bool) -> Option<K> {
        let state = self.lock();
        let ended = state.failed.iter().chain(&state.fine).map(|end| &end.key);
        let mut known = state.running.keys().chain(ended);
        known.find(|key| is_wanted(key)).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, State<K>> {
        // A key whose code panics leaves the state valid.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Clone + Eq + Hash + Display> History<K> {
    /// The runs in progress, the oldest first.
    pub(crate) fn runs(&self, limit: usize, now: Instant) -> Vec<RunView> {
        let running = self.lock().running.clone();
        let mut runs: Vec<(K, Run)> = running.into_iter().collect();
        runs.sort_by_key(|(_, run)| run.since);
        runs.truncate(limit);
        let view = |(key, run): (K, Run)| RunView {
            id: id(&key),
            running_ms: millis(now.saturating_since(run.since)),
            attempt: run.attempt,
            overdue: run.overdue,
        };
        runs.into_iter().map(view).collect()
    }

    /// The runs that ended last, of one key or of all, the latest first.
    pub(crate) fn ends(&self, of: Option<&K>, limit: usize, now: Instant) -> Vec<EndView> {
        let state = self.lock();
        let is_wanted = |end: &&End<K>| of.is_none_or(|key| end.key == *key);
        let latest = |ends: &VecDeque<End<K>>| {
            let ends = ends.iter().rev().filter(is_wanted).take(limit);
            let view = |end: &End<K>| (end.at, end.key.clone(), end.view(now));
            ends.map(view).collect::<Vec<_>>()
        };
        let mut ends = latest(&state.failed);
        ends.extend(latest(&state.fine));
        drop(state);
        ends.sort_by_key(|(at, ..)| std::cmp::Reverse(*at));
        ends.truncate(limit);
        // Keys display themselves outside of the lock.
        let view = |(_, key, end)| EndView {
            id: id(&key),
            ..end
        };
        ends.into_iter().map(view).collect()
    }
}

impl<K> State<K> {
    fn begin(&mut self, key: &K, context: &RunContext, now: Instant)
    where
        K: Clone + Eq + Hash,
    {
        self.keeps_times |= !context.waited.is_zero();
        self.waits.note(context.waited);
        let run = Run {
            since: now,
            attempt: context.attempt,
            overdue: false,
        };
        self.running.insert(key.clone(), run);
    }
}

impl<K> End<K> {
    /// Without the id.
    fn view(&self, now: Instant) -> EndView {
        EndView {
            id: String::new(),
            outcome: self.outcome.to_owned(),
            error: self.error.clone(),
            attempt: self.attempt,
            took_ms: self.took.as_secs_f64() * 1e3,
            ago_ms: millis(now.saturating_since(self.at)),
        }
    }
}
