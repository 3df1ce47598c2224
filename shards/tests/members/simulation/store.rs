//! The source of truth, which compares fences, and the log of what was done to it.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use requeue_shards::{Fence, Shard};
use tokio::time::Instant;

use super::link::Plant;

/// Objects with a version, and the version that was last worked on.
pub(crate) struct Store {
    state: Mutex<State>,
    plant: Plant,
}

#[derive(Default)]
struct State {
    rows: BTreeMap<String, Row>,
    /// The greatest fence that was seen of each shard.
    fences: BTreeMap<Shard, Fence>,
    runs: Vec<Run>,
    refused: u64,
    stale: u64,
}

#[derive(Clone, Copy, Default)]
struct Row {
    version: u64,
    done: u64,
    changed: Option<Instant>,
}

/// A run of a key, from its begin to its end.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) key: String,
    pub(crate) replica: usize,
    pub(crate) fence: Fence,
    pub(crate) begin: Instant,
    pub(crate) end: Option<Instant>,
    /// Whether its process was stopped meanwhile.
    pub(crate) was_stopped: bool,
}

impl Store {
    pub(crate) fn new(plant: Plant) -> Self {
        Self {
            state: Mutex::default(),
            plant,
        }
    }

    fn with<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        look(&mut self.state.lock().unwrap())
    }

    pub(crate) fn change(&self, key: &str) {
        self.with(|state| {
            let row = state.rows.entry(key.to_owned()).or_default();
            row.version += 1;
            row.changed = Some(Instant::now());
        });
    }

    /// The keys of a shard that have something to do. Raises the fence first.
    pub(crate) fn take_over(&self, shard: Shard, fence: Fence, keys: &[String]) -> Vec<String> {
        self.with(|state| {
            let stored = state.fences.entry(shard).or_insert(fence);
            *stored = fence.max(*stored);
            let rows = &state.rows;
            let is_owed = |key: &&String| rows.get(*key).is_some_and(|row| row.done != row.version);
            keys.iter().filter(is_owed).cloned().collect()
        })
    }

    pub(crate) fn version(&self, key: &str) -> u64 {
        self.with(|state| state.rows.get(key).map_or(0, |row| row.version))
    }

    /// Stores that a version was worked on, if no greater fence has been seen.
    pub(crate) fn write(&self, key: &str, shard: Shard, fence: Fence, version: u64) -> bool {
        self.with(|state| {
            let stored = state.fences.entry(shard).or_insert(fence);
            let is_stale = fence < *stored;
            if is_stale && self.plant != Plant::FenceUnchecked {
                state.refused += 1;
                return false;
            }
            state.stale += u64::from(is_stale);
            *stored = fence.max(*stored);
            state.rows.entry(key.to_owned()).or_default().done = version;
            true
        })
    }

    pub(crate) fn begin(&self, run: Run) -> usize {
        self.with(|state| {
            state.runs.push(run);
            state.runs.len() - 1
        })
    }

    pub(crate) fn end(&self, run: usize) {
        self.with(|state| state.runs[run].end = Some(Instant::now()));
    }

    /// The process of this replica is stopped, or goes on.
    pub(crate) fn stopped(&self, replica: usize) {
        self.with(|state| {
            let runs = state.runs.iter_mut();
            for run in runs.filter(|run| run.replica == replica && run.end.is_none()) {
                run.was_stopped = true;
            }
        });
    }

    pub(crate) fn died(&self, replica: usize) {
        let now = Instant::now();
        self.with(|state| {
            let runs = state.runs.iter_mut();
            for run in runs.filter(|run| run.replica == replica && run.end.is_none()) {
                run.end = Some(now);
            }
        });
    }

    /// What is wrong with what was done.
    pub(crate) fn review(&self) -> Vec<String> {
        self.with(|state| {
            let mut wrong = Vec::new();
            if state.stale > 0 {
                wrong.push(format!("{} stale writes were accepted", state.stale));
            }
            for (key, row) in &state.rows {
                if row.done != row.version {
                    let since = row.changed.map(|at| at.elapsed()).unwrap_or(Duration::MAX);
                    let (done, version) = (row.done, row.version);
                    wrong.push(format!(
                        "{key} is at {done} of {version}, changed {since:?} ago"
                    ));
                }
            }
            wrong.extend(overlaps(&state.runs));
            wrong
        })
    }

    pub(crate) fn refused(&self) -> u64 {
        self.with(|state| state.refused)
    }
}

/// Runs of one key at the same time, unless the process of the one that began first was stopped
/// then; and runs whose fence is not greater than that of a run before on another replica.
fn overlaps(runs: &[Run]) -> Vec<String> {
    let mut by_key: BTreeMap<&str, Vec<&Run>> = BTreeMap::new();
    for run in runs {
        by_key.entry(&run.key).or_default().push(run);
    }
    let mut wrong = Vec::new();
    for runs in by_key.values() {
        for (place, later) in runs.iter().enumerate() {
            for earlier in &runs[..place] {
                let overlaps = earlier.end.is_none_or(|end| end > later.begin);
                if overlaps && !earlier.was_stopped {
                    wrong.push(format!("{earlier:?} overlaps {later:?}"));
                }
                let is_other = earlier.replica != later.replica;
                if is_other && earlier.fence >= later.fence && !later.was_stopped {
                    wrong.push(format!("{later:?} has no greater fence than {earlier:?}"));
                }
            }
        }
    }
    wrong
}
