//! Our timers, and wrong ones, held against the contract of timers.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use requeue_core::Instant;
use requeue_core::binding::{Clock, Timer};
use requeue_embassy::raw::NoopRawMutex;
use requeue_embassy::{ManualClock, QueueClock};
use requeue_proptest::conformance::timer_contract;
use requeue_proptest::guarded;
use requeue_proptest::subject::{HandClock, Sleep};
use requeue_tokio::QueueClock as TokioClock;

#[test]
fn the_clock_of_tests_keeps_the_contract() {
    let clock = HandClock::new();
    timer_contract(&clock, Duration::ZERO, |by| clock.advance(by));
}

#[test]
fn that_of_tokio_keeps_it() {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_time().start_paused(true).build().unwrap();
    let _inside = runtime.enter();
    timer_contract(&TokioClock::new(), Duration::ZERO, |by| {
        runtime.block_on(tokio::time::advance(by));
    });
}

#[test]
fn that_of_embassy_keeps_it() {
    timer_contract(&QueueClock, Duration::ZERO, |by| {
        let secs = embassy_time::Duration::from_secs(by.as_secs());
        embassy_time::MockDriver::get().advance(secs);
    });
}

#[test]
fn that_of_embassy_for_tests_keeps_it() {
    let clock = ManualClock::<NoopRawMutex>::new();
    timer_contract(&&clock, Duration::ZERO, |by| clock.advance(by));
}

/// How late the alarms of a real timer ring here.
const LATE: Duration = Duration::from_millis(10);

#[derive(Clone, Copy, PartialEq)]
enum Habit {
    /// No fault, if the slack allows it.
    RingsLate,
    NeverRings,
    RingsAtTheFirstTimeOnly,
    RingsEarlyForEver,
    KeepsTheOldAlarm,
    IsNotCleared,
    WakesTheFirstTask,
}

/// A timer with a habit.
struct Odd(HandClock, Habit);

struct OddAlarm {
    sleep: Sleep,
    habit: Habit,
    /// The task that polled it first.
    first: Option<Waker>,
}

impl Clock for Odd {
    fn now(&self) -> Instant {
        self.0.now()
    }
}

impl Timer for Odd {
    type Alarm = OddAlarm;

    fn set_alarm(&self, mut alarm: Pin<&mut Option<OddAlarm>>, until: Option<Instant>) {
        let is_set = alarm.is_some();
        let rings_at = |due| match self.1 {
            Habit::RingsLate => due + LATE,
            Habit::NeverRings => Instant::NEVER,
            Habit::RingsAtTheFirstTimeOnly if is_set => Instant::NEVER,
            Habit::RingsEarlyForEver => Instant::EPOCH,
            _ => due,
        };
        match (self.1, until) {
            (Habit::KeepsTheOldAlarm, Some(_)) if is_set => {}
            (Habit::IsNotCleared, None) => {}
            _ => alarm.set(until.map(|due| OddAlarm {
                sleep: self.0.sleep_until(rings_at(due)),
                habit: self.1,
                first: None,
            })),
        }
    }
}

impl Future for OddAlarm {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut waker = context.waker().clone();
        if self.habit == Habit::WakesTheFirstTask {
            waker = self.first.get_or_insert(waker).clone();
        }
        Pin::new(&mut self.sleep).poll(&mut Context::from_waker(&waker))
    }
}

/// Returns how long the contract took to try.
fn held(habit: Habit, slack: Duration) -> Result<Duration, String> {
    let clock = HandClock::new();
    let timer = Odd(clock.clone(), habit);
    guarded(|| timer_contract(&timer, slack, |by| clock.advance(by)))?;
    Ok(clock.now().saturating_since(Instant::EPOCH))
}

#[test]
fn alarms_may_ring_late_within_the_slack() {
    let took = held(Habit::RingsLate, LATE).unwrap();
    assert!(took <= 70 * LATE, "a real timer would take {took:?}");
}

#[test]
fn each_fault_of_a_timer_is_found() {
    let faults = [
        (Habit::NeverRings, "an alarm does not wake"),
        (Habit::KeepsTheOldAlarm, "an earlier time does not wake"),
        (Habit::RingsAtTheFirstTimeOnly, "an earlier time does not"),
        (Habit::IsNotCleared, "an alarm that was cleared rings"),
        (Habit::WakesTheFirstTask, "has polled last does not wake"),
        (Habit::RingsEarlyForEver, "an alarm rings early for ever"),
    ];
    let late = (Habit::RingsLate, "an alarm does not wake its task");
    let within = |slack| faults.iter().map(move |fault| (slack, fault));
    let too_late = [Duration::ZERO, LATE / 2].map(|slack| (slack, &late));
    let tried = within(Duration::ZERO).chain(within(LATE)).chain(too_late);
    for (slack, (habit, message)) in tried {
        let found = held(*habit, slack).unwrap_err();
        assert!(found.contains(message), "{message}: {found}");
    }
}
