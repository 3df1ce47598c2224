//! The workers of each runtime, their reconciler, and what it knows of each key.

use std::collections::HashMap;
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, PoisonError};

use requeue_embassy::{RunContext, RunLimits};
use requeue_proptest::limiter::AnyLimiter;
use requeue_proptest::subject::{Home, Key, Kind};
use requeue_schedules::{Boards, Caller, SECOND, Shares, Tasks, Threads};
use requeue_std::binding::{Shared, ThreadHost};
use requeue_std::{Action, Concurrency, Leftover, Workers};
use requeue_tokio::CancellationToken;
use requeue_tokio::binding::TaskHost;
use shuttle::future::{block_on, yield_now};

use crate::plan::{Ending, KEYS, Plan};

/// A queue, its reconciler, and what the reconciler knows.
pub(crate) struct Fixture<Q> {
    pub(crate) queue: Arc<Q>,
    pub(crate) plan: Plan,
    pub(crate) concurrency: Concurrency,
    pub(crate) token: CancellationToken,
    /// Locked for a moment in which no other thread can run: shuttle does not see these locks.
    accounts: Mutex<[Account; KEYS]>,
    /// What the runs wait for that end once they are overdue.
    hangs: Mutex<HashMap<Key, CancellationToken>>,
}

/// What a key was added for, and what became of it.
///
/// Each add is for a change of what the key names. A run sees all changes that there are when it
/// begins. A key has to run until a run has seen the change of every accepted add, and asks for no
/// other run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Account {
    changes: usize,
    /// The newest change for which an add was accepted.
    pub(crate) accepted: usize,
    /// The newest that the last run saw as it began.
    pub(crate) seen: usize,
    pub(crate) is_running: bool,
    /// The last run has asked for another.
    is_owed: bool,
    /// How many runs were asked for, by adds that were accepted and by runs.
    pub(crate) asked: usize,
    pub(crate) runs: usize,
}

impl Account {
    /// Whether the key has to run, or to be handed back.
    pub(crate) fn is_due(&self) -> bool {
        self.is_owed || self.seen < self.accepted
    }
}

/// What a run has handed back; `None` if it was dropped or could not begin.
type Left = Option<Vec<Leftover<Key>>>;

/// A queue whose runtime runs workers.
pub(crate) trait Works: Shares {
    /// One worker at a time, which does not catch panics.
    const IS_BOARD: bool = false;

    /// The runtime's `run`, until it returns.
    async fn run(fixture: &Arc<Fixture<Self>>, caller: &Caller) -> Left;
}

impl<P: Kind + 'static, S: Home + 'static> Works for Threads<P, S>
where
    Self: Shares,
    Shared<ThreadHost<Key, P, AnyLimiter, S>>: Send + Sync,
{
    async fn run(fixture: &Arc<Fixture<Self>>, _: &Caller) -> Left {
        let overdue = Arc::clone(fixture);
        let workers = fixture.workers().on_overdue(move |key, _| {
            if let Some(hang) = overdue.hangs.lock().unwrap().remove(key) {
                hang.cancel();
            }
        });
        let reconcile = |key: &Key| block_on(fixture.reconcile(*key));
        fixture.queue.run(workers, reconcile).ok()
    }
}

impl<P: Kind + 'static, S: Home + 'static> Works for Tasks<P, S>
where
    Self: Shares,
    Shared<TaskHost<Key, P, AnyLimiter, S>>: Send + Sync,
{
    async fn run(fixture: &Arc<Fixture<Self>>, caller: &Caller) -> Left {
        let reconciled = Arc::clone(fixture);
        let run = fixture.queue.run(fixture.workers(), move |key| {
            let fixture = Arc::clone(&reconciled);
            async move { fixture.reconcile(key).await }
        });
        caller.wait(run.shut_down_on(fixture.token.clone())).await
    }
}

impl<P: Kind + 'static, const N: usize> Works for Boards<P, N>
where
    Self: Shares,
{
    const IS_BOARD: bool = true;

    async fn run(fixture: &Arc<Fixture<Self>>, caller: &Caller) -> Left {
        let mut limits = RunLimits::new().timeout(SECOND);
        if fixture.plan.gives_up {
            limits = limits.max_retries(0);
        }
        let reconcile = async |key: &Key, _: RunContext| fixture.reconcile(*key).await;
        let run = fixture
            .queue
            .run_with(limits, reconcile, |_, _, _| {}, |_, _| {});
        caller.wait(run).await?.unwrap();
        Some(fixture.queue.leftovers().collect())
    }
}

impl<Q: Works> Fixture<Q> {
    /// What is known before anything is done.
    pub(crate) fn new(queue: Arc<Q>, plan: &Plan) -> Self {
        Self {
            queue,
            concurrency: Concurrency::new(plan.workers),
            plan: plan.clone(),
            token: CancellationToken::new(),
            accounts: Mutex::default(),
            hangs: Mutex::default(),
        }
    }

    /// How many workers there have to be.
    pub(crate) fn wanted(&self) -> usize {
        let each = if Q::IS_BOARD {
            1
        } else {
            self.concurrency.get()
        };
        self.plan.runs * each
    }

    /// Adds a key, for a change that the next run has to see.
    pub(crate) fn add(&self, key: Key) {
        let change = self.account(key, |account| {
            account.changes += 1;
            account.changes
        });
        if self.queue.shared().add(key).is_ok() {
            self.account(key, |account| {
                account.accepted = account.accepted.max(change);
                account.asked += 1;
            });
        }
    }

    fn account<T>(&self, key: Key, work: impl FnOnce(&mut Account) -> T) -> T {
        // Also after an assertion that has failed.
        let mut accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        work(&mut accounts[usize::from(key)])
    }

    /// The accounts of all keys.
    pub(crate) fn accounts(&self) -> impl Iterator<Item = Account> {
        (0..KEYS as Key).map(|key| self.account(key, |account| *account))
    }

    /// Whether no key is active.
    pub(crate) fn is_idle(&self) -> bool {
        self.accounts().all(|account| !account.is_running)
    }

    fn workers(&self) -> Workers<'static, Key, &'static str> {
        let mut workers = Workers::new(1)
            .concurrency(&self.concurrency)
            .timeout(SECOND)
            .on_give_up(|_, _| panic_unnoticed());
        if let Some(grace) = self.plan.grace {
            workers = workers.drain_timeout(grace * SECOND);
        }
        if self.plan.gives_up {
            workers = workers.max_retries(0);
        }
        workers
    }

    async fn reconcile(&self, key: Key) -> Result<Action, &'static str> {
        let number = self.account(key, |account| {
            assert!(!account.is_running, "key {key} is worked on twice at once");
            account.is_running = true;
            account.seen = account.changes;
            account.is_owed = false;
            account.runs += 1;
            account.runs - 1
        });
        let mut run = Working {
            fixture: self,
            key,
            is_done: false,
        };
        yield_now().await;
        let ending = self.plan.endings[usize::from(key)].get(number).copied();
        let ending = ending.unwrap_or(Ending::Is(Action::Success));
        match ending {
            Ending::Is(action) => {
                run.is_done = matches!(action, Action::Success | Action::GiveUp);
                return Ok(action);
            }
            Ending::Adds => {
                self.add(key);
                self.add((key + 1) % KEYS as Key);
                run.is_done = true;
                return Ok(Action::Success);
            }
            Ending::Hang if !self.plan.gives_up => {
                let hang = CancellationToken::new();
                self.hangs.lock().unwrap().insert(key, hang.clone());
                hang.cancelled().await;
            }
            Ending::Panic | Ending::Failure | Ending::Hang => {}
        }
        run.is_done = self.plan.gives_up;
        drop(run);
        if ending == Ending::Panic && !Q::IS_BOARD {
            panic_unnoticed();
        }
        Err("failed")
    }
}

/// Panics without the hook, which would take it for the end of the test.
fn panic_unnoticed() {
    resume_unwind(Box::new("on purpose"));
}

/// A run that goes on. It asks for another unless it is done.
struct Working<'s, Q: Works> {
    fixture: &'s Fixture<Q>,
    key: Key,
    is_done: bool,
}

impl<Q: Works> Drop for Working<'_, Q> {
    fn drop(&mut self) {
        self.fixture.account(self.key, |account| {
            account.is_running = false;
            if !self.is_done {
                account.is_owed = true;
                account.asked += 1;
            }
        });
    }
}
