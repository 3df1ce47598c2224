//! The queue of each runtime, whose calls that wait are waited for by a thread of the schedule.

use std::convert;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::sync::Arc;
use std::thread::panicking;
use std::time::Duration;

use requeue_embassy::binding::EmbassyHost;
use requeue_embassy::storage::Fixed;
use requeue_interrupts::{Interruptible, interrupt_with};
use requeue_proptest::histories::{Operation, Run};
use requeue_proptest::subject::{
    Answer, AnyLimiter, Call, Configuration, Handed, Home, Key, Kind, Ticket, answer_of,
};
use requeue_std::binding::{AsShared, Batch, Drained, Guard, Host, Next, Reporter, timeout_at};
use requeue_std::binding::{Shared, ThreadHost, Timer, Wait};
use requeue_std::{Action, QueueClock, WaitError};
use requeue_tokio::binding::TaskHost;
use tokio::runtime::{Builder, Runtime};

use crate::boards::Hand;
use crate::caller::Caller;

/// A queue that several threads or tasks share.
pub trait Shares: Sized + Send + Sync + 'static {
    /// Its types.
    type Host: Host<Key = Key, Priorities: Kind, Limiter = AnyLimiter, Storage: Home>;
    /// How a guard holds it.
    type Handle<'q>: Deref<Target = Shared<Self::Host>> + Clone;
    /// What runs its workers.
    const NAME: &'static str;
    /// How many keys fit.
    const CAPACITY: Option<usize>;

    /// An empty queue, on a clock that [`advance`](Self::advance) alone moves.
    fn new(setup: &Configuration) -> Self;

    /// The queue of core.
    fn shared(&self) -> &Shared<Self::Host>;

    /// Works where there is what the queue needs.
    fn within<R>(work: impl FnOnce() -> R) -> R {
        work()
    }

    /// Moves the time.
    fn advance(by: Duration);

    /// Makes a call, and keeps in `runs` what is handed out. Returns `None` if the call was dropped
    /// while it waited.
    fn perform<'q>(
        &'q self,
        caller: &Caller,
        operation: &Operation,
        runs: &mut Runs<Self::Host, Self::Handle<'q>>,
    ) -> impl Future<Output = Option<Answer>>;
}

/// The queue for threads.
pub type Threads<P, S> = requeue_std::WorkQueue<Key, P, AnyLimiter, S>;

/// The queue for tasks.
pub type Tasks<P, S> = requeue_tokio::WorkQueue<Key, P, AnyLimiter, S>;

/// The queue for microcontrollers, whose critical sections any other task may come between: as if
/// each task had an executor and a core of its own.
pub type Boards<P, const N: usize> =
    requeue_embassy::WorkQueue<Interruptible, Key, N, P, AnyLimiter, WAITERS, Parts>;

/// How many calls may wait at once.
const WAITERS: usize = 8;

type Parts = ((), u8, Hand);

/// What one thread has been handed out.
pub struct Runs<H: Host, R: Deref<Target = Shared<H>>> {
    held: Vec<(Ticket, Guard<H, R>)>,
    /// Numbers the runs of a history.
    last: u64,
}

impl<H, R> Runs<H, R>
where
    H: Host<Key = Key, Priorities: Kind, Limiter = AnyLimiter, Storage: Home>,
    R: Deref<Target = Shared<H>> + Clone,
{
    /// Those of a thread, which has none.
    pub fn new(thread: usize) -> Self {
        Self {
            held: Vec::new(),
            last: thread as u64 * 1000,
        }
    }

    /// The run that is meant; `None` if there is none.
    pub fn pick(&self, run: Run) -> Option<Run> {
        match run {
            Run::Pick(pick) => {
                let index = usize::from(pick).checked_rem(self.held.len())?;
                Some(self.held[index].0.into())
            }
            Run::Of(_) => Some(run),
        }
    }

    /// All of them.
    pub fn all(&self) -> Vec<Run> {
        self.held.iter().map(|(run, _)| Run::Of(*run)).collect()
    }

    /// Removes and returns the guard of a run.
    fn take(&mut self, run: Run) -> Option<Guard<H, R>> {
        let mut held = self.held.iter();
        let index = held.position(|(ticket, _)| Run::Of(*ticket) == run)?;
        Some(self.held.remove(index).1)
    }

    /// Keeps a guard that was handed out.
    fn handed(&mut self, guard: Guard<H, R>) -> Handed {
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

    /// The answer of a call that waits for a key: no work if its time was over.
    fn got(&mut self, got: Result<Guard<H, R>, WaitError>) -> Answer {
        match got {
            Ok(guard) => Answer::Next(Next::Work(self.handed(guard))),
            Err(WaitError::TimedOut) => Answer::Work(None),
            Err(_) => Answer::Next(Next::Closed),
        }
    }

    fn got_many(&mut self, got: Result<Batch<H, R>, WaitError>) -> Answer {
        Answer::NextMany(match got {
            Ok(batch) => {
                let guards = batch.into_guards().into_iter();
                Next::Work(guards.map(|guard| self.handed(guard)).collect())
            }
            Err(_) => Next::Closed,
        })
    }

    /// Makes the calls that never wait. `None` if the answer is not known.
    fn at_once(&mut self, queue: &Shared<H>, operation: &Operation) -> Option<Answer> {
        match *operation {
            Operation::Complete(run, how) => {
                let guard = self.take(run)?;
                return match how {
                    // A guard fails if it is dropped, and a call that ends a run ends it even so.
                    Action::Retry => {
                        drop(guard);
                        None
                    }
                    Action::GiveUp => {
                        drop(Wait::after(guard, how, queue));
                        None
                    }
                    _ => Some(Answer::Finished(guard.finish(how))),
                };
            }
            Operation::Done(run) => Some(Answer::Finished(self.take(run)?.release())),
            Operation::CompleteMany(ref all, how) => {
                let guards = all.iter().filter_map(|run| self.take(*run));
                let tickets: Vec<_> = guards.filter_map(Guard::into_ticket).collect();
                Some(Answer::Count(queue.finish_many(tickets, how)))
            }
            ref other => Some(answer_of(queue, other)),
        }
    }
}

/// Gives a drain no time to wait.
async fn at_once<H: Host<Clock: Timer>>(
    queue: &Shared<H>,
    drain: impl Future<Output = Result<(), WaitError>>,
) -> Result<(), WaitError> {
    let drain = timeout_at(queue.clock(), Some(queue.now()), drain).await;
    drain.unwrap_or(Err(WaitError::TimedOut))
}

fn drained(ended: Result<(), WaitError>) -> Answer {
    Answer::Drained(match ended {
        Ok(()) => Drained::Complete,
        Err(WaitError::Interrupted) => Drained::Interrupted,
        Err(_) => Drained::Pending,
    })
}

/// A call of threads has waited when it returns.
macro_rules! blocked {
    ($this:ident, $caller:ident, $call:expr) => {
        $call
    };
}

/// A call of tasks is polled until it returns or is dropped.
macro_rules! awaited {
    ($this:ident, $caller:ident, $call:expr) => {
        match $caller.wait($call).await {
            Some(returned) => returned,
            None => return None,
        }
    };
}

/// Makes the calls of a queue: how they are waited for, how a drain waits for no time, and how to
/// take what calls return that cannot fail elsewhere.
macro_rules! perform {
    ($wait:ident, |$queue:ident| $drain:expr, |$many:ident| $batch:expr, $whole:path) => {
        async fn perform<'q>(
            &'q self,
            caller: &Caller,
            operation: &Operation,
            runs: &mut Runs<Self::Host, Self::Handle<'q>>,
        ) -> Option<Answer> {
            let $queue = self;
            let _ = caller;
            Some(match *operation {
                Operation::TryGet => Answer::Work(self.try_get().map(|guard| runs.handed(guard))),
                Operation::Get(_) | Operation::Start(Call::Get) => {
                    runs.got($wait!(self, caller, self.get()))
                }
                Operation::GetMany($many, _) => runs.got_many($wait!(self, caller, $batch)),
                Operation::Next(run, how, _) => {
                    let guard = runs.take(run)?;
                    runs.got($wait!(self, caller, self.next(guard, how)))
                }
                Operation::Start(call) => match call {
                    Call::GetTimeout(limit) => {
                        runs.got($wait!(self, caller, self.get_timeout(limit)))
                    }
                    Call::Drain => drained($wait!(self, caller, self.drain())),
                    Call::DrainTimeout(_) => drained($wait!(self, caller, $drain)),
                    Call::AddWait(key) => Answer::Added($wait!(self, caller, self.add_wait(key))),
                    Call::CancelAndWait(key) => {
                        let was = $wait!(self, caller, self.cancel_and_wait(&key));
                        Answer::State($whole(was))
                    }
                    other => {
                        match other {
                            Call::WaitIdle => $whole($wait!(self, caller, self.wait_idle())),
                            Call::WaitSettled => $whole($wait!(self, caller, self.wait_settled())),
                            Call::Flush(key) => $whole($wait!(self, caller, self.flush(&key))),
                            _ => unreachable!("{other:?} is not drawn"),
                        }
                        Answer::Done
                    }
                },
                Operation::Drained(_) => {
                    $whole($wait!(self, caller, self.wait_drained()));
                    Answer::Drained(Drained::Complete)
                }
                Operation::Advance(by) => {
                    Self::advance(by);
                    Answer::Done
                }
                ref other => return runs.at_once(self.shared(), other),
            })
        }
    };
}

impl<P: Kind + 'static, S: Home + 'static> Shares for Threads<P, S>
where
    Self: Send + Sync,
{
    type Host = ThreadHost<Key, P, AnyLimiter, S>;
    type Handle<'q> = &'q Shared<Self::Host>;
    const NAME: &'static str = "threads";
    const CAPACITY: Option<usize> = S::CAPACITY;

    fn new(setup: &Configuration) -> Self {
        S::build(setup, Reporter::NONE).into()
    }

    fn shared(&self) -> &Shared<Self::Host> {
        self.as_shared()
    }

    fn advance(by: Duration) {
        QueueClock::advance(by);
    }

    perform!(
        blocked,
        |queue| queue.drain_timeout(Duration::ZERO),
        |max| queue.get_many(max),
        convert::identity
    );
}

impl<P: Kind + 'static, S: Home + 'static> Shares for Tasks<P, S>
where
    Self: Send + Sync,
{
    type Host = TaskHost<Key, P, AnyLimiter, S>;
    type Handle<'q> = Arc<Shared<Self::Host>>;
    const NAME: &'static str = "tasks";
    const CAPACITY: Option<usize> = S::CAPACITY;

    fn new(setup: &Configuration) -> Self {
        S::build(setup, Reporter::NONE).into()
    }

    fn shared(&self) -> &Shared<Self::Host> {
        self.as_shared()
    }

    fn within<R>(work: impl FnOnce() -> R) -> R {
        RUNTIME.with(|runtime| {
            let _entered = runtime.enter();
            work()
        })
    }

    fn advance(by: Duration) {
        let _alone = ADVANCING.lock();
        RUNTIME.with(|runtime| runtime.block_on(tokio::time::advance(by)));
    }

    perform!(
        awaited,
        |queue| at_once(queue.as_shared(), queue.drain()),
        |max| queue.get_many(max),
        convert::identity
    );
}

impl<P: Kind + 'static, const N: usize> Shares for Boards<P, N>
where
    Self: Send + Sync,
{
    type Host = EmbassyHost<Interruptible, Key, N, P, AnyLimiter, WAITERS, Parts>;
    type Handle<'q> = &'q Shared<Self::Host>;
    const NAME: &'static str = "boards";
    const CAPACITY: Option<usize> = Some(N);

    fn new(setup: &Configuration) -> Self {
        Self::from_queue(Fixed::build(setup, ()), Hand::new())
    }

    fn shared(&self) -> &Shared<Self::Host> {
        self.as_shared()
    }

    fn within<R>(work: impl FnOnce() -> R) -> R {
        interrupt_with(|| {
            if !panicking() {
                interrupt();
            }
        });
        work()
    }

    fn advance(by: Duration) {
        Hand::advance(by);
    }

    perform!(
        awaited,
        |queue| at_once(queue.as_shared(), queue.drain()),
        |max| Batch::wait(queue.as_shared(), max),
        Result::unwrap
    );
}

/// Lets another come first.
pub fn interrupt() {
    shuttle::thread::sleep(Duration::ZERO);
}

shuttle::lazy_static! {
    /// Tokio moves its clock for one thread at a time, and wakes others meanwhile.
    static ref ADVANCING: shuttle::sync::Mutex<()> = shuttle::sync::Mutex::new(());
}

thread_local! {
    /// Where timers run, of every schedule: their threads share one thread of the system. It is
    /// never dropped, which would ring what a schedule that has failed left behind.
    static RUNTIME: ManuallyDrop<Runtime> = {
        let mut builder = Builder::new_current_thread();
        let runtime = builder.enable_time().start_paused(true).build();
        ManuallyDrop::new(runtime.unwrap_or_else(|error| panic!("{error}")))
    };
}
