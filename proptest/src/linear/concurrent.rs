//! Queues that several threads or tasks use at once, and what one of them does.

use std::fmt::Debug;
use std::hint;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::thread;
use std::time::Duration;

use requeue_core::{
    Clock, Complete, Completion, Guard, Lock, Metrics, Queue, RateLimiter, Storage, Waker,
    WorkQueue,
};

use super::program::{Program, Step};
use super::{Answer, Op, Recorder};
use crate::subject::{Key, Known, Left, Retried, Setup, poll_once};

/// A queue that several threads or tasks use at once.
///
/// [`SharedThreads`](super::SharedThreads) binds requeue-std and is an example. For a runtime that
/// can be given a clock of the test's own the simplest is one that stands still: then all times are
/// exact, and nobody is kept waiting by a delay.
///
/// # Examples
///
/// A runtime whose threads ask again and again, and cannot wait for several keys. In a test of its
/// crate it would end with `run::<Spinning>()`.
///
/// ```
/// use std::pin::pin;
/// use std::sync::{Arc, Mutex};
/// use std::task::{self, Context};
/// use std::thread;
/// use std::time::Duration;
/// use requeue_core::{
///     Clock, Fixed, Getter, Guard, Instant, Lock, Next, NoMetrics, Queue, Waker, WorkQueue,
/// };
/// use requeue_proptest::linear::{Answer, Concurrent, Op, Runs, Work, run, without_waiting};
/// use requeue_proptest::subject::{AnyLimiter, Home, Key, Setup};
///
/// struct Locked<T>(Mutex<T>);
/// impl<T> Lock for Locked<T> {
///     type State = T;
///     fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
///         work(&mut self.0.lock().expect("no test panics with it"))
///     }
/// }
///
/// struct Still;
/// impl Clock for Still {
///     fn now(&self) -> Instant {
///         Instant::EPOCH
///     }
/// }
///
/// struct Restless;
/// impl Waker for Restless {
///     fn wake_one(&self) {}
///     fn wake_all(&self) {}
/// }
///
/// type Shared = WorkQueue<Locked<Queue<Key, Fixed<4>, AnyLimiter, NoMetrics>>, Still, Restless>;
///
/// type Run = Guard<Key, Arc<Shared>>;
///
/// struct Spinning(Arc<Shared>);
///
/// impl Spinning {
///     /// One look, under one lock.
///     fn look(&self) -> Result<Run, Answer> {
///         let mut getter = Getter::new();
///         match self.0.poll_get(&mut getter) {
///             Next::Work(work) => Ok(Guard::new(work, Arc::clone(&self.0))),
///             Next::Closed => Err(Answer::Closed),
///             Next::Wait { .. } => {
///                 self.0.leave(&mut getter);
///                 Err(Answer::Nothing)
///             }
///         }
///     }
///
///     fn get(&self) -> Result<Run, Answer> {
///         loop {
///             match self.look() {
///                 Err(Answer::Nothing) => thread::yield_now(),
///                 answer => return answer,
///             }
///         }
///     }
/// }
///
/// impl Concurrent for Spinning {
///     type Guard<'q> = Run;
///     const TICK: Duration = Duration::from_secs(1);
///     const MOVES_ITS_CLOCK: bool = false;
///     const GETS_MANY: bool = false;
///
///     fn new(setup: &Setup) -> Self {
///         let queue = Locked(Mutex::new(Fixed::build(setup, NoMetrics)));
///         Self(Arc::new(WorkQueue::from_parts(queue, Still, Restless)))
///     }
///
///     fn capacity(&self) -> Option<usize> {
///         Some(4)
///     }
///
///     async fn perform<'q>(&'q self, op: &Op, runs: &mut Runs<Self::Guard<'q>>) -> Answer {
///         let (run, got) = match *op {
///             Op::TryGet(run) => (run, self.look().map_err(|_| Answer::Nothing)),
///             Op::GetNow(run) => (run, self.look()),
///             Op::Get(run) => (run, self.get()),
///             Op::Next(run, how, next) => {
///                 let _ = runs.take(run).map(|guard| guard.complete(how));
///                 (next, self.get())
///             }
///             Op::Drain(_) => {
///                 let drain = self.0.begin_drain();
///                 return Answer::Drained(self.0.drained(&drain));
///             }
///             ref op => return without_waiting(&self.0, op, runs),
///         };
///         match got {
///             Ok(guard) => runs.handed(run, [guard]),
///             Err(answer) => answer,
///         }
///     }
///
///     fn employ(work: Work<Self>) {
///         // Nothing here awaits, so that one poll does it all.
///         let poll = |work: Work<Self>| {
///             let _ = pin!(work.run()).poll(&mut Context::from_waker(task::Waker::noop()));
///         };
///         thread::spawn(move || poll(work));
///     }
///
///     async fn pause() {
///         thread::yield_now();
///     }
/// }
///
/// run::<Spinning>();
/// ```
pub trait Concurrent: Send + Sync + Sized + 'static {
    /// A key that was handed out.
    type Guard<'q>: Debug;
    /// The length of the delays in the programs. A clock that goes by itself needs one that does
    /// not pass while a program runs, and rounds what it answers to whole ones.
    const TICK: Duration;
    /// Whether [`Op::Advance`] moves the clock.
    const MOVES_ITS_CLOCK: bool;
    /// Whether it can wait for several keys at once. Where it cannot, [`Op::GetMany`] is not asked
    /// for, but [`Op::Get`] in its place.
    const GETS_MANY: bool = true;

    /// Makes an empty queue.
    fn new(setup: &Setup) -> Self;

    /// How many keys fit; nothing if the queue grows.
    fn capacity(&self) -> Option<usize> {
        None
    }

    /// Makes one call. [`without_waiting`] makes those of every queue that is a [`WorkQueue`] of
    /// core; what is handed out goes into `runs`.
    ///
    /// Of [`Op::Next`] and [`Op::Drain`], which take two steps, the second is answered.
    fn perform<'q>(
        &'q self,
        op: &Op,
        runs: &mut Runs<Self::Guard<'q>>,
    ) -> impl Future<Output = Answer>;

    /// Does all of `work` on a thread, or in a task, of its own.
    fn employ(work: Work<Self>);

    /// Lets others run.
    fn pause() -> impl Future<Output = ()>;

    /// Takes the queue's lock and keeps it for a moment, so that calls have to wait for it: where a
    /// call takes the lock twice, another comes in between. For this a thread of its own is there.
    fn disturb(&self) {}

    /// Checks the queue's own invariants.
    ///
    /// # Panics
    ///
    /// If one does not hold.
    fn assert_valid(&self) {}
}

/// What one thread has been handed out.
#[derive(Debug)]
pub struct Runs<G>(Vec<(u32, G)>);

impl<G> Runs<G> {
    /// Keeps a run under its number.
    pub fn keep(&mut self, run: u32, guard: G) {
        self.0.push((run, guard));
    }

    /// Takes out the run with this number.
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

impl<H: Deref<Target: Complete>> Runs<Guard<Key, H>> {
    /// Keeps what was handed out under `first` and the numbers that follow, and tells it.
    pub fn handed(
        &mut self,
        first: u32,
        guards: impl IntoIterator<Item = Guard<Key, H>>,
    ) -> Answer {
        let mut told = Vec::new();
        for (run, guard) in (first..).zip(guards) {
            told.push((*guard, guard.requeues()));
            self.keep(run, guard);
        }
        Answer::Work(told)
    }
}

/// Makes the calls that never wait on a queue that is a [`WorkQueue`] of core. The others are
/// answered with [`Answer::Nothing`].
pub fn without_waiting<S, L, M, Q, C, W, H>(
    queue: &WorkQueue<Q, C, W>,
    op: &Op,
    runs: &mut Runs<Guard<Key, H>>,
) -> Answer
where
    S: Storage,
    L: RateLimiter,
    M: Metrics,
    Q: Lock<State = Queue<Key, S, L, M>>,
    C: Clock,
    W: Waker,
    H: Deref<Target: Complete>,
{
    match *op {
        Op::Add(key) => Answer::Added(queue.add(key)),
        Op::AddAfter(key, delay) => Answer::Added(queue.add_after(key, delay)),
        Op::AddRateLimited(key) => Answer::Retried(queue.add_rate_limited(key).map(Retried::from)),
        Op::AddMany(ref keys) => {
            let mut rejected = Vec::new();
            let added = queue.add_many(keys.iter().copied(), |key| rejected.push(key));
            Answer::AddedMany(added, rejected)
        }
        Op::Forget(key) => Answer::Count(queue.forget(&key) as usize),
        Op::NumRequeues(key) => Answer::Count(queue.num_requeues(&key) as usize),
        Op::Len => Answer::Count(queue.len()),
        Op::State(key) => Answer::State(queue.state(&key).map(Known::from)),
        Op::ShuttingDown => Answer::Flag(queue.shutting_down()),
        Op::DoneKey(key) => Answer::Completed(queue.done(&key)),
        Op::ShutDown => {
            queue.shut_down();
            Answer::Done
        }
        Op::TakeDelayed => Answer::Left(queue.take_delayed().map(Left::from)),
        Op::TakeReady => Answer::Left(queue.take_ready().map(Left::from)),
        Op::Complete(run, how) => match runs.take(run) {
            Some(guard) => Answer::Finished(guard.complete(how)),
            None => Answer::Nothing,
        },
        Op::CompleteMany(ref numbers, how) => {
            let guards = numbers.iter().filter_map(|run| runs.take(*run));
            let tickets = guards.filter_map(Guard::into_ticket);
            Answer::Completed(queue.complete_many(tickets, how))
        }
        _ => Answer::Nothing,
    }
}

/// One queue and the history of it.
pub(super) struct World<Q> {
    pub(super) queue: Q,
    /// How many have come to a step at which threads meet.
    met: AtomicUsize,
    pub(super) recorder: Recorder<Op, Answer>,
}

impl<Q: Concurrent> World<Q> {
    /// Makes a call that does not wait.
    pub(super) fn perform_now(&self, op: &Op) -> Answer {
        let mut runs = Runs(Vec::new());
        poll_once(self.queue.perform(op, &mut runs)).unwrap_or(Answer::Nothing)
    }
}

/// What all threads that run one program share.
pub(super) struct Site<Q> {
    pub(super) program: Program,
    pub(super) worlds: Vec<World<Q>>,
    arrived: AtomicUsize,
    /// How many rounds have been finished, by all threads together.
    left: AtomicUsize,
    is_abandoned: AtomicBool,
}

impl<Q: Concurrent> Site<Q> {
    /// As many queues as there are rounds.
    pub(super) fn new(program: Program, setup: &Setup, rounds: u32) -> Self {
        // The last thread is the one that looks afterwards.
        let threads = program.threads.len() + 1;
        let world = |_| World {
            queue: Q::new(setup),
            met: AtomicUsize::new(0),
            recorder: Recorder::new(threads),
        };
        Self {
            program,
            worlds: (0..rounds).map(world).collect(),
            arrived: AtomicUsize::new(0),
            left: AtomicUsize::new(0),
            is_abandoned: AtomicBool::new(false),
        }
    }

    /// Waits until every thread has come to the round, so that all begin at once.
    async fn meet(&self, round: usize) -> bool {
        let threads = self.program.threads.len();
        self.arrived.fetch_add(1, Ordering::SeqCst);
        let mut patience = 200;
        while self.arrived.load(Ordering::SeqCst) < (round + 1) * threads {
            if self.is_abandoned.load(Ordering::SeqCst) {
                return false;
            }
            if patience > 0 {
                patience -= 1;
                hint::spin_loop();
            } else {
                Q::pause().await;
            }
        }
        true
    }

    /// Makes those who run the program wait for each other, until they are done.
    pub(super) fn disturb(&self) {
        let threads = self.program.threads.len();
        for (round, world) in self.worlds.iter().enumerate() {
            while self.left.load(Ordering::SeqCst) < (round + 1) * threads {
                if self.is_abandoned.load(Ordering::SeqCst) {
                    return;
                }
                world.queue.disturb();
                thread::yield_now();
            }
        }
    }

    pub(super) fn abandon(&self) {
        self.is_abandoned.store(true, Ordering::SeqCst);
    }
}

/// What one thread or task has to do: to run its part of a program, round after round.
pub struct Work<Q: Concurrent> {
    pub(super) site: Arc<Site<Q>>,
    pub(super) thread: usize,
    pub(super) finished: Sender<()>,
}

impl<Q: Concurrent> std::fmt::Debug for Work<Q> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Work")
            .field("thread", &self.thread)
            .finish_non_exhaustive()
    }
}

impl<Q: Concurrent> Work<Q> {
    /// Does the work. On a thread that may wait this is done after one poll.
    pub async fn run(self) {
        let abandon = Abandon(&self.site);
        for (round, world) in self.site.worlds.iter().enumerate() {
            if !self.site.meet(round).await {
                return;
            }
            let mut worker = Worker {
                world,
                thread: self.thread,
                threads: self.site.program.threads.len(),
                meetings: 0,
                runs: Runs(Vec::new()),
                numbers: self.thread as u32 * 1000,
            };
            for step in &self.site.program.threads[self.thread] {
                worker.step(step).await;
            }
            worker.end().await;
            self.site.left.fetch_add(1, Ordering::SeqCst);
        }
        std::mem::forget(abandon);
        // Whoever asked for it may have lost patience.
        let _ = self.finished.send(());
    }
}

/// Dropped only if the work is not finished: nobody has to wait for this thread then.
struct Abandon<'s, Q: Concurrent>(&'s Site<Q>);

impl<Q: Concurrent> Drop for Abandon<'_, Q> {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

/// How often a thread looks for those whom it is to meet.
const MEETING_LOOKS: u32 = 230;
/// How often of that without letting others run.
const MEETING_LOOKS_SPINNING: u32 = 200;

/// One thread in one round.
struct Worker<'q, Q: Concurrent> {
    world: &'q World<Q>,
    thread: usize,
    threads: usize,
    /// At how many steps this thread has met others.
    meetings: usize,
    runs: Runs<Q::Guard<'q>>,
    numbers: u32,
}

impl<'q, Q: Concurrent> Worker<'q, Q> {
    /// Whether this is the thread that shuts down in the end, and so never waits.
    fn closes(&self) -> bool {
        self.thread == 0
    }

    fn number(&mut self) -> u32 {
        self.numbers += 1;
        self.numbers
    }

    /// Waits until every thread has come here, if that is soon.
    async fn meet(&mut self) {
        self.meetings += 1;
        let all = self.meetings * self.threads;
        self.world.met.fetch_add(1, Ordering::SeqCst);
        for looks in 0..MEETING_LOOKS {
            if self.world.met.load(Ordering::SeqCst) >= all {
                return;
            }
            if looks < MEETING_LOOKS_SPINNING {
                hint::spin_loop();
            } else {
                Q::pause().await;
            }
        }
    }

    async fn step(&mut self, step: &Step) {
        let op = match *step {
            Step::Pause(0) => return Q::pause().await,
            Step::Pause(turns) => {
                for _ in 0..turns {
                    hint::spin_loop();
                }
                return;
            }
            Step::Meet => return self.meet().await,
            Step::Plain(Op::Advance(_)) if !Q::MOVES_ITS_CLOCK => return,
            Step::Plain(ref op) => op.clone(),
            Step::TryGet => Op::TryGet(self.number()),
            Step::GetNow => Op::GetNow(self.number()),
            Step::Get | Step::GetMany(_) if self.closes() => Op::TryGet(self.number()),
            Step::Get => Op::Get(self.number()),
            Step::GetMany(_) if !Q::GETS_MANY => Op::Get(self.number()),
            Step::GetMany(max) => {
                let first = self.number();
                self.numbers += u32::from(max);
                Op::GetMany(first, usize::from(max))
            }
            Step::Drain => Op::Drain(self.number()),
            Step::Complete(pick, how) => match self.runs.pick(pick) {
                Some(run) => Op::Complete(run, how),
                None => return,
            },
            Step::CompleteAll(how) => {
                let runs = self.runs.0.iter().map(|(run, _)| *run);
                Op::CompleteMany(runs.collect(), how)
            }
            Step::Next(pick, how) => match self.runs.pick(pick) {
                Some(run) if self.closes() => Op::Complete(run, how),
                Some(run) => Op::Next(run, how, self.number()),
                None => return,
            },
        };
        self.call(op).await;
    }

    /// Makes a call and writes it down; one that takes two steps as two calls.
    async fn call(&mut self, op: Op) {
        let recorder = &self.world.recorder;
        let (first, last) = match op {
            Op::Next(run, how, next) => (Some(Op::Complete(run, how)), Op::Get(next)),
            Op::Drain(wait) => (Some(Op::BeginDrain(wait)), Op::Drained(wait)),
            ref op => (None, op.clone()),
        };
        let first = first.map(|op| recorder.call(self.thread, op));
        let last = recorder.call(self.thread, last);
        let answer = self.world.queue.perform(&op, &mut self.runs).await;
        if let Some(first) = first {
            recorder.end(first, None);
        }
        recorder.answer(last, answer);
    }

    /// Completes what is in work, so that others may wait for the drain, and shuts down if that is
    /// this thread's task.
    async fn end(&mut self) {
        while let Some(run) = self.runs.pick(0) {
            self.call(Op::Complete(run, Completion::Done)).await;
        }
        if self.closes() {
            self.call(Op::ShutDown).await;
        }
    }
}
