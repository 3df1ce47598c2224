//! What the workers share.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use requeue::std::{Action, Failure, WorkQueue};

use crate::copy::{REST, Temps};
use crate::error::Error;
use crate::figures::Figures;
use crate::key::Key;
use crate::progress::Progress;
use crate::roots::Roots;
use crate::text::Escaped;
use crate::watch::Watch;

/// Each failed key waits for its own backoff only. The default limiter's common bucket, made to
/// spare a server, would have a thousand failures wait for each other.
pub(crate) type Queue = WorkQueue<Key>;

pub(crate) struct Mirror {
    pub(crate) roots: Roots,
    pub(crate) queue: Queue,
    pub(crate) figures: Figures,
    pub(crate) watch: Option<Watch>,
    pub(crate) temps: Temps,
    pub(crate) tally: Tally,
    pub(crate) troubles: Troubles,
    pub(crate) progress: Progress,
    /// Whether every change is printed.
    pub(crate) verbose: bool,
}

/// What was done, counted.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) runs: AtomicU64,
    pub(crate) files: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) directories: AtomicU64,
    pub(crate) links: AtomicU64,
    pub(crate) retouched: AtomicU64,
    pub(crate) deleted: AtomicU64,
    /// Entries that were compared and found equal.
    pub(crate) right: AtomicU64,
    /// Runs that put a copy off, since the source was being written to.
    pub(crate) postponed: AtomicU64,
}

impl Tally {
    /// How often the target was changed.
    pub(crate) fn changes(&self) -> u64 {
        let counters = [
            &self.files,
            &self.directories,
            &self.links,
            &self.retouched,
            &self.deleted,
        ];
        let counts = counters.map(|counter| counter.load(Ordering::Relaxed));
        counts.into_iter().fold(0, u64::saturating_add)
    }
}

/// What was not done, and why.
#[derive(Debug, Default)]
pub(crate) struct Troubles {
    /// Given up, and not made right since.
    pub(crate) given_up: Mutex<BTreeMap<Key, GivenUp>>,
    /// Not taken by the queue, since it was shutting down.
    pub(crate) refused: Mutex<BTreeSet<Key>>,
    /// Devices, sockets and FIFOs.
    pub(crate) special: Paths,
    /// Copies that do not have the set-user-ID or set-group-ID bit of their source.
    pub(crate) without_set_id: Paths,
}

pub(crate) type Paths = Mutex<BTreeSet<Arc<Path>>>;

/// Why a key was given up.
#[derive(Debug)]
pub(crate) struct GivenUp {
    pub(crate) why: String,
    pub(crate) is_disk_full: bool,
}

impl Mirror {
    /// Makes one place right. This is what the workers run.
    pub(crate) fn reconcile(&self, key: &Key) -> Result<Action, Error> {
        let done = match key {
            Key::Entry(path) => self.entry(path),
            Key::Tree(path) => self.tree(path),
        };
        count(&self.tally.runs, 1);
        match done {
            Ok(()) => {
                self.cured(key);
                Ok(Action::Success)
            }
            // Nothing is wrong: events will go on coming, and the last copy is the one that counts.
            // Without a watch this ends some time, as a failure.
            Err(Error::Unsettled) if self.watch.is_some() => {
                count(&self.tally.postponed, 1);
                Ok(Action::RequeueAfter(REST))
            }
            Err(error) => Err(error),
        }
    }

    /// A key has failed too often.
    pub(crate) fn give_up(&self, key: &Key, failure: &Failure<Error>) {
        let given_up = GivenUp {
            why: failure.to_string(),
            is_disk_full: matches!(failure, Failure::Error(error) if error.is_disk_full()),
        };
        if self.watch.is_some() {
            // The report may be days away.
            let why = &given_up.why;
            self.progress.warn(&format!("given up: {key}: {why}"));
        }
        locked(&self.troubles.given_up).insert(key.clone(), given_up);
    }

    /// A key has succeeded, whatever became of it before.
    fn cured(&self, key: &Key) {
        let mut given_up = locked(&self.troubles.given_up);
        given_up.remove(key);
        // Something has changed about a directory that could not be listed.
        if let Key::Entry(path) = key
            && given_up.contains_key(&Key::Tree(Arc::clone(path)))
        {
            self.add(Key::Tree(Arc::clone(path)));
        }
    }

    /// Adds a key. While the queue shuts down it hands the key back, and the report names it.
    pub(crate) fn add(&self, key: Key) {
        if let Err(rejected) = self.queue.add(key) {
            locked(&self.troubles.refused).insert(rejected.into_key());
        }
    }

    /// Adds many keys, taking the queue's lock once for a good many.
    pub(crate) fn add_all(&self, keys: Vec<Key>) {
        const AT_ONCE: usize = 256;
        let mut keys = keys.into_iter().peekable();
        while keys.peek().is_some() {
            let some = keys.by_ref().take(AT_ONCE);
            for rejected in self.queue.add_many(some).rejected {
                locked(&self.troubles.refused).insert(rejected.into_key());
            }
        }
    }

    /// Tells the user of a change, if told to.
    pub(crate) fn tell(&self, what: &str, path: &Path) {
        if self.verbose {
            self.progress.say(&format!("{what} {}", Escaped(path)));
        }
    }
}

pub(crate) fn count(counter: &AtomicU64, by: u64) {
    counter.fetch_add(by, Ordering::Relaxed);
}

/// Puts a path in the set, or takes it out.
pub(crate) fn mark(paths: &Paths, path: &Arc<Path>, is_in: bool) {
    let mut paths = locked(paths);
    if is_in {
        paths.insert(Arc::clone(path));
    } else {
        paths.remove(path);
    }
}

/// Nothing here is left half-done by a panic, so a poisoned lock is as good as any.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
