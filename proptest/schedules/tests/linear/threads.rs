//! requeue-std's queue, shared by threads.

use std::time::Duration;

use requeue_linear::{Request, Response, Runs, Shared, without_waiting};
use requeue_proptest::subject::{AnyLimiter, Home, Key, Setup};
use requeue_std::core::binding::Lock;
use requeue_std::core::{GetError, Growable, Reporter};
use requeue_std::{Guard, ManualClock, WorkQueue};

/// A queue on a clock that is moved by calls.
pub(crate) struct SharedThreads {
    queue: WorkQueue<Key, AnyLimiter>,
    clock: ManualClock,
}

impl Shared for SharedThreads {
    type Guard<'q> = Guard<'q, Key, AnyLimiter>;
    const TICK: Duration = Duration::from_nanos(1);
    const MOVES_ITS_CLOCK: bool = true;

    fn new(setup: &Setup) -> Self {
        let queue = Growable::build(setup, Reporter::NONE);
        let clock = ManualClock::new();
        Self {
            queue: WorkQueue::from_queue(queue, clock.clone()),
            clock,
        }
    }

    async fn perform<'q>(
        &'q self,
        request: &Request,
        runs: &mut Runs<Self::Guard<'q>>,
    ) -> Response {
        let queue = &self.queue;
        match *request {
            Request::TryGet(run) => match queue.try_get() {
                // core's own guard, in the type of this crate's.
                Some(guard) => runs.handed(run, [guard]),
                None => Response::Nothing,
            },
            Request::GetNow(run) => match queue.get_timeout(Duration::ZERO) {
                Ok(guard) => runs.handed(run, [guard]),
                Err(GetError::Closed) => Response::Closed,
                Err(_) => Response::Nothing,
            },
            Request::Get(run) => match queue.get() {
                Some(guard) => runs.handed(run, [guard]),
                None => Response::Closed,
            },
            Request::GetMany(run, max) => match queue.get_many(max) {
                Some(batch) => runs.handed(run, batch.into_guards()),
                None => Response::Closed,
            },
            Request::Next(run, how, next) => {
                let turn = runs.take(run).map(|guard| queue.next(guard, how));
                match turn.flatten() {
                    Some(guard) => runs.handed(next, [guard]),
                    None => Response::Closed,
                }
            }
            Request::Drain(_) => Response::Drained(queue.drain_timeout(Duration::ZERO)),
            Request::Advance(by) => {
                self.clock.advance(by);
                queue.clock_moved();
                Response::Done
            }
            ref request => without_waiting(queue, request, runs),
        }
    }

    fn assert_valid(&self) {
        self.queue.lock().with(|state| state.queue().assert_valid());
    }
}
