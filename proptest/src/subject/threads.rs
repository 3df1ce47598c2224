//! requeue-std: its own lock, clock and way of waiting, on a clock that stands still.

use std::time::Duration;

use requeue_core::{Growable, Queue, Ticket};
use requeue_std::{Condvars, Locked, ManualClock, Shared, WorkQueue};

use super::shared::{Runtime, handed};
use super::{Handed, Home, Key, Setup};
use crate::Figures;
use crate::trace::limiter::AnyLimiter;

/// requeue-std's queue.
#[derive(Debug)]
pub struct Threads<S: Home = Growable> {
    queue: WorkQueue<Key, AnyLimiter, Figures, ManualClock, S>,
    waits: bool,
}

impl<S: Home> Runtime for Threads<S> {
    type Storage = S;
    type Metrics = Figures;
    type Lock = Locked<Queue<Key, S, AnyLimiter, Figures>>;
    type Clock = ManualClock;
    type Waker = Condvars;

    fn new(setup: &Setup) -> Self {
        let queue = S::build(setup, Figures::default());
        Self {
            queue: WorkQueue::from_queue(queue, ManualClock::new()),
            waits: false,
        }
    }

    fn queue(&self) -> &Shared<Key, AnyLimiter, Figures, ManualClock, S> {
        &self.queue
    }

    fn advance(&mut self, by: Duration) {
        self.queue.clock().advance(by);
    }

    /// In turns by asking, and by waiting for no time.
    fn try_get(&mut self) -> Option<Handed<Ticket>> {
        self.waits = !self.waits;
        let guard = if self.waits {
            self.queue.get_timeout(Duration::ZERO).ok()
        } else {
            self.queue.try_get()
        };
        guard.and_then(handed)
    }
}
