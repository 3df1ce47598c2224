//! requeue-embassy: its own lock and way of waiting, on a clock that stands still.

use std::fmt;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use requeue_core::{Fixed, NoPriorities, Priorities, Queue, Ticket};
use requeue_embassy::raw::NoopRawMutex;
use requeue_embassy::{Locked, ManualClock, Shared, Wakers, WorkQueue};

use super::shared::{Runtime, handed};
use super::{Handed, Home, Key, Setup};
use crate::Figures;
use crate::trace::limiter::AnyLimiter;

/// How many calls may wait at once: none does here but by core's own steps.
const WAITERS: usize = 3;

type Clock = ManualClock<NoopRawMutex>;
type State<const N: usize, P> = Queue<Key, Fixed<N, u16, P>, AnyLimiter, Figures>;

/// requeue-embassy's queue, with room for `N` keys.
pub struct Embassy<const N: usize, P: Priorities = NoPriorities> {
    queue: WorkQueue<NoopRawMutex, Key, N, AnyLimiter, WAITERS, Figures, u16, Clock, P>,
    waits: bool,
}

impl<const N: usize, P: Priorities> Runtime for Embassy<N, P> {
    type Storage = Fixed<N, u16, P>;
    type Metrics = Figures;
    type Lock = Locked<NoopRawMutex, State<N, P>>;
    type Clock = Clock;
    type Waker = Wakers<NoopRawMutex, WAITERS>;

    fn new(setup: &Setup) -> Self {
        let queue = Fixed::build(setup, Figures::default());
        Self {
            queue: WorkQueue::from_queue(queue, ManualClock::new()),
            waits: false,
        }
    }

    fn queue(&self) -> &Shared<NoopRawMutex, Key, N, AnyLimiter, WAITERS, Figures, u16, Clock, P> {
        &self.queue
    }

    fn advance(&mut self, by: Duration) {
        self.queue.clock().advance(by);
    }

    /// In turns by asking, and by waiting for no time.
    fn try_get(&mut self) -> Option<Handed<Ticket>> {
        self.waits = !self.waits;
        let guard = if self.waits {
            let get = pin!(self.queue.get_timeout(Duration::ZERO));
            match get.poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(got) => got.ok(),
                Poll::Pending => None,
            }
        } else {
            self.queue.try_get()
        };
        guard.and_then(handed)
    }
}

impl<const N: usize, P: Priorities> fmt::Debug for Embassy<N, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.queue.fmt(f)
    }
}
