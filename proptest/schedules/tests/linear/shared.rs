//! The queue of each runtime, shared by what runs at the same time.

use std::time::Duration;

use requeue_linear::{Request, Response, Runs, Shared, without_waiting};
use requeue_proptest::subject::{AnyLimiter, Home, Key, Setup};
use requeue_schedules::Waits;
use requeue_std::core::binding::Lock;
use requeue_std::core::{Growable, Reporter, WaitError};

/// Calls of threads wait before they return, those of tasks when they are awaited.
macro_rules! shared {
    ($name:ident, $runtime:ident, $guard:ty $(, $wait:ident)?) => {
        pub(crate) struct $name($runtime::WorkQueue<Key, AnyLimiter>);

        impl Shared for $name {
            type Guard<'q> = $guard;

            fn new(setup: &Setup) -> Self {
                Self(Growable::build(setup, Reporter::NONE).into())
            }

            async fn perform<'q>(
                &'q self,
                request: &Request,
                runs: &mut Runs<Self::Guard<'q>>,
            ) -> Response {
                let queue = &self.0;
                match *request {
                    Request::TryGet(run) => match queue.try_get() {
                        Some(guard) => runs.handed(run, [guard]),
                        None => Response::Nothing,
                    },
                    Request::GetNow(run) => match queue.get_timeout(Duration::ZERO)$(.$wait)? {
                        Ok(guard) => runs.handed(run, [guard]),
                        Err(WaitError::Closed) => Response::Closed,
                        Err(_) => Response::Nothing,
                    },
                    Request::Get(run) => match queue.get()$(.$wait)? {
                        Some(guard) => runs.handed(run, [guard]),
                        None => Response::Closed,
                    },
                    Request::GetMany(run, max) => match queue.get_many(max)$(.$wait)? {
                        Some(batch) => runs.handed(run, batch.into_guards()),
                        None => Response::Closed,
                    },
                    Request::Next(run, how, next) => {
                        let Some(guard) = runs.take(run) else {
                            return Response::Closed;
                        };
                        match queue.next(guard, how)$(.$wait)? {
                            Some(guard) => runs.handed(next, [guard]),
                            None => Response::Closed,
                        }
                    }
                    Request::Drain(_) => {
                        Response::Drained(queue.drain_timeout(Duration::ZERO)$(.$wait)?)
                    }
                    Request::Advance(by) => {
                        <requeue_schedules::$name as Waits>::advance(by);
                        Response::Done
                    }
                    ref request => without_waiting(queue, request, runs),
                }
            }

            fn assert_valid(&self) {
                self.0.lock().with(|state| state.queue().assert_valid());
            }
        }
    };
}

shared!(
    Threads,
    requeue_std,
    requeue_std::Guard<'q, Key, AnyLimiter>
);
shared!(Tasks, requeue_tokio, requeue_tokio::Guard<Key, AnyLimiter>, await);
