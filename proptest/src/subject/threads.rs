//! requeue-std: its own lock, clock and way of waiting, on a clock that stands still.

use std::time::Duration;

use requeue_core::Rejected;
use requeue_core::binding::{AsShared, Reporter, Shared};
use requeue_core::priority::Plain;
use requeue_core::storage::Growable;
use requeue_std::binding::ThreadHost;
use requeue_std::{ManualClock, WorkQueue};

use super::calls::{returned, waited};
use super::thread_calls::{CallsOf, Sleeping, ThreadCall, ThreadCalls};
use super::work_queue::{Runtime, handed, panicking};
use super::{Call, Configuration, Home, Key, Kind, Returned, Taken};
use crate::figures::{Figures, SharedFigures};
use crate::limiter::AnyLimiter;

type Inner<P, S> = WorkQueue<Key, P, AnyLimiter, S>;

/// requeue-std's queue.
#[derive(Debug)]
pub struct Threads<P: Kind = Plain, S: Home = Growable> {
    queue: Inner<P, S>,
    figures: SharedFigures,
    calls: ThreadCalls<OnThreads<P, S>>,
}

impl<P: Kind + 'static, S: Home + 'static> Runtime for Threads<P, S>
where
    Inner<P, S>: Send,
{
    type Host = ThreadHost<Key, P, AnyLimiter, S>;
    type Calls = ThreadCalls<OnThreads<P, S>>;

    fn new(setup: &Configuration) -> Self {
        let (figures, clock) = (SharedFigures::default(), ManualClock::new());
        let queue = S::build(setup, Reporter::new(figures.clone()));
        let queue = WorkQueue::from_queue(queue, clock.clone());
        Self {
            calls: ThreadCalls::new(OnThreads(queue.clone(), clock)),
            queue,
            figures,
        }
    }

    fn queue(&self) -> &Shared<Self::Host> {
        self.queue.as_shared()
    }

    fn advance(&mut self, by: Duration) {
        self.calls.queue.1.advance(by);
    }

    fn get_at_once(&mut self) -> Option<Taken> {
        self.queue.get_timeout(Duration::ZERO).ok().and_then(handed)
    }

    fn panic_at_work(&mut self) -> bool {
        panicking(|| self.queue.try_get())
    }

    fn begin(&self, call: Call) -> Option<ThreadCall> {
        let queue = self.queue.clone();
        Some(Box::new(move || {
            returned!(queue, call, [], |limit| queue.drain_timeout(limit))
        }))
    }

    fn figures(&self) -> Option<Figures> {
        Some(self.figures.get())
    }

    fn calls(&mut self) -> &mut Self::Calls {
        &mut self.calls
    }
}

/// requeue-std's queue, and its clock.
#[derive(Debug)]
pub struct OnThreads<P: Kind, S: Home>(Inner<P, S>, ManualClock);

impl<P: Kind, S: Home> CallsOf for OnThreads<P, S> {
    fn seen(&self) -> Sleeping {
        let Self(queue, clock) = self;
        let queue = queue.as_shared();
        let (asleep, deadline) = queue.look(|queue| (queue.asleep(), queue.next_deadline()));
        Sleeping {
            asleep,
            deadline,
            waiting: clock.waiting(),
            alarm: clock.next_alarm(),
            now: clock.now(),
        }
    }

    fn end(&self) {
        self.0.shut_down();
        self.0.clear();
    }

    fn release(&self, key: Key) -> bool {
        // Not every key is active.
        let _ = self.0.release_key(&key);
        self.0.stats().active > 0
    }
}
