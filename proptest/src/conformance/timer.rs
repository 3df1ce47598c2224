//! The contract of a runtime's timer, as a test.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use requeue_core::Instant;
use requeue_core::binding::Timer;

use crate::bell::Bell;

/// Holds a runtime's [`Timer`] against its contract: an alarm fires when its time has come, and
/// wakes the task that polled it last; also if it was set again for an earlier or a later time, if
/// another alarm fires before it, and if its time comes before it is polled. A cleared alarm does
/// not fire. Early fires are allowed.
///
/// The suite drives a queue on a clock of its own, and does not exercise that of the runtime. Call
/// this in a test, with the runtime's timer and with what moves its time.
///
/// `slack` is how late an alarm may fire. Pass zero if the time is virtual. The alarms of a real
/// timer fire a little after their time, so it needs some slack, and its `advance` sleeps. The test
/// then takes about 70 times the slack.
///
/// # Panics
///
/// If the contract is broken, with what was done. If `advance` does not move the clock.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use requeue_proptest::conformance::timer_contract;
/// use requeue_proptest::subject::HandClock;
///
/// let clock = HandClock::new();
/// timer_contract(&clock, Duration::ZERO, |by| clock.advance(by));
/// ```
///
/// A real timer has some slack, and sleeps instead:
///
/// ```no_run
/// use std::time::Duration;
/// use requeue_proptest::conformance::timer_contract;
/// # let timer = requeue_proptest::subject::HandClock::new();
///
/// timer_contract(&timer, Duration::from_millis(50), std::thread::sleep);
/// ```
pub fn timer_contract<T: Timer>(timer: &T, slack: Duration, advance: impl FnMut(Duration)) {
    let unit = match slack {
        Duration::ZERO => Duration::from_secs(1),
        slack => slack.saturating_mul(SLACKS_PER_UNIT),
    };
    let mut time = Time {
        timer,
        slack,
        unit,
        advance,
    };

    let mut alarm = Alarm::new(timer);
    time.rings_at_last(&mut alarm, "an alarm", &[3]);
    let what = "an alarm that was set again for an earlier time";
    time.rings_at_last(&mut alarm, what, &[5, 1]);
    let what = "an alarm that was set again for a later time";
    time.rings_at_last(&mut alarm, what, &[1, 4]);

    alarm.set("an alarm that was cleared", time.after(1));
    alarm.watch(None);
    time.pass(2, &mut [&mut alarm]);
    let what = "an alarm that was set again after it was cleared";
    time.rings_at_last(&mut alarm, what, &[1]);

    alarm.set("an alarm that another task has polled last", time.after(1));
    alarm.task = Arc::default();
    alarm.poll();
    time.pass(1, &mut [&mut alarm]);
    time.has_rung(&mut alarm);

    let mut second = Alarm::new(timer);
    second.set("the second of two alarms", time.after(2));
    alarm.set("the first of two alarms", time.after(1));
    time.pass(1, &mut [&mut alarm, &mut second]);
    time.has_rung(&mut alarm);
    time.pass(1, &mut [&mut alarm, &mut second]);
    time.has_rung(&mut second);

    alarm.what = "an alarm whose time came before it was polled";
    alarm.watch(Some(time.after(1)));
    time.pass(1, &mut []);
    alarm.poll();
    alarm.run_if_woken();
    time.has_rung(&mut alarm);
}

/// How far alarms are apart, so that a late one does not pass for one that rings at a wrong time.
const SLACKS_PER_UNIT: u32 = 4;

/// How often an alarm may ring early, one time after another.
const EARLY_MAX: usize = 1000;

/// A timer, and what moves its time.
struct Time<'a, T, F> {
    timer: &'a T,
    slack: Duration,
    unit: Duration,
    advance: F,
}

impl<T: Timer, F: FnMut(Duration)> Time<'_, T, F> {
    fn after(&self, units: u32) -> Instant {
        self.timer.now() + self.unit.saturating_mul(units)
    }

    /// Moves the time, and lets the tasks run that are woken.
    fn pass(&mut self, units: u32, alarms: &mut [&mut Alarm<'_, T>]) {
        self.advance(self.unit.saturating_mul(units));
        alarms.iter_mut().for_each(|alarm| alarm.run_if_woken());
    }

    fn advance(&mut self, by: Duration) {
        let until = self.timer.now() + by;
        (self.advance)(by);
        let now = self.timer.now();
        assert!(now >= until, "the clock shows {now} and not {until}");
    }

    /// Sets an alarm for each of these times. It rings at the last.
    fn rings_at_last(&mut self, alarm: &mut Alarm<'_, T>, what: &'static str, times: &[u32]) {
        let mut last = 0;
        for units in times {
            alarm.set(what, self.after(*units));
            last = *units;
        }
        (0..last).for_each(|_| self.pass(1, &mut [&mut *alarm]));
        self.has_rung(alarm);
    }

    /// The time of an alarm has come.
    fn has_rung(&mut self, alarm: &mut Alarm<'_, T>) {
        if alarm.until.is_some() && !self.slack.is_zero() {
            self.advance(self.slack);
            alarm.run_if_woken();
        }
        assert!(
            alarm.until.is_none(),
            "{} does not wake its task within {:?} after its time has come",
            alarm.what,
            self.slack
        );
    }
}

/// A task that waits for an alarm.
struct Alarm<'a, T: Timer> {
    what: &'static str,
    timer: &'a T,
    alarm: Pin<Box<Option<T::Alarm>>>,
    /// When it should ring, until it has.
    until: Option<Instant>,
    task: Arc<Bell>,
}

impl<'a, T: Timer> Alarm<'a, T> {
    fn new(timer: &'a T) -> Self {
        Self {
            what: "",
            timer,
            alarm: Box::pin(None),
            until: None,
            task: Arc::default(),
        }
    }

    fn set(&mut self, what: &'static str, until: Instant) {
        self.what = what;
        self.watch(Some(until));
        self.poll();
    }

    /// Sets the alarm or clears it, and does not poll it.
    fn watch(&mut self, until: Option<Instant>) {
        self.until = until;
        self.timer.set_alarm(self.alarm.as_mut(), until);
    }

    /// As a call that waits does: sets the alarm again if it rings early.
    fn poll(&mut self) {
        let waker = Waker::from(Arc::clone(&self.task));
        let mut context = Context::from_waker(&waker);
        for _ in 0..EARLY_MAX {
            let set = self.alarm.as_mut().as_pin_mut();
            if set.is_none_or(|set| set.poll(&mut context).is_pending()) {
                return;
            }
            assert!(self.until.is_some(), "{} rings", self.what);
            self.alarm.set(None);
            self.watch(self.until.filter(|until| self.timer.now() < *until));
        }
        assert!(self.until.is_none(), "{} rings early for ever", self.what);
    }

    fn run_if_woken(&mut self) {
        for _ in 0..EARLY_MAX {
            if self.task.take() {
                self.poll();
            }
        }
    }
}
