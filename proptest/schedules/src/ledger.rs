//! What every key was added for, and what became of it.

use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use requeue_std::{Action, Leftover, Workers};
use shuttle::thread::JoinHandle;

use crate::scene::{SECOND, interrupt, is_at_rest, with};
use crate::waits::{Runs, Waits};

/// Follows each key from its adds through its runs to what is handed back. Clones follow the same
/// keys.
///
/// Each add is for a change of what the key names. A run sees all changes that there are when it
/// begins, and it is owed to a key until one has seen the changes of all adds that were accepted
/// and has not asked for another.
#[derive(Clone, Default)]
pub struct Ledger(Arc<Mutex<BTreeMap<u32, Account>>>);

#[derive(Clone, Copy, Debug, Default)]
struct Account {
    /// How many changes there are.
    changes: u32,
    /// The newest for which an add was accepted.
    accepted: u32,
    /// The newest that the last run saw as it began.
    seen: u32,
    /// The newest that a run has seen which did not ask for another.
    settled: u32,
    is_running: bool,
    /// The last run has asked for another.
    is_owed: bool,
    /// How many runs were asked for, by adds that were accepted and by runs.
    asked: u32,
    runs: u32,
    /// In a row.
    failures: u32,
}

/// How a run ends.
#[derive(Clone, Copy, Debug)]
pub enum Ending {
    /// Well.
    Done,
    /// Well, and is to be repeated.
    Again(Duration),
    /// As if it had not been.
    RetryLater(Duration),
    /// With an error.
    Failed,
    /// With a panic.
    Panicked,
}

/// Each key ends in its own way, and well in the end.
pub fn uneven(key: u32, number: u32) -> Ending {
    match (key, number) {
        (2, 1..=2) => Ending::Failed,
        (3, 1) => Ending::Panicked,
        (4, 1) => Ending::Again(SECOND),
        (4, 2) => Ending::RetryLater(Duration::ZERO),
        _ => Ending::Done,
    }
}

impl Ledger {
    /// Adds a key, for a change that the next run has to see. Returns whether it was accepted.
    pub fn add<Q: Waits>(&self, queue: &Q, key: u32) -> bool {
        let change = self.with(key, |account| {
            account.changes += 1;
            account.changes
        });
        let is_accepted = queue.add(key).is_ok();
        if is_accepted {
            self.with(key, |account| {
                account.accepted = account.accepted.max(change);
                account.asked += 1;
            });
        }
        is_accepted
    }

    /// A thread that adds keys.
    pub fn producer<Q: Waits, const N: usize>(&self, queue: &Q, keys: [u32; N]) -> JoinHandle<()> {
        let ledger = self.clone();
        with(queue, move |queue| {
            for key in keys {
                ledger.add(queue, key);
            }
        })
    }

    /// Workers whose giving up is in the ledger, and panics.
    pub fn workers(&self, count: usize) -> Workers<'static, u32, &'static str> {
        let ledger = self.clone();
        Workers::new(count).on_give_up(move |&key, _| {
            ledger.with(key, |account| {
                account.settled = account.settled.max(account.seen);
                account.is_owed = false;
                account.asked -= 1;
                account.failures = 0;
            });
            resume_unwind(Box::new("gave up"));
        })
    }

    /// The runtime's `run`, whose every run ends as given by the key and the number of its run,
    /// from 1. Others may come while it goes on.
    pub fn run<Q: Runs>(
        &self,
        queue: &Q,
        workers: Workers<'static, u32, &'static str>,
        ending: impl Fn(u32, u32) -> Ending + Send + Sync + 'static,
    ) -> Vec<Leftover<u32>> {
        let ledger = self.clone();
        queue.run(workers, move |key| {
            let run = ledger.begin(key);
            interrupt();
            let ending = ending(key, run.number);
            run.end(ending)
        })
    }

    /// A run of a key begins.
    ///
    /// # Panics
    ///
    /// If another goes on.
    pub fn begin(&self, key: u32) -> Run {
        let number = self.with(key, |account| {
            assert!(!account.is_running, "key {key} is worked on twice at once");
            account.is_running = true;
            account.seen = account.changes;
            account.is_owed = false;
            account.runs += 1;
            account.runs
        });
        Run {
            ledger: self.clone(),
            key,
            number,
            ending: Ending::Failed,
        }
    }

    /// Whether no key is active.
    pub fn is_idle(&self) -> bool {
        self.accounts().values().all(|account| !account.is_running)
    }

    /// Once all have ended: what was worked on and what is left, in the order in which it was
    /// handed back, are together what was accepted, and the queue keeps nothing.
    ///
    /// # Panics
    ///
    /// If that is not so.
    pub fn settle<Q: Waits>(&self, queue: &Q, leftovers: impl IntoIterator<Item = Leftover<u32>>) {
        let mut left: BTreeMap<u32, Vec<Leftover<u32>>> = BTreeMap::new();
        for leftover in leftovers {
            left.entry(leftover.key).or_default().push(leftover);
        }
        let accounts = self.accounts().clone();
        for (key, account) in &accounts {
            assert!(!account.is_running, "key {key} is still active");
            let left = left.remove(key).unwrap_or_default();
            // A delay that a key has beside its run may be handed back while that goes on.
            let is_repeated = account.runs as usize + left.len() > account.asked as usize;
            assert!(
                !is_repeated,
                "key {key} has come twice: {account:?}, {left:?}"
            );
            let Some(last) = left.last() else {
                assert!(!account.is_due(), "key {key} is lost: {account:?}");
                continue;
            };
            assert_eq!(last.failures, account.failures, "failures of key {key}");
            // All that a queue keeps of a key that it has handed back.
            queue.as_shared().forget(key);
        }
        assert!(left.is_empty(), "never added: {left:?}");
        is_at_rest(queue);
    }

    /// As [`settle`](Self::settle), of workers who had all the time there is: whatever is left, a
    /// run has seen every change.
    ///
    /// # Panics
    ///
    /// If that is not so.
    pub fn settle_drained<Q: Waits>(&self, queue: &Q, leftovers: Vec<Leftover<u32>>) {
        for (key, account) in &*self.accounts() {
            let is_seen = account.seen >= account.accepted;
            assert!(is_seen, "no worker has tried key {key}: {account:?}");
        }
        self.settle(queue, leftovers);
    }

    fn with<T>(&self, key: u32, work: impl FnOnce(&mut Account) -> T) -> T {
        work(self.accounts().entry(key).or_default())
    }

    /// Held for a moment in which no other thread can run: shuttle does not see this lock.
    fn accounts(&self) -> std::sync::MutexGuard<'_, BTreeMap<u32, Account>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A run that goes on. It fails if it is dropped.
pub struct Run {
    ledger: Ledger,
    key: u32,
    /// Which of its key's runs it is, from 1.
    pub number: u32,
    ending: Ending,
}

impl Run {
    /// Ends: what the reconciler returns.
    ///
    /// # Errors
    ///
    /// If it is to fail.
    ///
    /// # Panics
    ///
    /// If it is to.
    pub fn end(mut self, ending: Ending) -> Result<Action, &'static str> {
        self.ending = ending;
        drop(self);
        match ending {
            Ending::Done => Ok(Action::Success),
            Ending::Again(after) => Ok(Action::RequeueAfter(after)),
            Ending::RetryLater(after) => Ok(Action::Snooze(after)),
            Ending::Failed => Err("failed"),
            // Without the hook, which would take it for the end of the test.
            Ending::Panicked => resume_unwind(Box::new("panicked")),
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.ledger.with(self.key, |account| {
            account.is_running = false;
            match self.ending {
                Ending::Done => account.settled = account.settled.max(account.seen),
                _ => {
                    account.is_owed = true;
                    account.asked += 1;
                }
            }
            match self.ending {
                Ending::Done | Ending::Again(_) => account.failures = 0,
                Ending::RetryLater(_) => {}
                Ending::Failed | Ending::Panicked => account.failures += 1,
            }
        });
    }
}

impl Account {
    fn is_due(&self) -> bool {
        self.is_owed || self.accepted > self.settled
    }
}
