//! A clock of microcontrollers for each schedule.

use std::cell::RefCell;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use requeue_embassy::ManualClock;
use requeue_embassy::binding::Timer;
use requeue_interrupts::Interruptible;
use requeue_std::Instant;
use requeue_std::binding::Clock;

/// The clock of one schedule: with it go the wakers of the tasks that have waited for it.
#[derive(Clone, Debug)]
pub struct Hand(Arc<ManualClock<Interruptible>>);

thread_local! {
    static HAND: RefCell<Option<Hand>> = const { RefCell::new(None) };
}

impl Hand {
    /// The clock of the next schedule.
    pub(crate) fn new() -> Self {
        let hand = Self(Arc::new(ManualClock::new()));
        HAND.set(Some(hand.clone()));
        hand
    }

    /// Moves the clock of this schedule.
    pub(crate) fn advance(by: Duration) {
        let hand = HAND.with_borrow(Option::clone);
        hand.into_iter().for_each(|hand| hand.0.advance(by));
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
