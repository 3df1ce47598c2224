//! The contract of a runtime's timer, as a test.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use requeue_core::Instant;
use requeue_core::binding::Timer;

/// Holds a runtime's [`Timer`] against its contract: an alarm rings when its time has come, and
/// wakes the task that polled it last; also if it was set again for an earlier or a later time, if
/// another alarm rings before it, and if its time comes before it is polled. A cleared alarm does
/// not ring. Early rings are allowed.
///
/// The suite drives a queue on a clock of its own, and does not exercise that of the runtime. Call
/// this in a test, with the runtime's timer and with what moves its time.
///
/// # Panics
///
/// If the contract is broken, with what was done. If `advance` does not move the clock.
///
/// # Examples
///
/// ```
/// use requeue_proptest::conformance::timer_contract;
/// use requeue_proptest::subject::HandClock;
///
/// let clock = HandClock::new();
/// timer_contract(&clock, |by| clock.advance(by));
/// ```
pub fn timer_contract<T: Timer>(timer: &T, advance: impl FnMut(Duration)) {
    let mut time = Time { timer, advance };

    let mut alarm = Alarm::new("an alarm", timer);
    alarm.set(time.in_secs(3));
    time.pass(2, &mut [&mut alarm]);
    time.pass(1, &mut [&mut alarm]);
    alarm.has_rung();

    alarm.what = "an alarm that was set again for an earlier time";
    alarm.set(time.in_secs(50));
    alarm.set(time.in_secs(10));
    time.pass(10, &mut [&mut alarm]);
    alarm.has_rung();

    alarm.what = "an alarm that was set again for a later time";
    alarm.set(time.in_secs(10));
    alarm.set(time.in_secs(50));
    time.pass(10, &mut [&mut alarm]);
    time.pass(40, &mut [&mut alarm]);
    alarm.has_rung();

    alarm.what = "an alarm that was cleared";
    alarm.set(time.in_secs(10));
    alarm.clear();
    time.pass(20, &mut [&mut alarm]);
    alarm.what = "an alarm that was set again after it was cleared";
    alarm.set(time.in_secs(10));
    time.pass(10, &mut [&mut alarm]);
    alarm.has_rung();

    alarm.what = "an alarm that another task has polled last";
    alarm.set(time.in_secs(10));
    alarm.moves_to_another_task();
    time.pass(10, &mut [&mut alarm]);
    alarm.has_rung();

    let mut second = Alarm::new("the second of two alarms", timer);
    alarm.what = "the first of two alarms";
    second.set(time.in_secs(20));
    alarm.set(time.in_secs(10));
    time.pass(10, &mut [&mut alarm, &mut second]);
    alarm.has_rung();
    time.pass(10, &mut [&mut alarm, &mut second]);
    second.has_rung();

    alarm.what = "an alarm whose time came before it was polled";
    alarm.set_unpolled(time.in_secs(10));
    time.pass(10, &mut []);
    alarm.poll();
    alarm.runs_if_woken();
    alarm.has_rung();
}

/// A timer, and what moves its time.
struct Time<'a, T, F> {
    timer: &'a T,
    advance: F,
}

impl<T: Timer, F: FnMut(Duration)> Time<'_, T, F> {
    fn in_secs(&self, secs: u64) -> Instant {
        self.timer.now() + Duration::from_secs(secs)
    }

    /// Moves the time, and lets those run that are woken.
    fn pass(&mut self, secs: u64, alarms: &mut [&mut Alarm<'_, T>]) {
        let until = self.in_secs(secs);
        (self.advance)(Duration::from_secs(secs));
        let now = self.timer.now();
        assert!(now >= until, "the clock shows {now} and not {until}");
        for alarm in alarms {
            alarm.runs_if_woken();
        }
    }
}

/// A task that waits for an alarm.
struct Alarm<'a, T: Timer> {
    what: &'static str,
    timer: &'a T,
    alarm: Pin<Box<Option<T::Alarm>>>,
    /// When it should ring, until it has.
    until: Option<Instant>,
    woken: Arc<Woken>,
}

/// How often an alarm may ring early, one time after another.
const EARLY_MAX: usize = 1000;

impl<'a, T: Timer> Alarm<'a, T> {
    fn new(what: &'static str, timer: &'a T) -> Self {
        Self {
            what,
            timer,
            alarm: Box::pin(None),
            until: None,
            woken: Arc::default(),
        }
    }

    fn set(&mut self, until: Instant) {
        self.set_unpolled(until);
        self.poll();
    }

    fn set_unpolled(&mut self, until: Instant) {
        self.until = Some(until);
        self.timer.set_alarm(self.alarm.as_mut(), self.until);
    }

    fn clear(&mut self) {
        self.until = None;
        self.timer.set_alarm(self.alarm.as_mut(), None);
    }

    fn moves_to_another_task(&mut self) {
        self.woken = Arc::default();
        self.poll();
    }

    /// As a call that waits does: sets the alarm again if it rings early.
    fn poll(&mut self) {
        let waker = Waker::from(Arc::clone(&self.woken));
        let mut context = Context::from_waker(&waker);
        for _ in 0..EARLY_MAX {
            let Some(set) = self.alarm.as_mut().as_pin_mut() else {
                return;
            };
            if set.poll(&mut context) == Poll::Pending {
                return;
            }
            assert!(self.until.is_some(), "{} rings", self.what);
            self.alarm.set(None);
            self.until = self.until.filter(|until| self.timer.now() < *until);
            self.timer.set_alarm(self.alarm.as_mut(), self.until);
        }
        assert!(self.until.is_none(), "{} rings early for ever", self.what);
    }

    fn runs_if_woken(&mut self) {
        for _ in 0..EARLY_MAX {
            if !self.woken.0.swap(false, Ordering::Relaxed) {
                return;
            }
            self.poll();
        }
    }

    fn has_rung(&self) {
        assert!(
            self.until.is_none(),
            "{} does not wake its task when its time has come",
            self.what
        );
    }
}

#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}
