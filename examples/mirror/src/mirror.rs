//! The state that workers share, and one run of a key.

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

/// Each failed key waits only for its own backoff. The default limiter also has a common bucket,
/// which spares a server but would make a thousand failures wait for each other.
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

/// Counters of finished work.
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
    /// Runs that postponed a copy, because the source was being written to.
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

/// Unfinished work, and why.
#[derive(Debug, Default)]
pub(crate) struct Troubles {
    /// Given up, and not corrected since.
    pub(crate) given_up: Mutex<BTreeMap<Key, GivenUp>>,
    /// Refused by the queue, because it was shutting down.
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
    /// Corrects one path. The workers run this.
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
            // This is not a failure: more events follow, and only the last copy counts. Without a
            // watch it ends as a failure at some point.
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
            // The final report may be days away.
            let why = &given_up.why;
            self.progress.warn(&format!("given up: {key}: {why}"));
        }
        locked(&self.troubles.given_up).insert(key.clone(), given_up);
    }

    /// A key has succeeded, so earlier failures no longer count.
    fn cured(&self, key: &Key) {
        let mut given_up = locked(&self.troubles.given_up);
        given_up.remove(key);
        // A directory that could not be listed has changed.
        if let Key::Entry(path) = key
            && given_up.contains_key(&Key::Tree(Arc::clone(path)))
        {
            self.add(Key::Tree(Arc::clone(path)));
        }
    }

    /// Adds a key. A queue that shuts down hands the key back, and the report names it.
    pub(crate) fn add(&self, key: Key) {
        if let Err(rejected) = self.queue.add(key) {
            locked(&self.troubles.refused).insert(rejected.into_key());
        }
    }

    /// Adds many keys, with many under each lock.
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

    /// Prints a change, if the user wants that.
    pub(crate) fn tell(&self, what: &str, path: &Path) {
        if self.verbose {
            self.progress.say(&format!("{what} {}", Escaped(path)));
        }
    }
}

pub(crate) fn count(counter: &AtomicU64, by: u64) {
    counter.fetch_add(by, Ordering::Relaxed);
}

/// Adds a path to the set, or removes it.
pub(crate) fn mark(paths: &Paths, path: &Arc<Path>, is_in: bool) {
    let mut paths = locked(paths);
    if is_in {
        paths.insert(Arc::clone(path));
    } else {
        paths.remove(path);
    }
}

/// A panic leaves nothing here half-done, so a poisoned lock can still be used.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
