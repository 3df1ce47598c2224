//! What several threads do to one queue, and one run of it.

use std::fmt;
use std::ops::Deref;
use std::sync::Mutex;
use std::time::Duration;

use requeue_proptest::histories::{Operation, Sleeper, at_once};
use requeue_proptest::limiter::AnyLimiter;
use requeue_proptest::proptest::collection::vec;
use requeue_proptest::proptest::prelude::*;
use requeue_proptest::proptest::sample::select;
use requeue_proptest::proptest::strategy::ValueTree;
use requeue_proptest::proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use requeue_proptest::subject::{
    Answer, Call, Configuration, Drain, Handed, Home, Key, Kind, LimiterSpec, Run, Ticket,
    answer_of,
};
use requeue_schedules::SECOND;
use requeue_std::binding::{self, Guard, Host, Next};
use requeue_std::{Action, WaitError};

use crate::search::{Called, History, explain};

/// The steps of each thread. The first thread never waits; it shuts the queue down in the end. A
/// step picks one of the runs that its thread has; nothing happens if there is none.
pub(crate) struct Program(pub(crate) Vec<Vec<Operation>>);

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (thread, steps) in self.0.iter().enumerate() {
            writeln!(f, "thread {thread} runs {steps:?}")?;
        }
        Ok(())
    }
}

const KEYS: Key = 3;

/// Draws `count` programs whose delays are seconds, the same for the same seed: any, and twice as
/// many that are short and about the same key.
pub(crate) fn programs(seed: u64, count: usize) -> impl Iterator<Item = Program> {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(ProptestConfig::default(), rng);
    let any = vec(at_once(1..8, KEYS, false, SECOND), 2..=4);
    // A race is between two calls on a key that is in a certain state, and nothing else goes on.
    let bouts = (opening(), at_once(1..5, KEYS, true, SECOND));
    let duel = vec(
        bouts.prop_map(|(opening, bouts)| [opening, bouts].concat()),
        2..=3,
    );
    let drawn = prop_oneof![1 => any, 2 => duel];
    let draw = move || drawn.new_tree(&mut runner).ok();
    std::iter::from_fn(draw)
        .map(|tree| Program(tree.current()))
        .take(count)
}

/// Steps that bring keys into a state that matters to the calls which follow.
fn opening() -> impl Strategy<Value = Vec<Operation>> {
    use Operation::{Add, AddAfter, AddMany, AddRateLimited, Advance, GetMany, TryGet};
    let many = || AddMany(vec![1, 2, 3]);
    select(vec![
        vec![],
        vec![],
        vec![Add(1)],
        vec![Add(1), Add(2)],
        vec![Add(1), TryGet],
        vec![Add(1), TryGet, Add(1)],
        vec![AddRateLimited(1), Advance(SECOND * 3), TryGet],
        vec![AddAfter(1, SECOND * 2)],
        vec![AddRateLimited(1)],
        vec![many(), GetMany(3, Sleeper::New)],
        vec![many(), GetMany(3, Sleeper::New)],
        vec![many(), TryGet, TryGet],
        vec![many()],
    ])
}

/// A queue that several threads or tasks share.
pub(crate) trait Shared: Send + Sync + Sized + 'static {
    type Guard<'q>;
    const CAPACITY: Option<usize>;

    /// An empty queue, on a clock that [`Operation::Advance`] alone moves.
    fn new(setup: &Configuration) -> Self;

    /// Makes a call, and keeps in `runs` what is handed out.
    fn perform<'q>(
        &'q self,
        operation: &Operation,
        runs: &mut Runs<Self::Guard<'q>>,
    ) -> impl Future<Output = Answer>;

    fn assert_valid(&self);
}

/// What one thread has been handed out.
pub(crate) struct Runs<G> {
    held: Vec<(Ticket, G)>,
    /// Numbers the runs of a history.
    last: u64,
}

impl<G> Runs<G> {
    /// Removes and returns the guard of a run.
    pub(crate) fn take(&mut self, run: Run) -> Option<G> {
        let mut held = self.held.iter();
        let index = held.position(|(ticket, _)| Run::Of(*ticket) == run)?;
        Some(self.held.remove(index).1)
    }

    fn pick(&self, run: Run) -> Option<Run> {
        match run {
            Run::Pick(pick) => {
                let index = usize::from(pick).checked_rem(self.held.len())?;
                Some(self.held[index].0.into())
            }
            Run::Of(_) => Some(run),
        }
    }
}

impl<H: Host<Key = Key>, R: Deref<Target = binding::Shared<H>>> Runs<Guard<H, R>> {
    /// Keeps a guard that was handed out.
    pub(crate) fn handed(&mut self, guard: Guard<H, R>) -> Handed {
        self.last += 1;
        let (key, run) = (*guard, self.last);
        let handed = Handed {
            key,
            ticket: Ticket { key, run },
            failures: guard.failures(),
            priority: guard.priority(),
            timed_out: guard.timed_out(),
        };
        self.held.push((handed.ticket, guard));
        handed
    }

    /// The answer of a call that waits for a key: no work if it has waited for no time.
    pub(crate) fn got(&mut self, got: Result<Guard<H, R>, WaitError>) -> Answer {
        match got {
            Ok(guard) => Answer::Next(Next::Work(self.handed(guard))),
            Err(WaitError::TimedOut) => Answer::Work(None),
            Err(_) => Answer::Next(Next::Closed),
        }
    }
}

/// Makes the calls that never wait.
pub(crate) fn without_waiting<H, R>(
    queue: &binding::Shared<H>,
    operation: &Operation,
    runs: &mut Runs<Guard<H, R>>,
) -> Answer
where
    H: Host<Key = Key, Priorities: Kind, Limiter = AnyLimiter, Storage: Home>,
    R: Deref<Target = binding::Shared<H>>,
{
    let mut finish = |run, action| match runs.take(run) {
        Some(guard) => Answer::Finished(guard.finish(action)),
        None => Answer::Lacking,
    };
    match *operation {
        Operation::Done(run) => finish(run, Action::Release),
        Operation::Complete(run, action) => finish(run, action),
        Operation::CompleteMany(ref all, action) => {
            let guards = all.iter().filter_map(|run| runs.take(*run));
            let tickets = guards.filter_map(Guard::into_ticket);
            Answer::Count(queue.finish_many(tickets, action))
        }
        ref other => answer_of(queue, other),
    }
}

/// One run of a program on a new queue. Its threads are run by a scheduler.
pub(crate) struct Trial<Q> {
    queue: Q,
    setup: Configuration,
    /// And how many events there were.
    history: Mutex<(u64, History)>,
}

impl<Q: Shared> Trial<Q> {
    pub(crate) fn new(program: &Program) -> Self {
        let base_ns = SECOND.as_nanos() as u64;
        let max_ns = base_ns * 1000;
        let setup = Configuration {
            storage: Q::CAPACITY,
            ..Configuration::new(LimiterSpec::Exponential { base_ns, max_ns })
        };
        // The last thread is the one that looks afterwards.
        let threads = program.0.iter().map(|_| Vec::new()).chain([Vec::new()]);
        Self {
            queue: Q::new(&setup),
            setup,
            history: Mutex::new((0, threads.collect())),
        }
    }

    fn worker(&self, thread: usize) -> Worker<'_, Q> {
        let runs = Runs {
            held: Vec::new(),
            last: thread as u64 * 1000,
        };
        Worker {
            trial: self,
            thread,
            runs,
            drains: thread * 1000,
        }
    }

    /// Runs one thread of a program. In the end it completes what is active, so that a wait for the
    /// drain ends, and the first thread shuts down.
    pub(crate) async fn run(&self, thread: usize, steps: &[Operation]) {
        let mut worker = self.worker(thread);
        for step in steps {
            worker.step(step).await;
        }
        while let Some(run) = worker.runs.pick(Run::Pick(0)) {
            worker.call(Operation::Complete(run, Action::Release)).await;
        }
        if worker.closes() {
            worker.call(Operation::ShutDown).await;
        }
    }

    /// Once all threads have ended: looks at the queue, takes out what is in it, and checks what
    /// all have seen.
    ///
    /// # Errors
    ///
    /// As [`explain`].
    pub(crate) async fn judge(&self, threads: usize) -> Result<(), String> {
        self.queue.assert_valid();
        let mut looker = self.worker(threads);
        looker.call(Operation::Len).await;
        for key in 1..=KEYS {
            looker.call(Operation::State(key)).await;
        }
        for take in [Operation::TakeReady, Operation::TakeDelayed] {
            // Once more than there are keys.
            for _ in 0..=KEYS {
                looker.call(take.clone()).await;
            }
        }
        explain(&self.setup, &self.history.lock().unwrap().1)
    }

    /// Another event happens to the history. Held for a moment in which no other thread can run:
    /// shuttle does not see this lock.
    fn record(&self, change: impl FnOnce(u64, &mut History)) {
        let mut history = self.history.lock().unwrap();
        history.0 += 1;
        let now = history.0;
        change(now, &mut history.1);
    }
}

/// One thread of a trial.
struct Worker<'q, Q: Shared> {
    trial: &'q Trial<Q>,
    thread: usize,
    runs: Runs<Q::Guard<'q>>,
    /// Numbers the waits for the drain of a history.
    drains: usize,
}

impl<Q: Shared> Worker<'_, Q> {
    /// Whether this is the thread that shuts down in the end, and so never waits.
    fn closes(&self) -> bool {
        self.thread == 0
    }

    /// Whether the thread may wait for a key while it has so many runs. In a drain getters wait for
    /// dirty keys, so a thread that holds one and waits would wait for itself.
    fn may_wait(&self, runs: usize) -> bool {
        !self.closes() && self.runs.held.len() <= runs
    }

    async fn step(&mut self, step: &Operation) {
        let pick = |run: Run| self.runs.pick(run);
        let operation = match *step {
            Operation::Get(_) | Operation::GetMany(..) if !self.may_wait(0) => {
                Some(Operation::TryGet)
            }
            Operation::Done(run) => pick(run).map(Operation::Done),
            Operation::Complete(run, how) => pick(run).map(|run| Operation::Complete(run, how)),
            Operation::CompleteMany(_, how) => {
                let runs = self.runs.held.iter().map(|(ticket, _)| Run::Of(*ticket));
                Some(Operation::CompleteMany(runs.collect(), how))
            }
            Operation::Next(run, how, sleeper) => pick(run).map(|run| match self.may_wait(1) {
                true => Operation::Next(run, how, sleeper),
                false => Operation::Complete(run, how),
            }),
            ref other => Some(other.clone()),
        };
        if let Some(operation) = operation {
            self.call(operation).await;
        }
    }

    /// Makes a call and records it. One that takes two steps is two calls, which both begin before
    /// it and end after it.
    async fn call(&mut self, operation: Operation) {
        let calls = match operation {
            // What becomes of the run is not said.
            Operation::Next(run, how, sleeper) => {
                let complete = Operation::Complete(run, how);
                vec![(complete, None), (Operation::Get(sleeper), None)]
            }
            Operation::Start(Call::DrainTimeout(Duration::ZERO)) => {
                self.drains += 1;
                let drain = Drain(self.drains);
                let begun = Some(Answer::Drain(drain));
                vec![
                    (Operation::BeginDrain, begun),
                    (Operation::Drained(drain), None),
                ]
            }
            ref other => vec![(other.clone(), None)],
        };
        let (trial, thread) = (self.trial, self.thread);
        let count = calls.len();
        trial.record(|called, history| {
            history[thread].extend(calls.into_iter().map(|(operation, answer)| Called {
                operation,
                answer,
                called,
                returned: u64::MAX,
            }));
        });
        let answer = trial.queue.perform(&operation, &mut self.runs).await;
        trial.record(|returned, history| {
            let calls = history[thread].iter_mut().rev();
            calls.take(count).for_each(|call| call.returned = returned);
            if let Some(last) = history[thread].last_mut() {
                last.answer = Some(answer);
            }
        });
    }
}
