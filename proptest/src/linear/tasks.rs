//! requeue-tokio, shared by tasks on several threads.

use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

use requeue_core::{GetError, Growable, Instant, Lock, NoMetrics};
use requeue_tokio::{Guard, WorkQueue};
use tokio::runtime::{Builder, Runtime};

use super::{Answer, Concurrent, Op, Runs, Work, without_waiting};
use crate::limiter::AnyLimiter;
use crate::subject::{Home, Key, Setup};

/// requeue-tokio's queue. Its clock goes by itself, since Tokio pauses one only on a single thread:
/// delays are hours, and what is left of them is rounded up to hours.
#[derive(Debug)]
pub struct SharedTasks {
    queue: WorkQueue<Key, AnyLimiter, NoMetrics>,
}

const HOUR: Duration = Duration::from_secs(60 * 60);

/// How many threads run the tasks.
const THREADS: usize = 3;

fn runtime() -> Option<&'static Runtime> {
    static RUNTIME: OnceLock<Option<Runtime>> = OnceLock::new();
    let build = || {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(THREADS).enable_time().build().ok()
    };
    RUNTIME.get_or_init(build).as_ref()
}

impl Concurrent for SharedTasks {
    type Guard<'q> = Guard<Key, AnyLimiter, NoMetrics>;
    const TICK: Duration = HOUR;
    const MOVES_ITS_CLOCK: bool = false;

    fn new(setup: &Setup) -> Self {
        let queue = Growable::build(setup, NoMetrics);
        Self {
            queue: WorkQueue::from(queue),
        }
    }

    async fn perform<'q>(&'q self, op: &Op, runs: &mut Runs<Self::Guard<'q>>) -> Answer {
        let queue = &self.queue;
        match *op {
            Op::TryGet(run) => match queue.try_get() {
                Some(guard) => runs.handed(run, [guard]),
                None => Answer::Nothing,
            },
            Op::GetNow(run) => match queue.get_timeout(Duration::ZERO).await {
                Ok(guard) => runs.handed(run, [guard]),
                Err(GetError::Closed) => Answer::Closed,
                Err(_) => Answer::Nothing,
            },
            Op::Get(run) => match queue.get().await {
                Some(guard) => runs.handed(run, [guard]),
                None => Answer::Closed,
            },
            Op::GetMany(run, max) => match queue.get_many(max).await {
                Some(batch) => runs.handed(run, batch.into_guards()),
                None => Answer::Closed,
            },
            Op::Next(run, how, next) => {
                let Some(guard) = runs.take(run) else {
                    return Answer::Closed;
                };
                match queue.next(guard, how).await {
                    Some(guard) => runs.handed(next, [guard]),
                    None => Answer::Closed,
                }
            }
            Op::Drain(_) => Answer::Drained(queue.drain_timeout(Duration::ZERO).await),
            ref op => round(without_waiting(queue, op, runs)),
        }
    }

    fn employ(work: Work<Self>) {
        if let Some(runtime) = runtime() {
            runtime.spawn(work.run());
        }
    }

    async fn pause() {
        // The thread, too: the task that is waited for may be on one that does not get to run.
        thread::yield_now();
        tokio::task::yield_now().await;
    }

    fn disturb(&self) {
        self.queue.lock().with(|_| thread::yield_now());
    }

    fn assert_valid(&self) {
        self.queue.lock().with(|queue| queue.assert_valid());
    }
}

/// The answer of a queue whose clock stood still since it was made.
fn round(answer: Answer) -> Answer {
    match answer {
        Answer::State(Some(mut known)) => {
            known.due = known.due.map(whole_hours_before);
            Answer::State(Some(known))
        }
        Answer::Left(Some(mut left)) if left.left != Duration::MAX => {
            let hours = left.left.as_nanos().div_ceil(HOUR.as_nanos());
            left.left = HOUR.saturating_mul(u32::try_from(hours).unwrap_or(u32::MAX));
            Answer::Left(Some(left))
        }
        other => other,
    }
}

fn whole_hours_before(due: Instant) -> Instant {
    let nanos = due.as_nanos();
    if due.is_never() {
        return due;
    }
    Instant::from_nanos(nanos - nanos % (HOUR.as_nanos() as u64))
}
