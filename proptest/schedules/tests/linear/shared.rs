//! The queue of each runtime, shared by what runs at the same time.

use std::time::Duration;

use requeue_linear::{Request, Response, Runs, Shared, without_waiting};
use requeue_proptest::subject::{AnyLimiter, Configuration, Home, Key};
use requeue_schedules::Waits;
use requeue_std::WaitError;
use requeue_std::binding::{AsShared, Lock, timeout_at};
use requeue_std::binding::{Drained, Reporter};
use requeue_std::priority::Plain;
use requeue_std::storage::Growable;

/// Calls of threads wait before they return, those of tasks when they are awaited.
macro_rules! shared {
    ($name:ident, $runtime:ident, $guard:ty, |$queue:ident| $drain:expr $(, $wait:ident)?) => {
        pub(crate) struct $name($runtime::WorkQueue<Key, Plain, AnyLimiter>);

        impl Shared for $name {
            type Guard<'q> = $guard;

            fn new(setup: &Configuration) -> Self {
                Self(Growable::build(setup, Reporter::NONE).into())
            }

            async fn perform<'q>(
                &'q self,
                request: &Request,
                runs: &mut Runs<Self::Guard<'q>>,
            ) -> Response {
                let $queue = &self.0;
                match *request {
                    Request::TryGet(run) => match $queue.try_get() {
                        Some(guard) => runs.handed(run, [guard]),
                        None => Response::Nothing,
                    },
                    Request::GetNow(run) => match $queue.get_timeout(Duration::ZERO)$(.$wait)? {
                        Ok(guard) => runs.handed(run, [guard]),
                        Err(WaitError::Closed) => Response::Closed,
                        Err(_) => Response::Nothing,
                    },
                    Request::Get(run) => match $queue.get()$(.$wait)? {
                        Ok(guard) => runs.handed(run, [guard]),
                        Err(_) => Response::Closed,
                    },
                    Request::GetMany(run, max) => match $queue.get_many(max)$(.$wait)? {
                        Ok(batch) => runs.handed(run, batch.into_guards()),
                        Err(_) => Response::Closed,
                    },
                    Request::Next(run, how, next) => {
                        let Some(guard) = runs.take(run) else {
                            return Response::Closed;
                        };
                        match $queue.next(guard, how)$(.$wait)? {
                            Ok(guard) => runs.handed(next, [guard]),
                            Err(_) => Response::Closed,
                        }
                    }
                    Request::Drain(_) => Response::Drained(drained($drain)),
                    Request::Advance(by) => {
                        <requeue_schedules::$name as Waits>::advance(by);
                        Response::Done
                    }
                    ref request => without_waiting($queue.as_shared(), request, runs),
                }
            }

            fn assert_valid(&self) {
                let shared = self.0.as_shared();
                shared.lock().with(|state| state.queue().assert_valid());
            }
        }
    };
}

fn drained(ended: Result<(), WaitError>) -> Drained {
    match ended {
        Ok(()) => Drained::Complete,
        Err(WaitError::Interrupted) => Drained::Interrupted,
        Err(_) => Drained::Pending,
    }
}

shared!(
    Threads,
    requeue_std,
    requeue_std::Guard<'q, Key, Plain, AnyLimiter>,
    |queue| queue.drain_timeout(Duration::ZERO)
);
shared!(
    Tasks,
    requeue_tokio,
    requeue_tokio::Guard<Key, Plain, AnyLimiter>,
    |queue| timeout_at(queue.clock(), Some(queue.now()), queue.drain()).await.unwrap_or(Err(WaitError::TimedOut)),
    await
);
