//! The queue of each runtime, shared by what runs at the same time.

use std::time::Duration;

use requeue_proptest::histories::Operation;
use requeue_proptest::subject::{Answer, AnyLimiter, Call, Configuration, Home, Key};
use requeue_schedules::Waits;
use requeue_std::WaitError;
use requeue_std::binding::{AsShared, Drained, Lock, Next, Reporter, timeout_at};
use requeue_std::priority::{WithSlack, WithSuspension};
use requeue_std::storage::{Fixed, Growable, Storage};

use crate::trial::{Runs, Shared, without_waiting};

/// What a queue of a fixed size needs for every operation that is drawn.
type Slackened = WithSlack<WithSuspension>;

/// Calls of threads wait before they return, those of tasks when they are awaited.
macro_rules! shared {
    ($name:ident, $storage:ty, $as:ident, $queue:path, $guard:ty, |$at:ident| $drain:expr
        $(, $wait:ident)?) => {
        pub(crate) struct $name($queue);

        impl Shared for $name {
            type Guard<'q> = $guard;
            const CAPACITY: Option<usize> = <$storage as Storage>::CAPACITY;

            fn new(setup: &Configuration) -> Self {
                Self(<$storage>::build(setup, Reporter::NONE).into())
            }

            async fn perform<'q>(
                &'q self,
                operation: &Operation,
                runs: &mut Runs<Self::Guard<'q>>,
            ) -> Answer {
                let $at = &self.0;
                match *operation {
                    Operation::TryGet => {
                        Answer::Work($at.try_get().map(|guard| runs.handed(guard)))
                    }
                    Operation::Start(Call::GetTimeout(timeout)) => {
                        runs.got($at.get_timeout(timeout)$(.$wait)?)
                    }
                    Operation::Get(_) => runs.got($at.get()$(.$wait)?),
                    Operation::GetMany(max, _) => match $at.get_many(max)$(.$wait)? {
                        Ok(batch) => {
                            let guards = batch.into_guards();
                            let handed = guards.into_iter().map(|guard| runs.handed(guard));
                            Answer::NextMany(Next::Work(handed.collect()))
                        }
                        Err(_) => Answer::NextMany(Next::Closed),
                    },
                    Operation::Next(run, how, _) => match runs.take(run) {
                        Some(guard) => runs.got($at.next(guard, how)$(.$wait)?),
                        None => Answer::Lacking,
                    },
                    Operation::Start(_) => Answer::Drained(drained($drain)),
                    Operation::Advance(by) => {
                        <requeue_schedules::$as as Waits>::advance(by);
                        Answer::Done
                    }
                    ref other => without_waiting($at.as_shared(), other, runs),
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

macro_rules! threads {
    ($name:ident, $storage:ty) => {
        shared!(
            $name,
            $storage,
            Threads,
            requeue_std::WorkQueue<Key, Slackened, AnyLimiter, $storage>,
            requeue_std::Guard<'q, Key, Slackened, AnyLimiter, $storage>,
            |queue| queue.drain_timeout(Duration::ZERO)
        );
    };
}

macro_rules! tasks {
    ($name:ident, $storage:ty) => {
        shared!(
            $name,
            $storage,
            Tasks,
            requeue_tokio::WorkQueue<Key, Slackened, AnyLimiter, $storage>,
            requeue_tokio::Guard<Key, Slackened, AnyLimiter, $storage>,
            |queue| {
                let drain = timeout_at(queue.clock(), Some(queue.now()), queue.drain()).await;
                drain.unwrap_or(Err(WaitError::TimedOut))
            },
            await
        );
    };
}

// Two of three keys fit into the others: what is refused is handed back.
threads!(Threads, Growable);
threads!(FullThreads, Fixed<2>);
tasks!(Tasks, Growable);
tasks!(FullTasks, Fixed<2>);
