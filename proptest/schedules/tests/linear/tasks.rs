//! requeue-tokio's queue, shared by tasks.

use std::time::Duration;

use requeue_linear::{Request, Response, Runs, Shared, without_waiting};
use requeue_proptest::subject::{AnyLimiter, Home, Key, Setup};
use requeue_tokio::core::binding::Lock;
use requeue_tokio::core::{GetError, Growable, Instant, Reporter};
use requeue_tokio::{Guard, WorkQueue};

/// A queue whose clock goes by itself while a program runs: delays are hours, and what is left of
/// them is rounded up to hours.
pub(crate) struct SharedTasks {
    queue: WorkQueue<Key, AnyLimiter>,
}

const HOUR: Duration = Duration::from_secs(60 * 60);

impl Shared for SharedTasks {
    type Guard<'q> = Guard<Key, AnyLimiter>;
    const TICK: Duration = HOUR;
    const MOVES_ITS_CLOCK: bool = false;

    fn new(setup: &Setup) -> Self {
        let queue = Growable::build(setup, Reporter::NONE);
        Self {
            queue: WorkQueue::from(queue),
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
                Some(guard) => runs.handed(run, [guard]),
                None => Response::Nothing,
            },
            Request::GetNow(run) => match queue.get_timeout(Duration::ZERO).await {
                Ok(guard) => runs.handed(run, [guard]),
                Err(GetError::Closed) => Response::Closed,
                Err(_) => Response::Nothing,
            },
            Request::Get(run) => match queue.get().await {
                Some(guard) => runs.handed(run, [guard]),
                None => Response::Closed,
            },
            Request::GetMany(run, max) => match queue.get_many(max).await {
                Some(batch) => runs.handed(run, batch.into_guards()),
                None => Response::Closed,
            },
            Request::Next(run, how, next) => {
                let Some(guard) = runs.take(run) else {
                    return Response::Closed;
                };
                match queue.next(guard, how).await {
                    Some(guard) => runs.handed(next, [guard]),
                    None => Response::Closed,
                }
            }
            Request::Drain(_) => Response::Drained(queue.drain_timeout(Duration::ZERO).await),
            ref request => round(without_waiting(queue, request, runs)),
        }
    }

    fn assert_valid(&self) {
        self.queue.lock().with(|state| state.queue().assert_valid());
    }
}

/// Returns the response of a queue whose clock stood still since it was made.
fn round(response: Response) -> Response {
    match response {
        Response::State(Some(mut known)) => {
            known.due = known.due.map(whole_hours_before);
            Response::State(Some(known))
        }
        Response::Left(Some(mut left)) if left.left != Duration::MAX => {
            let hours = left.left.as_nanos().div_ceil(HOUR.as_nanos());
            left.left = HOUR.saturating_mul(u32::try_from(hours).unwrap_or(u32::MAX));
            Response::Left(Some(left))
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
