//! One run of a program on a queue that several threads or tasks share.

use std::collections::HashSet;
use std::fmt::{self, Debug};
use std::ops::Deref;

use requeue_core::binding::{self, Host};
use requeue_core::{Action, Guard};
use requeue_proptest::subject::{Configuration, Key, LimiterSpec, Scheduled};

use crate::chart::draw_marked;
use crate::program::{KEYS, Program, Step, TICK};
use crate::{Failure, QueueSpec, Recorder, Request, Response, check};

/// How many states the search remembers. The histories that are drawn here need some hundred.
const STATES_MAX: usize = 100_000;

/// A queue that several threads or tasks share.
pub trait Shared: Send + Sync + Sized + 'static {
    /// A key that was handed out.
    type Guard<'q>: Debug;

    /// Returns an empty queue, on a clock that [`Request::Advance`] alone moves.
    fn new(setup: &Configuration) -> Self;

    /// Makes a call, and keeps in `runs` what is handed out. [`without_waiting`] does it for all
    /// calls that never wait.
    fn perform<'q>(
        &'q self,
        request: &Request,
        runs: &mut Runs<Self::Guard<'q>>,
    ) -> impl Future<Output = Response>;

    /// Checks the queue's own invariants.
    ///
    /// # Panics
    ///
    /// If one does not hold.
    fn assert_valid(&self);
}

/// What one thread has been handed out, by number.
#[derive(Debug)]
pub struct Runs<G>(Vec<(u32, G)>);

impl<G> Runs<G> {
    /// Removes and returns the run with this number.
    pub fn take(&mut self, run: u32) -> Option<G> {
        let index = self.0.iter().position(|(number, _)| *number == run)?;
        Some(self.0.remove(index).1)
    }

    /// The number of one of the runs.
    fn pick(&self, pick: u8) -> Option<u32> {
        let index = usize::from(pick).checked_rem(self.0.len())?;
        Some(self.0[index].0)
    }
}

impl<H: Host<Key = Key>, R: Deref<Target = binding::Shared<H>>> Runs<Guard<H, R>> {
    /// Keeps what was handed out under `first` and the numbers that follow.
    pub fn handed(
        &mut self,
        first: u32,
        guards: impl IntoIterator<Item = Guard<H, R>>,
    ) -> Response {
        let mut work = Vec::new();
        for (run, guard) in (first..).zip(guards) {
            work.push((*guard, guard.failures()));
            self.0.push((run, guard));
        }
        Response::Work(work)
    }
}

/// Makes the calls that never wait on a queue that is core's [`Shared`](binding::Shared). Returns
/// [`Response::Nothing`] for the others.
pub fn without_waiting<H, R>(
    queue: &binding::Shared<H>,
    request: &Request,
    runs: &mut Runs<Guard<H, R>>,
) -> Response
where
    H: Host<Key = Key>,
    R: Deref<Target = binding::Shared<H>>,
{
    match *request {
        Request::Add(key) => Response::Added(queue.add(key)),
        Request::AddAfter(key, delay) => Response::Added(queue.add_after(key, delay)),
        Request::AddRateLimited(key) => {
            Response::Scheduled(queue.add_rate_limited(key).map(Scheduled::from))
        }
        Request::AddMany(ref keys) => {
            let mut rejected = Vec::new();
            let added = queue.add_many(keys.iter().copied(), |key| rejected.push(key));
            Response::AddedMany(added, rejected)
        }
        Request::Forget(key) => Response::Count(queue.forget(&key) as usize),
        Request::NumRequeues(key) => Response::Count(queue.failures(&key) as usize),
        Request::Len => Response::Count(queue.len()),
        Request::State(key) => Response::State(queue.state(&key)),
        Request::ShuttingDown => Response::Flag(queue.is_shutting_down()),
        Request::DoneKey(key) => Response::Finished(queue.release_key(&key)),
        Request::ShutDown => {
            queue.shut_down();
            Response::Done
        }
        Request::TakeDelayed => Response::Left(queue.take_delayed()),
        Request::TakeReady => Response::Left(queue.take_ready()),
        Request::Complete(run, how) => match runs.take(run) {
            Some(guard) => Response::Finished(guard.finish(how)),
            None => Response::Nothing,
        },
        Request::CompleteMany(ref numbers, how) => {
            let guards = numbers.iter().filter_map(|run| runs.take(*run));
            let tickets = guards.filter_map(Guard::into_ticket);
            Response::Count(queue.finish_many(tickets, how))
        }
        _ => Response::Nothing,
    }
}

/// One run of a program on a new queue. Its threads are run by a scheduler such as shuttle's.
pub struct Trial<Q> {
    program: Program,
    queue: Q,
    setup: Configuration,
    recorder: Recorder<Request, Response>,
}

impl<Q: Shared> Trial<Q> {
    /// Returns a trial on a new queue.
    pub fn new(program: &Program) -> Self {
        let base_ns = u64::try_from(TICK.as_nanos()).unwrap_or(u64::MAX);
        let max_ns = base_ns.saturating_mul(1000);
        let setup = Configuration::new(LimiterSpec::Exponential { base_ns, max_ns });
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
            runs: Runs(Vec::new()),
            numbers: thread as u32 * 1000,
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
                    format!("{failure}\n{}", draw_marked(&history, &HashSet::new()))
                }
                Failure::Inexplicable(_) => failure.to_string(),
            })
    }

    /// Records the state of the queue, and takes out what is in it.
    async fn look_afterwards(&self) {
        let mut looker = Worker {
            trial: self,
            thread: self.program.threads.len(),
            runs: Runs(Vec::new()),
            numbers: 0,
        };
        looker.call(Request::Len).await;
        for key in 1..=KEYS {
            looker.call(Request::State(key)).await;
        }
        for take in [Request::TakeReady, Request::TakeDelayed] {
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
    numbers: u32,
}

impl<Q: Shared> Worker<'_, Q> {
    /// Whether this is the thread that shuts down in the end, and so never waits.
    fn closes(&self) -> bool {
        self.thread == 0
    }

    /// Whether the thread may wait for a key while it has so many runs. In a drain getters wait for
    /// dirty keys, so a thread that holds one and waits would wait for itself.
    fn may_wait(&self, runs: usize) -> bool {
        !self.closes() && self.runs.0.len() <= runs
    }

    fn number(&mut self) -> u32 {
        self.numbers += 1;
        self.numbers
    }

    async fn step(&mut self, step: &Step) {
        let request = match *step {
            Step::Plain(ref request) => request.clone(),
            Step::TryGet => Request::TryGet(self.number()),
            Step::GetNow => Request::GetNow(self.number()),
            Step::Get | Step::GetMany(_) if !self.may_wait(0) => Request::TryGet(self.number()),
            Step::Get => Request::Get(self.number()),
            Step::GetMany(max) => {
                let first = self.number();
                self.numbers += u32::from(max);
                Request::GetMany(first, usize::from(max))
            }
            Step::Drain => Request::Drain(self.number()),
            Step::Complete(pick, how) => match self.runs.pick(pick) {
                Some(run) => Request::Complete(run, how),
                None => return,
            },
            Step::CompleteAll(how) => {
                let runs = self.runs.0.iter().map(|(run, _)| *run);
                Request::CompleteMany(runs.collect(), how)
            }
            Step::Next(pick, how) => match self.runs.pick(pick) {
                Some(run) if !self.may_wait(1) => Request::Complete(run, how),
                Some(run) => Request::Next(run, how, self.number()),
                None => return,
            },
        };
        self.call(request).await;
    }

    /// Makes a call and records it; one that takes two steps as two calls.
    async fn call(&mut self, request: Request) {
        let recorder = &self.trial.recorder;
        let (first, last) = match request {
            Request::Next(run, how, next) => {
                (Some(Request::Complete(run, how)), Request::Get(next))
            }
            Request::Drain(wait) => (Some(Request::BeginDrain(wait)), Request::Drained(wait)),
            ref request => (None, request.clone()),
        };
        let first = first.map(|request| recorder.call(self.thread, request));
        let last = recorder.call(self.thread, last);
        let response = self.trial.queue.perform(&request, &mut self.runs).await;
        if let Some(first) = first {
            recorder.end(first, None);
        }
        recorder.returned(last, response);
    }

    /// Completes what is active, so that a wait for the drain ends, and shuts down if that is this
    /// thread's task.
    async fn end(&mut self) {
        while let Some(run) = self.runs.pick(0) {
            self.call(Request::Complete(run, Action::Release)).await;
        }
        if self.closes() {
            self.call(Request::ShutDown).await;
        }
    }
}
