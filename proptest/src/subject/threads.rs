//! requeue-std: its own lock, clock and way of waiting, on a clock that stands still.

use std::time::Duration;

use requeue_core::binding::{AsShared, Reporter, Shared};
use requeue_core::priority::Plain;
use requeue_core::storage::Growable;
use requeue_core::{Instant, Rejected, WaitError};
use requeue_std::binding::ThreadHost;
use requeue_std::{ManualClock, WorkQueue};

use super::calls::returned;
use super::thread_calls::{Sleeps, ThreadCall, ThreadCalls};
use super::work_queue::{Runtime, handed};
use super::{Call, Configuration, Home, Key, Kind, Returned};
use crate::figures::{Figures, SharedFigures};
use crate::limiter::AnyLimiter;

type Inner<P, S> = WorkQueue<Key, P, AnyLimiter, S>;

/// requeue-std's queue.
pub struct Threads<P: Kind = Plain, S: Home = Growable> {
    queue: Inner<P, S>,
    figures: Option<SharedFigures>,
    clock: ManualClock,
}

impl<P: Kind + 'static, S: Home + 'static> Runtime for Threads<P, S>
where
    Inner<P, S>: Send,
{
    type Host = ThreadHost<Key, P, AnyLimiter, S>;
    type Calls = ThreadCalls;

    fn new(setup: &Configuration) -> Self {
        let clock = ManualClock::new();
        let figures = setup.metrics.then(SharedFigures::default);
        let queue = S::build(setup, figures.clone().map_or(Reporter::NONE, Reporter::new));
        Self {
            queue: WorkQueue::from_queue(queue, clock.clone()),
            figures,
            clock,
        }
    }

    fn queue(&self) -> &Shared<Self::Host> {
        self.queue.as_shared()
    }

    fn advance(&mut self, by: Duration) {
        self.clock.advance(by);
    }

    fn begin(&self, call: Call) -> Option<ThreadCall> {
        let queue = self.queue.clone();
        Some(Box::new(move || {
            returned!(queue, call, [], Ok, |limit| queue.drain_timeout(limit))
        }))
    }

    fn figures(&self) -> Option<Figures> {
        self.figures.as_ref().map(SharedFigures::get)
    }
}

impl<P: Kind, S: Home> Sleeps for Threads<P, S> {
    fn sleeping(&self) -> (usize, Option<Instant>) {
        (self.clock.waiting(), self.clock.next_alarm())
    }
}
