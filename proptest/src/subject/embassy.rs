//! requeue-embassy: its own lock and way of waiting, on a clock that stands still.

use std::convert::identity;
use std::rc::Rc;
use std::time::Duration;

use requeue_core::binding::{AsShared, Shared, timeout_at};
use requeue_core::metrics::Metrics;
use requeue_core::priority::Plain;
use requeue_core::storage::Fixed;
use requeue_core::{Action, Rejected};
use requeue_embassy::binding::EmbassyHost;
use requeue_embassy::raw::NoopRawMutex;
use requeue_embassy::{WaitError, WorkQueue};

use super::calls::{calls_of_tasks, returned};
use super::work_queue::{Runtime, handed};
use super::{Call, Configuration, Futures, HandClock, Home, Key, Kind, LocalCall, Returned};
use crate::Figures;
use crate::limiter::AnyLimiter;

/// How many calls may wait at once.
const WAITERS: usize = 4;

type Parts<M> = (M, u16, HandClock);
type Inner<const N: usize, P, M> =
    WorkQueue<NoopRawMutex, Key, N, P, AnyLimiter, WAITERS, Parts<M>>;

/// requeue-embassy's queue, with room for `N` keys and four calls that wait.
pub struct Embassy<const N: usize, P: Kind = Plain, M: Metrics = Figures> {
    queue: Rc<Inner<N, P, M>>,
}

impl<const N: usize, P: Kind + 'static, M: Metrics + Default + 'static> Runtime
    for Embassy<N, P, M>
{
    type Host = EmbassyHost<NoopRawMutex, Key, N, P, AnyLimiter, WAITERS, Parts<M>>;
    type Calls = Futures;
    const PLACES: Option<usize> = Some(WAITERS);

    fn new(setup: &Configuration) -> Self {
        let queue = Fixed::build(setup, M::default());
        Self {
            queue: Rc::new(WorkQueue::from_queue(queue, HandClock::new())),
        }
    }

    fn queue(&self) -> &Shared<Self::Host> {
        self.queue.as_shared()
    }

    fn advance(&mut self, by: Duration) {
        self.queue.clock().advance(by);
    }

    calls_of_tasks! { identity }

    fn figures(&self) -> Option<Figures> {
        self.queue().look(|queue| Figures::of(queue.metrics()))
    }
}
