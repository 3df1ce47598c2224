//! A clock that is moved by hand, with timers that ring.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use requeue_core::Instant;
use requeue_core::binding::{Clock, Timer};

/// A clock for tests on one thread: it stands still until it is moved, and rings its timers then.
/// Clones show the same time.
///
/// # Examples
///
/// ```
/// use std::pin::pin;
/// use std::task::{Context, Waker};
/// use std::time::Duration;
/// use requeue_core::binding::Clock;
/// use requeue_core::Instant;
/// use requeue_proptest::subject::HandClock;
///
/// let clock = HandClock::new();
/// let second = Duration::from_secs(1);
/// let mut sleep = pin!(clock.sleep_until(Instant::EPOCH + second));
/// let mut context = Context::from_waker(Waker::noop());
/// assert!(sleep.as_mut().poll(&mut context).is_pending());
/// clock.advance(second);
/// assert!(sleep.as_mut().poll(&mut context).is_ready());
/// ```
#[derive(Clone, Debug, Default)]
pub struct HandClock(Rc<RefCell<State>>);

#[derive(Debug, Default)]
struct State {
    now: Instant,
    /// Who is to be woken, and when, by number.
    timers: BTreeMap<u64, (Instant, Waker)>,
    /// Numbers the timers.
    next: u64,
}

impl HandClock {
    /// A clock that stands at its epoch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Moves the clock forward, to [`Instant::NEVER`] at most, and wakes those whose time has come,
    /// in the order of their times.
    pub fn advance(&self, by: Duration) {
        for waker in self.ring(by) {
            waker.wake();
        }
    }

    /// A timer for an instant. It is set as long as it has been polled and is not dropped.
    pub fn sleep_until(&self, due: Instant) -> Sleep {
        Sleep {
            clock: self.clone(),
            due,
            number: None,
        }
    }

    fn ring(&self, by: Duration) -> Vec<Waker> {
        let mut state = self.0.borrow_mut();
        state.now = state.now + by;
        let now = state.now;
        let timers = state.timers.iter();
        let mut rung: Vec<_> = timers
            .filter(|(_, (due, _))| *due <= now)
            .map(|(number, (due, _))| (*due, *number))
            .collect();
        rung.sort_unstable();
        let timers = rung.into_iter().map(|(_, number)| number);
        timers
            .filter_map(|number| Some(state.timers.remove(&number)?.1))
            .collect()
    }
}

impl Clock for HandClock {
    fn now(&self) -> Instant {
        self.0.borrow().now
    }
}

impl Timer for HandClock {
    type Alarm = Sleep;

    fn set_alarm(&self, mut alarm: Pin<&mut Option<Sleep>>, until: Option<Instant>) {
        if alarm.as_ref().get_ref().as_ref().map(|sleep| sleep.due) != until {
            alarm.set(until.map(|due| self.sleep_until(due)));
        }
    }
}

/// Ends once its instant has come: see [`HandClock::sleep_until`].
#[derive(Debug)]
pub struct Sleep {
    clock: HandClock,
    due: Instant,
    number: Option<u64>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.clock.now() >= self.due {
            return Poll::Ready(());
        }
        let due = self.due;
        let clock = self.clock.clone();
        let mut state = clock.0.borrow_mut();
        let number = *self.number.get_or_insert_with(|| {
            state.next += 1;
            state.next
        });
        state.timers.insert(number, (due, context.waker().clone()));
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.clock.0.borrow_mut().timers.remove(&number);
        }
    }
}
