//! requeue-std, shared by threads.

use std::thread;
use std::time::Duration;

use requeue_core::{GetError, Growable, Lock, NoMetrics};
use requeue_std::{Guard, ManualClock, WorkQueue};

use super::{Answer, Concurrent, Op, Runs, Work, without_waiting};
use crate::limiter::AnyLimiter;
use crate::subject::{Home, Key, Setup, poll_once};

/// requeue-std's queue, on a clock that is moved by calls.
#[derive(Debug)]
pub struct SharedThreads {
    queue: WorkQueue<Key, AnyLimiter, NoMetrics, ManualClock>,
}

impl Concurrent for SharedThreads {
    type Guard<'q> = Guard<'q, Key, AnyLimiter, NoMetrics, ManualClock>;
    const TICK: Duration = Duration::from_nanos(1);
    const MOVES_ITS_CLOCK: bool = true;

    fn new(setup: &Setup) -> Self {
        let queue = Growable::build(setup, NoMetrics);
        Self {
            queue: WorkQueue::from_queue(queue, ManualClock::new()),
        }
    }

    async fn perform<'q>(&'q self, op: &Op, runs: &mut Runs<Self::Guard<'q>>) -> Answer {
        let queue = &self.queue;
        match *op {
            Op::TryGet(run) => match queue.try_get() {
                // core's own guard, in the type of this crate's.
                Some(guard) => runs.handed(run, [guard]),
                None => Answer::Nothing,
            },
            Op::GetNow(run) => match queue.get_timeout(Duration::ZERO) {
                Ok(guard) => runs.handed(run, [guard]),
                Err(GetError::Closed) => Answer::Closed,
                Err(_) => Answer::Nothing,
            },
            Op::Get(run) => match queue.get() {
                Some(guard) => runs.handed(run, [guard]),
                None => Answer::Closed,
            },
            Op::GetMany(run, max) => match queue.get_many(max) {
                Some(batch) => runs.handed(run, batch.into_guards()),
                None => Answer::Closed,
            },
            Op::Next(run, how, next) => {
                let turn = runs.take(run).map(|guard| queue.next(guard, how));
                match turn.flatten() {
                    Some(guard) => runs.handed(next, [guard]),
                    None => Answer::Closed,
                }
            }
            Op::Drain(_) => Answer::Drained(queue.drain_timeout(Duration::ZERO)),
            Op::Advance(by) => {
                queue.clock().advance(by);
                queue.clock_moved();
                Answer::Done
            }
            ref op => without_waiting(queue, op, runs),
        }
    }

    fn employ(work: Work<Self>) {
        thread::spawn(move || {
            // Everything waits by itself, so that one poll does it all.
            let _ = poll_once(work.run());
        });
    }

    async fn pause() {
        thread::yield_now();
    }

    fn disturb(&self) {
        self.queue.lock().with(|_| thread::yield_now());
    }

    fn assert_valid(&self) {
        self.queue.lock().with(|queue| queue.assert_valid());
    }
}
