//! requeue-core's queue, shared by threads that take turns.

use std::thread;
use std::time::Duration;

use requeue_core::{
    Getter, Growable, Guard, Lock, Next, NoMetrics, Queue, Waker, WorkOf, WorkQueue,
};
use requeue_std::ManualClock;

use super::run::{Trial, first_failure};
use super::turns::{InTurn, Turns, pass};
use super::{Answer, Concurrent, Op, Program, Runs, Work, without_waiting};
use crate::caught::guarded;
use crate::limiter::AnyLimiter;
use crate::rounds;
use crate::subject::{Home, Key, Setup, poll_once};

/// In how many ways a program is run.
const SCHEDULES: u32 = 8;
/// How many times as many programs there are as proptest is configured to draw: a race is found if
/// its two calls are drawn.
const PROGRAMS: u32 = 4;

/// As [`run`](super::run), of requeue-core's [`WorkQueue`], which is what all runtimes share, by
/// threads that take turns: dice say at each lock who goes on. So a call that takes its lock twice
/// is interrupted in between as likely as not, which a lock of the system hardly ever lets happen.
///
/// The same program fails in the same way again.
///
/// # Panics
///
/// As [`run`](super::run).
///
/// # Examples
///
/// ```no_run
/// requeue_proptest::linear::run_in_turns();
/// ```
pub fn run_in_turns() {
    first_failure(InTurns::TICK, PROGRAMS, |program, tally| {
        (0..rounds(SCHEDULES)).try_for_each(|seed| {
            let trial = run_once(program, u64::from(seed));
            trial.count(tally);
            trial.judge()
        })
    });
}

fn run_once(program: &Program, seed: u64) -> Trial<InTurns> {
    let trial = Trial::new(program);
    let turns = Turns::new(program.threads.len(), seed);
    thread::scope(|scope| {
        for thread in 0..program.threads.len() {
            let (work, turns) = (trial.work(thread), &turns);
            // Whoever panics has left calls unanswered, by which that is known.
            scope.spawn(move || {
                // Everything waits by itself, so that one poll does it all.
                let _ = guarded(|| turns.take_part(thread, || poll_once(work.run())));
            });
        }
    });
    trial
}

/// What every runtime has of requeue-core. Whoever waits for a key looks again and again.
#[derive(Debug)]
struct InTurns {
    queue: Shared,
}

type State = Queue<Key, Growable, AnyLimiter, NoMetrics>;
type Shared = WorkQueue<InTurn<State>, ManualClock, Nobody>;

impl Concurrent for InTurns {
    type Guard<'q> = Guard<Key, &'q Shared>;
    const TICK: Duration = Duration::from_nanos(1);
    const MOVES_ITS_CLOCK: bool = true;

    fn new(setup: &Setup) -> Self {
        let queue = InTurn::new(Growable::build(setup, NoMetrics));
        Self {
            queue: WorkQueue::from_parts(queue, ManualClock::new(), Nobody),
        }
    }

    async fn perform<'q>(&'q self, op: &Op, runs: &mut Runs<Self::Guard<'q>>) -> Answer {
        let queue = &self.queue;
        match *op {
            Op::TryGet(run) => match queue.try_get() {
                Some(guard) => runs.handed(run, [guard]),
                None => Answer::Nothing,
            },
            Op::GetNow(run) => {
                let mut getter = Getter::new();
                match queue.poll_get(&mut getter) {
                    Next::Work(work) => runs.handed(run, [Guard::new(work, queue)]),
                    Next::Closed => Answer::Closed,
                    Next::Wait { .. } => {
                        queue.leave(&mut getter);
                        Answer::Nothing
                    }
                }
            }
            Op::Get(run) => match until_ready(|getter| queue.poll_get(getter)) {
                Some(work) => runs.handed(run, [Guard::new(work, queue)]),
                None => Answer::Closed,
            },
            Op::GetMany(first, max) => {
                let mut taken: Vec<WorkOf<Key, Growable, NoMetrics>> = Vec::new();
                let look = |getter: &mut Getter| {
                    let take = |work| taken.push(work);
                    queue.act(|queue, now| queue.get_many(max, now, getter, take))
                };
                if until_ready(look).is_none() {
                    return Answer::Closed;
                }
                let guard = |work| Guard::new(work, queue);
                runs.handed(first, taken.into_iter().map(guard))
            }
            Op::Next(run, how, next) => {
                // Two steps, as the history has two calls.
                let _ = runs.take(run).map(|guard| guard.complete(how));
                match until_ready(|getter| queue.poll_get(getter)) {
                    Some(work) => runs.handed(next, [Guard::new(work, queue)]),
                    None => Answer::Closed,
                }
            }
            Op::Drain(_) => {
                let drain = queue.begin_drain();
                Answer::Drained(queue.drained(&drain))
            }
            Op::Advance(by) => {
                queue.clock().advance(by);
                Answer::Done
            }
            ref op => without_waiting(queue, op, runs),
        }
    }

    fn employ(work: Work<Self>) {
        thread::spawn(move || poll_once(work.run()));
    }

    async fn pause() {
        pass(true);
    }

    fn assert_valid(&self) {
        self.queue.lock().with(|queue| queue.assert_valid());
    }
}

/// Looks again and again; nothing once the queue is closed.
fn until_ready<T>(mut look: impl FnMut(&mut Getter) -> Next<T>) -> Option<T> {
    let mut getter = Getter::new();
    loop {
        match look(&mut getter) {
            Next::Work(work) => return Some(work),
            Next::Closed => return None,
            Next::Wait { .. } => pass(true),
        }
    }
}

/// Nobody sleeps, and nobody has to be woken.
#[derive(Debug)]
pub(super) struct Nobody;

impl Waker for Nobody {
    fn wake_one(&self) {}
    fn wake_all(&self) {}
}
