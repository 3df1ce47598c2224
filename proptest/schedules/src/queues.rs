//! Queues that several threads or tasks share, and what each of these has been handed out.

use std::cell::{Cell, RefCell};
use std::ops::Deref;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use requeue_embassy::binding::{
    AsShared, Batch, Clock, Drained, EmbassyHost, Guard, Host, Next, Shared, Timer, Wait,
    timeout_at,
};
use requeue_embassy::storage::Fixed;
use requeue_embassy::{Action, Instant, ManualClock, RunContext, WaitError};
use requeue_interrupts::Interruptible;
use requeue_proptest::histories::{Operation, Run};
use requeue_proptest::subject::{
    Answer, AnyLimiter, Call, Configuration, Handed, Home, Key, Kind, Ticket, answer_of,
};

use crate::caller::Caller;

/// A queue that several threads or tasks share.
pub trait Shares: Sized + Send + Sync + 'static {
    /// Its types.
    type Host: Host<Key = Key, Priorities: Kind, Limiter = AnyLimiter, Storage: Home>;
    /// How a guard holds it.
    type Handle<'q>: Deref<Target = Shared<Self::Host>> + Clone;

    /// An empty queue, on a clock that [`advance`](Self::advance) alone moves.
    fn new(setup: &Configuration) -> Self;

    /// The queue of core.
    fn shared(&self) -> &Shared<Self::Host>;

    /// Moves the time.
    fn advance(&self, by: Duration);

    /// Makes a call, and keeps in `runs` what is handed out. Returns `None` if the call was dropped
    /// while it waited, or its answer is not known.
    fn perform<'q>(
        &'q self,
        caller: &Caller,
        operation: &Operation,
        runs: &Runs<Self::Host, Self::Handle<'q>>,
    ) -> impl Future<Output = Option<Answer>>;
}

/// The runs that a thread has to end.
pub struct Runs<H: Host, R: Deref<Target = Shared<H>>> {
    held: RefCell<Vec<(Ticket, Guard<H, R>)>>,
    /// Numbers the runs of a history.
    last: Cell<u64>,
}

impl<H, R> Runs<H, R>
where
    H: Host<Key = Key, Priorities: Kind, Limiter = AnyLimiter, Storage: Home>,
    R: Deref<Target = Shared<H>> + Clone,
{
    /// Those of a thread, which has none.
    pub fn new(thread: usize) -> Self {
        Self {
            held: RefCell::default(),
            last: Cell::new(thread as u64 * 1000),
        }
    }

    /// The operation with the runs that it picks; `None` if there is none.
    pub fn resolved(&self, operation: &Operation) -> Option<Operation> {
        let (held, mut resolved) = (self.held.borrow(), operation.clone());
        if let Operation::CompleteMany(runs, _) = &mut resolved {
            *runs = held.iter().map(|(run, _)| Run::Of(*run)).collect();
        }
        for run in resolved.runs_mut() {
            if let Run::Pick(pick) = *run {
                let index = usize::from(pick).checked_rem(held.len())?;
                *run = Run::Of(held[index].0);
            }
        }
        Some(resolved)
    }

    /// Names a run that a runtime keeps itself.
    pub fn begun(&self, key: Key, context: RunContext) -> Handed {
        self.last.set(self.last.get() + 1);
        let run = self.last.get();
        Handed {
            key,
            ticket: Ticket { key, run },
            failures: context.attempt - 1,
            priority: context.priority,
            timed_out: context.timed_out,
        }
    }

    /// Keeps a guard that was handed out.
    pub(crate) fn handed(&self, guard: Guard<H, R>) -> Handed {
        let handed = self.begun(*guard, guard.context());
        self.held.borrow_mut().push((handed.ticket, guard));
        handed
    }

    /// Removes and returns the guard of a run.
    pub(crate) fn take(&self, run: Run) -> Option<Guard<H, R>> {
        let mut held = self.held.borrow_mut();
        let index = held.iter().position(|(it, _)| Run::Of(*it) == run)?;
        Some(held.remove(index).1)
    }

    /// The answer of a call that waits for a key: no work if its time was over.
    pub(crate) fn got(&self, got: Result<Guard<H, R>, WaitError>) -> Answer {
        match got {
            Ok(guard) => Answer::Next(Next::Work(self.handed(guard))),
            Err(WaitError::TimedOut) => Answer::Work(None),
            Err(_) => Answer::Next(Next::Closed),
        }
    }

    pub(crate) fn got_many(&self, got: Result<Batch<H, R>, WaitError>) -> Answer {
        Answer::NextMany(match got {
            Ok(batch) => {
                let guards = batch.into_guards().into_iter();
                Next::Work(guards.map(|guard| self.handed(guard)).collect())
            }
            Err(_) => Next::Closed,
        })
    }

    /// Makes the calls that never wait. `None` if the answer is not known.
    pub(crate) fn at_once(&self, queue: &Shared<H>, operation: &Operation) -> Option<Answer> {
        Some(match *operation {
            // A guard fails if it is dropped, and a call that ends a run ends it even so.
            Operation::Complete(run, Action::Retry) => {
                drop(self.take(run)?);
                return None;
            }
            Operation::Complete(run, Action::GiveUp) => {
                drop(Wait::after(self.take(run)?, Action::GiveUp, queue));
                return None;
            }
            Operation::Complete(run, how) => Answer::Finished(self.take(run)?.finish(how)),
            Operation::Done(run) => Answer::Finished(self.take(run)?.release()),
            Operation::CompleteMany(ref all, how) => {
                let guards = all.iter().filter_map(|run| self.take(*run));
                let tickets: Vec<_> = guards.filter_map(Guard::into_ticket).collect();
                Answer::Count(queue.finish_many(tickets, how))
            }
            ref other => answer_of(queue, other),
        })
    }
}

/// Gives a drain no time to wait.
pub(crate) async fn drain_at_once<H: Host<Clock: Timer>>(
    queue: &Shared<H>,
    drain: impl Future<Output = Result<(), WaitError>>,
) -> Result<(), WaitError> {
    let drain = timeout_at(queue.clock(), Some(queue.now()), drain).await;
    drain.unwrap_or(Err(WaitError::TimedOut))
}

pub(crate) fn drained(ended: Result<(), WaitError>) -> Answer {
    Answer::Drained(match ended {
        Ok(()) => Drained::Complete,
        Err(WaitError::Interrupted) => Drained::Interrupted,
        Err(_) => Drained::Pending,
    })
}

/// A call of tasks is polled until it returns or is dropped.
macro_rules! awaited {
    ($caller:ident, $call:expr) => {
        $caller.wait($call).await?
    };
}

/// Writes how a runtime makes the calls of its queue. The arguments say how it waits for a call, how
/// it drains without waiting, how it gets several keys, and how it unwraps a call that cannot fail
/// on other runtimes.
macro_rules! perform {
    ($wait:ident, |$queue:ident| $drain:expr, |$max:ident| $batch:expr, $whole:path) => {
        async fn perform<'q>(
            &'q self,
            caller: &Caller,
            operation: &Operation,
            runs: &Runs<Self::Host, Self::Handle<'q>>,
        ) -> Option<Answer> {
            let $queue = self;
            let _ = caller;
            Some(match *operation {
                Operation::TryGet => Answer::Work(self.try_get().map(|guard| runs.handed(guard))),
                Operation::Get(_) | Operation::Start(Call::Get) => {
                    runs.got($wait!(caller, self.get()))
                }
                Operation::GetMany($max, _) => runs.got_many($wait!(caller, $batch)),
                Operation::Next(run, how, _) => {
                    let guard = runs.take(run)?;
                    runs.got($wait!(caller, self.next(guard, how)))
                }
                Operation::Start(Call::GetTimeout(limit)) => {
                    runs.got($wait!(caller, self.get_timeout(limit)))
                }
                Operation::Start(Call::Drain) => drained($wait!(caller, self.drain())),
                Operation::Start(Call::DrainTimeout(_)) => drained($wait!(caller, $drain)),
                Operation::Start(Call::AddWait(key)) => {
                    Answer::Added($wait!(caller, self.add_wait(key)))
                }
                Operation::Start(Call::CancelAndWait(key)) => {
                    Answer::State($whole($wait!(caller, self.cancel_and_wait(&key))))
                }
                Operation::Start(Call::WaitIdle) => {
                    $whole($wait!(caller, self.wait_idle()));
                    Answer::Done
                }
                Operation::Start(Call::WaitSettled) => {
                    $whole($wait!(caller, self.wait_settled()));
                    Answer::Done
                }
                Operation::Start(Call::Flush(key)) => {
                    $whole($wait!(caller, self.flush(&key)));
                    Answer::Done
                }
                Operation::Drained(_) => {
                    $whole($wait!(caller, self.wait_drained()));
                    Answer::Drained(Drained::Complete)
                }
                Operation::Advance(by) => {
                    self.advance(by);
                    Answer::Done
                }
                ref other => return runs.at_once(self.shared(), other),
            })
        }
    };
}

#[cfg(shuttle)]
pub(crate) use {awaited, perform};

/// The queue for microcontrollers, whose critical sections interrupts or other tasks may come
/// between.
pub type Boards<P, const N: usize> =
    requeue_embassy::WorkQueue<Interruptible, Key, N, P, AnyLimiter, WAITERS, Parts>;

/// How many calls may wait at once.
const WAITERS: usize = 8;

type Parts = ((), u8, Hand);

impl<P: Kind + 'static, const N: usize> Shares for Boards<P, N>
where
    Self: Send + Sync,
{
    type Host = EmbassyHost<Interruptible, Key, N, P, AnyLimiter, WAITERS, Parts>;
    type Handle<'q> = &'q Shared<Self::Host>;

    fn new(setup: &Configuration) -> Self {
        Self::from_queue(Fixed::build(setup, ()), Hand::default())
    }

    fn shared(&self) -> &Shared<Self::Host> {
        self.as_shared()
    }

    fn advance(&self, by: Duration) {
        self.clock().0.advance(by);
    }

    perform!(
        awaited,
        |queue| drain_at_once(queue.as_shared(), queue.drain()),
        |max| Batch::wait(queue.as_shared(), max),
        Result::unwrap
    );
}

/// requeue-embassy's clock of one queue: with it go the wakers of the tasks that have waited for it.
#[derive(Debug, Default)]
pub struct Hand(Arc<ManualClock<Interruptible>>);

impl Clock for Hand {
    fn now(&self) -> Instant {
        self.0.now()
    }
}

impl Timer for Hand {
    type Alarm = Pin<Box<dyn Future<Output = ()>>>;

    fn set_alarm(&self, mut alarm: Pin<&mut Option<Self::Alarm>>, until: Option<Instant>) {
        alarm.set(until.map(|until| {
            let clock = Arc::clone(&self.0);
            let rung: Self::Alarm = Box::pin(async move {
                let mut alarm = pin!(None);
                (&*clock).set_alarm(alarm.as_mut(), Some(until));
                if let Some(alarm) = alarm.as_pin_mut() {
                    alarm.await;
                }
            });
            rung
        }));
    }
}
