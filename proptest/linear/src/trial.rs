//! One run of a program on a queue that several threads or tasks share.

use std::fmt::{self, Debug};
use std::ops::Deref;
use std::time::Duration;

use requeue_core::binding::{self, Host, Next};
use requeue_core::{Action, Guard, WaitError};
use requeue_proptest::histories::Operation;
use requeue_proptest::limiter::AnyLimiter;
use requeue_proptest::subject::{
    Answer, Call, Configuration, Drain, Handed, Home, Key, Kind, LimiterSpec, Run, Ticket,
    answer_of,
};

use crate::check::lines;
use crate::program::{KEYS, Program, TICK};
use crate::{Failure, QueueSpec, Recorder, check};

/// How many states the search remembers. The histories that are drawn here need some hundred.
const STATES_MAX: usize = 100_000;

/// A queue that several threads or tasks share.
pub trait Shared: Send + Sync + Sized + 'static {
    /// A key that was handed out.
    type Guard<'q>: Debug;

    /// How many keys there is room for.
    const CAPACITY: Option<usize>;

    /// Returns an empty queue, on a clock that [`Operation::Advance`] alone moves.
    fn new(setup: &Configuration) -> Self;

    /// Makes a call, and keeps in `runs` what is handed out. [`without_waiting`] does it for all
    /// calls that never wait.
    fn perform<'q>(
        &'q self,
        operation: &Operation,
        runs: &mut Runs<Self::Guard<'q>>,
    ) -> impl Future<Output = Answer>;

    /// Checks the queue's own invariants.
    ///
    /// # Panics
    ///
    /// If one does not hold.
    fn assert_valid(&self);
}

/// What one thread has been handed out, by ticket.
#[derive(Debug)]
pub struct Runs<G> {
    held: Vec<(Ticket, G)>,
    /// Numbers the runs of a history.
    last: u64,
}

impl<G> Runs<G> {
    fn of_thread(thread: usize) -> Self {
        Self {
            held: Vec::new(),
            last: thread as u64 * 1000,
        }
    }

    /// Removes and returns the guard of a run.
    pub fn take(&mut self, run: Run) -> Option<G> {
        let index = self
            .held
            .iter()
            .position(|(ticket, _)| Run::Of(*ticket) == run)?;
        Some(self.held.remove(index).1)
    }

    /// One of the runs.
    fn pick(&self, pick: u8) -> Option<Run> {
        let index = usize::from(pick).checked_rem(self.held.len())?;
        Some(self.held[index].0.into())
    }
}

impl<H: Host<Key = Key>, R: Deref<Target = binding::Shared<H>>> Runs<Guard<H, R>> {
    /// Keeps a guard that was handed out.
    pub fn handed(&mut self, guard: Guard<H, R>) -> Handed {
        self.last += 1;
        let key = *guard;
        let run = self.last;
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
    pub fn got(&mut self, got: Result<Guard<H, R>, WaitError>) -> Answer {
        match got {
            Ok(guard) => Answer::Next(Next::Work(self.handed(guard))),
            Err(WaitError::TimedOut) => Answer::Work(None),
            Err(_) => Answer::Next(Next::Closed),
        }
    }
}

/// Makes the calls that never wait on a queue that is core's [`Shared`](binding::Shared).
pub fn without_waiting<H, R>(
    queue: &binding::Shared<H>,
    operation: &Operation,
    runs: &mut Runs<Guard<H, R>>,
) -> Answer
where
    H: Host<Key = Key, Priorities: Kind, Limiter = AnyLimiter, Storage: Home>,
    R: Deref<Target = binding::Shared<H>>,
{
    match *operation {
        Operation::Done(run) | Operation::Complete(run, _) => {
            let action = match *operation {
                Operation::Complete(_, action) => action,
                _ => Action::Release,
            };
            let finished = runs.take(run).map(|guard| guard.finish(action));
            finished.map_or(Answer::Lacking, Answer::Finished)
        }
        Operation::CompleteMany(ref all, action) => {
            let guards = all.iter().filter_map(|run| runs.take(*run));
            let tickets = guards.filter_map(Guard::into_ticket);
            Answer::Count(queue.finish_many(tickets, action))
        }
        ref other => answer_of(queue, other),
    }
}

/// One run of a program on a new queue. Its threads are run by a scheduler such as shuttle's.
pub struct Trial<Q> {
    program: Program,
    queue: Q,
    setup: Configuration,
    recorder: Recorder<Operation, Answer>,
}

impl<Q: Shared> Trial<Q> {
    /// Returns a trial on a new queue.
    pub fn new(program: &Program) -> Self {
        let base_ns = u64::try_from(TICK.as_nanos()).unwrap_or(u64::MAX);
        let max_ns = base_ns.saturating_mul(1000);
        let setup = Configuration {
            storage: Q::CAPACITY,
            ..Configuration::new(LimiterSpec::Exponential { base_ns, max_ns })
        };
        Self {
            program: program.clone(),
            queue: Q::new(&setup),
            setup,
            // The last thread is the one that looks afterwards.
            recorder: Recorder::new(program.threads.len() + 1),
        }
    }

    /// Runs one thread of the program.
    pub async fn run(&self, thread: usize) {
        let mut worker = Worker {
            trial: self,
            thread,
            runs: Runs::of_thread(thread),
            drains: thread * 1000,
        };
        let steps = self.program.threads.get(thread).into_iter().flatten();
        for step in steps {
            worker.step(step).await;
        }
        worker.end().await;
    }

    /// Once all threads have ended: checks what they have seen, and the state of the queue.
    ///
    /// # Errors
    ///
    /// Says that no order explains the history, and shows it; or that the search was given up.
    ///
    /// # Panics
    ///
    /// If the queue's own invariants do not hold.
    pub async fn judge(&self) -> Result<(), String> {
        self.queue.assert_valid();
        self.look_afterwards().await;
        let history = self.recorder.history();
        let empty = QueueSpec::new(&self.setup);
        check(&empty, &history, STATES_MAX)
            .map(drop)
            .map_err(|failure| match failure {
                Failure::Undecided(_) => {
                    format!("{failure}\n{}", lines(&history, &[]))
                }
                Failure::Inexplicable(_) => failure.to_string(),
            })
    }

    /// Records the state of the queue, and takes out what is in it.
    async fn look_afterwards(&self) {
        let thread = self.program.threads.len();
        let mut looker = Worker {
            trial: self,
            thread,
            runs: Runs::of_thread(thread),
            drains: 0,
        };
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
    }
}

impl<Q> fmt::Debug for Trial<Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Trial").field(&self.program).finish()
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
        let pick = |run: Run| match run {
            Run::Pick(pick) => self.runs.pick(pick),
            Run::Of(_) => Some(run),
        };
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

    /// Makes a call and records it; one that takes two steps as two calls.
    async fn call(&mut self, operation: Operation) {
        let recorder = &self.trial.recorder;
        let (first, last) = match operation {
            Operation::Next(run, how, sleeper) => {
                let complete = recorder.call(self.thread, Operation::Complete(run, how));
                (Some((complete, None)), Operation::Get(sleeper))
            }
            Operation::Start(Call::DrainTimeout(Duration::ZERO)) => {
                self.drains += 1;
                let drain = Drain(self.drains);
                let begin = recorder.call(self.thread, Operation::BeginDrain);
                (
                    Some((begin, Some(Answer::Drain(drain)))),
                    Operation::Drained(drain),
                )
            }
            ref other => (None, other.clone()),
        };
        let last = recorder.call(self.thread, last);
        let answer = self.trial.queue.perform(&operation, &mut self.runs).await;
        if let Some((first, known)) = first {
            recorder.end(first, known);
        }
        recorder.returned(last, answer);
    }

    /// Completes what is active, so that a wait for the drain ends, and shuts down if that is this
    /// thread's task.
    async fn end(&mut self) {
        while let Some(run) = self.runs.pick(0) {
            self.call(Operation::Complete(run, Action::Release)).await;
        }
        if self.closes() {
            self.call(Operation::ShutDown).await;
        }
    }
}
