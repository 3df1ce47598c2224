//! The queue for microcontrollers, whose critical sections any other task may come between: as if
//! each task had an executor and a core of its own.

use std::cell::RefCell;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread::panicking;
use std::time::Duration;

use requeue_embassy::binding::{EmbassyHost, Timer};
use requeue_embassy::{ManualClock, WorkQueue};
use requeue_interrupts::{Interruptible, interrupt_with};
use requeue_std::binding::{self, AsShared, Clock};
use requeue_std::limiter::Exponential;
use requeue_std::priority::WithSuspension;
use requeue_std::{
    Action, AddOptions, Added, Instant, KeyState, Producer, Queue, Rejected, Scheduled, WaitError,
};

use crate::scene::interrupt;
use crate::waits::{Keys, Limiter, Shared, Waits, calls, waited};

const WAITERS: usize = 8;

type Parts = ((), u8, Hand);
type Of<L, const N: usize> = WorkQueue<Interruptible, u32, N, WithSuspension, L, WAITERS, Parts>;

/// The queue for microcontrollers, with room for this many keys.
pub struct Board<L: Limiter = Exponential, const N: usize = 16>(Arc<Of<L, N>>);

impl<L: Limiter, const N: usize> Clone for Board<L, N> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<L: Limiter, const N: usize> AsShared for Board<L, N> {
    type Host = EmbassyHost<Interruptible, u32, N, WithSuspension, L, WAITERS, Parts>;

    fn as_shared(&self) -> &binding::Shared<Self::Host> {
        self.0.as_shared()
    }
}

impl<L: Limiter, const N: usize> Producer<u32> for Board<L, N> {
    fn add(&self, key: u32) -> Result<Added, Rejected<u32>> {
        self.0.add(key)
    }

    fn add_after(&self, key: u32, delay: Duration) -> Result<Added, Rejected<u32>> {
        self.0.add_after(key, delay)
    }

    fn add_rate_limited(&self, key: u32) -> Result<Scheduled, Rejected<u32>> {
        self.0.add_rate_limited(key)
    }

    fn add_with(&self, key: u32, options: AddOptions) -> Result<Scheduled, Rejected<u32>> {
        self.0.add_with(key, options)
    }
}

impl<L: Limiter, const N: usize> Waits for Board<L, N> {
    type Priorities = WithSuspension;
    type Handle<'q> = &'q Shared<Self>;

    const NAME: &'static str = "boards";

    type Bounded = Board<L, 2>;

    fn new() -> Self {
        let mut queue = Queue::new(L::new());
        queue.at(Instant::EPOCH).set_policy(L::policy());
        Self(Arc::new(WorkQueue::from_queue(queue, Hand::new())))
    }

    fn bounded() -> Self::Bounded {
        Waits::new()
    }

    fn within<R>(work: impl FnOnce() -> R) -> R {
        interrupt_with(|| {
            if !panicking() {
                interrupt();
            }
        });
        work()
    }

    fn advance(by: Duration) {
        let hand = HAND.with_borrow(Option::clone);
        hand.into_iter().for_each(|hand| hand.0.advance(by));
    }

    calls!(|queue| queue.0, waited, Result::unwrap);
}

/// The clock of one schedule: with it go the wakers of the tasks that have waited for it.
#[derive(Clone, Debug)]
pub struct Hand(Arc<ManualClock<Interruptible>>);

thread_local! {
    static HAND: RefCell<Option<Hand>> = const { RefCell::new(None) };
}

impl Hand {
    fn new() -> Self {
        let hand = Self(Arc::new(ManualClock::new()));
        HAND.set(Some(hand.clone()));
        hand
    }
}

impl Clock for Hand {
    fn now(&self) -> Instant {
        self.0.now()
    }
}

impl Timer for Hand {
    type Alarm = Alarm;

    fn set_alarm(&self, mut alarm: Pin<&mut Option<Alarm>>, until: Option<Instant>) {
        alarm.set(until.map(|until| Alarm(self.clone(), until)));
    }
}

/// An alarm of requeue-embassy's clock, which owns it.
#[derive(Debug)]
pub struct Alarm(Hand, Instant);

impl Future for Alarm {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut alarm = pin!(None);
        let clock = &*self.0.0;
        clock.set_alarm(alarm.as_mut(), Some(self.1));
        match alarm.as_pin_mut() {
            Some(alarm) => alarm.poll(context),
            None => Poll::Pending,
        }
    }
}
