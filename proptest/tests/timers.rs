//! Our timers, and wrong ones, held against the contract of timers.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Context;
use std::time::Duration;

use requeue_core::Instant;
use requeue_core::binding::{Clock, Timer};
use requeue_embassy::raw::NoopRawMutex;
use requeue_embassy::{ManualClock, QueueClock};
use requeue_proptest::conformance::timer_contract;
use requeue_proptest::guarded;
use requeue_proptest::subject::HandClock;
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

impl Clock for Odd {
    fn now(&self) -> Instant {
        self.0.now()
    }
}

impl Timer for Odd {
    type Alarm = Pin<Box<dyn Future<Output = ()>>>;

    fn set_alarm(&self, mut alarm: Pin<&mut Option<Self::Alarm>>, until: Option<Instant>) {
        let (habit, is_set) = (self.1, alarm.is_some());
        let rings_at = |due| match habit {
            Habit::RingsLate => due + LATE,
            Habit::NeverRings => Instant::NEVER,
            Habit::RingsAtTheFirstTimeOnly if is_set => Instant::NEVER,
            Habit::RingsEarlyForEver => Instant::EPOCH,
            _ => due,
        };
        let ring = |due| {
            let mut sleep = self.0.sleep_until(rings_at(due));
            let mut first = None;
            let poll = move |context: &mut Context<'_>| {
                let waker = match habit {
                    Habit::WakesTheFirstTask => first.get_or_insert(context.waker().clone()),
                    _ => context.waker(),
                };
                Pin::new(&mut sleep).poll(&mut Context::from_waker(waker))
            };
            Box::pin(poll_fn(poll)) as Self::Alarm
        };
        match (habit, until) {
            (Habit::KeepsTheOldAlarm, Some(_)) if is_set => {}
            (Habit::IsNotCleared, None) => {}
            _ => alarm.set(until.map(ring)),
        }
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
