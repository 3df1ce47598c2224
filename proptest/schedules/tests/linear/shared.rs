//! The queue of each runtime, shared by what runs at the same time.

use std::time::Duration;

use requeue_linear::{Runs, Shared, without_waiting};
use requeue_proptest::histories::Operation;
use requeue_proptest::subject::{Answer, AnyLimiter, Call, Configuration, Home, Key};
use requeue_schedules::Waits;
use requeue_std::WaitError;
use requeue_std::binding::{AsShared, Drained, Lock, Next, Reporter, timeout_at};
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
                operation: &Operation,
                runs: &mut Runs<Self::Guard<'q>>,
            ) -> Answer {
                let $queue = &self.0;
                match *operation {
                    Operation::TryGet => {
                        Answer::Work($queue.try_get().map(|guard| runs.handed(guard)))
                    }
                    Operation::Start(Call::GetTimeout(timeout)) => {
                        runs.got($queue.get_timeout(timeout)$(.$wait)?)
                    }
                    Operation::Get(_) => runs.got($queue.get()$(.$wait)?),
                    Operation::GetMany(max, _) => match $queue.get_many(max)$(.$wait)? {
                        Ok(batch) => {
                            let guards = batch.into_guards();
                            let handed = guards.into_iter().map(|guard| runs.handed(guard));
                            Answer::NextMany(Next::Work(handed.collect()))
                        }
                        Err(_) => Answer::NextMany(Next::Closed),
                    },
                    Operation::Next(run, how, _) => match runs.take(run) {
                        Some(guard) => runs.got($queue.next(guard, how)$(.$wait)?),
                        None => Answer::Lacking,
                    },
                    Operation::Start(_) => Answer::Drained(drained($drain)),
                    Operation::Advance(by) => {
                        <requeue_schedules::$name as Waits>::advance(by);
                        Answer::Done
                    }
                    ref other => without_waiting($queue.as_shared(), other, runs),
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
