//! A clock that is moved by hand, with timers that ring.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use requeue_core::Instant;
use requeue_core::binding::{Clock, Timer};

/// A clock for tests: it stands still until it is moved, and rings its timers then. Clones show the
/// same time, and may be on other threads.
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
pub struct HandClock(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    now: Instant,
    /// Who is to be woken, by time and number.
    timers: BTreeMap<(Instant, u64), Waker>,
    /// Numbers the timers.
    next: u64,
}

impl HandClock {
    /// Creates a clock that stands at its epoch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Moves the clock forward, to [`Instant::NEVER`] at most, and wakes those whose time has come,
    /// in the order of their times.
    pub fn advance(&self, by: Duration) {
        let mut state = self.state();
        state.now = state.now + by;
        let now = (state.now, u64::MAX);
        let mut rung = Vec::new();
        while let Some(timer) = state.timers.first_entry().filter(|it| *it.key() <= now) {
            rung.push(timer.remove());
        }
        drop(state);
        rung.into_iter().for_each(Waker::wake);
    }

    /// Returns a timer for an instant. It is set as long as it has been polled and is not dropped.
    pub fn sleep_until(&self, due: Instant) -> Sleep {
        let mut state = self.state();
        state.next += 1;
        let (clock, number) = (self.clone(), state.next);
        Sleep { clock, due, number }
    }

    /// Returns when the first of the timers that are set is due.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        let state = self.state();
        state.timers.first_key_value().map(|((due, _), _)| *due)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for HandClock {
    fn now(&self) -> Instant {
        self.state().now
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
    number: u64,
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.clock.state();
        if state.now >= self.due {
            return Poll::Ready(());
        }
        let timer = (self.due, self.number);
        let before = state.timers.insert(timer, context.waker().clone());
        // A waker is foreign code, which may use this clock.
        drop(state);
        drop(before);
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        let timer = (self.due, self.number);
        let removed = self.clock.state().timers.remove(&timer);
        drop(removed);
    }
}
