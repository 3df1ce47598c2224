//! The workers of each runtime.

use std::future::poll_fn;
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use requeue_embassy::{RunContext, RunLimits};
use requeue_proptest::limiter::AnyLimiter;
use requeue_proptest::subject::{Home, Key, Kind};
use requeue_schedules::{Boards, Caller, SECOND, Shares, Tasks, Threads};
use requeue_std::binding::{Shared, ThreadHost};
use requeue_std::{Action, Concurrency, Leftover, Workers, refuse_threads};
use requeue_tokio::CancellationToken;
use requeue_tokio::binding::TaskHost;
use shuttle::future::{block_on, yield_now};

use crate::plan::{Ending, KEYS, Plan, setup};

/// A queue, its reconciler, and what the reconciler knows.
pub(crate) struct Fixture<Q> {
    pub(crate) queue: Q,
    pub(crate) plan: Plan,
    pub(crate) concurrency: Concurrency,
    pub(crate) token: CancellationToken,
    /// Locked for a moment in which no other thread can run: shuttle does not see these locks.
    accounts: Mutex<[Account; KEYS]>,
    /// The runs that are overdue, and those who wait for that.
    overdue: Mutex<(Vec<Key>, Vec<Waker>)>,
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
    /// The newest that a run has seen which did not ask for another.
    settled: usize,
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
        self.is_owed || self.settled < self.accepted
    }
}

/// A queue whose runtime runs workers.
pub(crate) trait Works: Shares {
    /// Whether a run that panics counts as failed.
    const CATCHES: bool = true;

    /// How many workers there have to be.
    fn wanted(fixture: &Fixture<Self>) -> usize {
        fixture.plan.runs * fixture.concurrency.get()
    }

    /// The runtime's `run`, until it returns. `None` if it was dropped or could not begin.
    async fn run(
        fixture: &Arc<Fixture<Self>>,
        caller: &Caller,
        refused: Option<usize>,
    ) -> Option<Vec<Leftover<Key>>>;
}

impl<P: Kind + 'static, S: Home + 'static> Works for Threads<P, S>
where
    Self: Shares,
    Shared<ThreadHost<Key, P, AnyLimiter, S>>: Send + Sync,
{
    async fn run(
        fixture: &Arc<Fixture<Self>>,
        _: &Caller,
        refused: Option<usize>,
    ) -> Option<Vec<Leftover<Key>>> {
        refuse_threads(refused);
        let overdue = Arc::clone(fixture);
        let workers = fixture.workers();
        let workers = workers.on_overdue(move |key, _| overdue.report(*key));
        let left = fixture
            .queue
            .run(workers, |key| block_on(fixture.reconcile(*key)));
        refuse_threads(None);
        left.ok()
    }
}

impl<P: Kind + 'static, S: Home + 'static> Works for Tasks<P, S>
where
    Self: Shares,
    Shared<TaskHost<Key, P, AnyLimiter, S>>: Send + Sync,
{
    async fn run(
        fixture: &Arc<Fixture<Self>>,
        caller: &Caller,
        _: Option<usize>,
    ) -> Option<Vec<Leftover<Key>>> {
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
    const CATCHES: bool = false;

    fn wanted(fixture: &Fixture<Self>) -> usize {
        fixture.plan.runs
    }

    /// One worker.
    async fn run(
        fixture: &Arc<Fixture<Self>>,
        caller: &Caller,
        _: Option<usize>,
    ) -> Option<Vec<Leftover<Key>>> {
        let limits = RunLimits::new().timeout(SECOND);
        let limits = match fixture.plan.gives_up {
            true => limits.max_retries(0),
            false => limits,
        };
        let reconcile = async |key: &Key, _: RunContext| fixture.reconcile(*key).await;
        let run = fixture
            .queue
            .run_with(limits, reconcile, |_, _, _| {}, |_, _| {});
        caller.wait(run).await?.unwrap();
        Some(fixture.queue.leftovers().collect())
    }
}

impl<Q: Works> Fixture<Q> {
    /// A new queue, and nothing done yet.
    pub(crate) fn new(plan: &Plan) -> Self {
        Self {
            queue: Q::new(&setup::<Q>()),
            concurrency: Concurrency::new(plan.workers),
            plan: plan.clone(),
            token: CancellationToken::new(),
            accounts: Mutex::default(),
            overdue: Mutex::default(),
        }
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
        work(&mut locked(&self.accounts)[usize::from(key)])
    }

    /// The accounts of all keys.
    pub(crate) fn accounts(&self) -> [Account; KEYS] {
        *locked(&self.accounts)
    }

    /// Whether no key is active.
    pub(crate) fn is_idle(&self) -> bool {
        self.accounts().iter().all(|account| !account.is_running)
    }

    fn workers(&self) -> Workers<'static, Key, &'static str> {
        let mut workers = Workers::new(1)
            .concurrency(&self.concurrency)
            .timeout(SECOND)
            // Without the hook, which would take it for the end of the test.
            .on_give_up(|_, _| resume_unwind(Box::new("gave up")));
        if let Some(grace) = self.plan.grace {
            workers = workers.drain_timeout(grace * SECOND);
        }
        match self.plan.gives_up {
            true => workers.max_retries(0),
            false => workers,
        }
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
        let run = Working {
            accounts: &self.accounts,
            key,
            is_done: false,
        };
        yield_now().await;
        let ending = self.plan.endings[usize::from(key)].get(number).copied();
        match ending.unwrap_or(Ending::Success) {
            Ending::Success => run.done(Ok(Action::Success)),
            Ending::GiveUp => run.done(Ok(Action::GiveUp)),
            Ending::Adds => {
                self.add(key);
                self.add((key + 1) % KEYS as Key);
                run.done(Ok(Action::Success))
            }
            Ending::Requeue => Ok(Action::RequeueAfter(SECOND)),
            Ending::Snooze => Ok(Action::Snooze(SECOND)),
            failure => {
                let gives_up = self.plan.gives_up;
                if failure == Ending::Hang && !gives_up {
                    self.is_overdue(key).await;
                }
                match gives_up {
                    true => run.done(()),
                    false => drop(run),
                }
                if failure == Ending::Panic && Q::CATCHES {
                    // Without the hook, which would take it for the end of the test.
                    resume_unwind(Box::new("panicked"));
                }
                Err("failed")
            }
        }
    }

    /// A run of a key is overdue.
    fn report(&self, key: Key) {
        let mut overdue = self.overdue.lock().unwrap();
        overdue.0.push(key);
        let waiting = std::mem::take(&mut overdue.1);
        drop(overdue);
        waiting.into_iter().for_each(Waker::wake);
    }

    async fn is_overdue(&self, key: Key) {
        poll_fn(|context| {
            let mut overdue = self.overdue.lock().unwrap();
            if let Some(place) = overdue.0.iter().position(|other| *other == key) {
                overdue.0.remove(place);
                return Poll::Ready(());
            }
            overdue.1.push(context.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

/// Also after an assertion that has failed.
fn locked(accounts: &Mutex<[Account; KEYS]>) -> MutexGuard<'_, [Account; KEYS]> {
    accounts.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A run that goes on. It asks for another if it is dropped.
struct Working<'s> {
    accounts: &'s Mutex<[Account; KEYS]>,
    key: Key,
    is_done: bool,
}

impl Working<'_> {
    /// It ends with this, and asks for no other.
    fn done<T>(mut self, ending: T) -> T {
        self.is_done = true;
        ending
    }
}

impl Drop for Working<'_> {
    fn drop(&mut self) {
        let account = &mut locked(self.accounts)[usize::from(self.key)];
        account.is_running = false;
        if self.is_done {
            account.settled = account.settled.max(account.seen);
        } else {
            account.is_owed = true;
            account.asked += 1;
        }
    }
}
