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

/// As a real timer: each alarm rings a while after its time.
struct Late(HandClock);

const LATE: Duration = Duration::from_millis(10);

impl Clock for Late {
    fn now(&self) -> Instant {
        self.0.now()
    }
}

impl Timer for Late {
    type Alarm = Sleep;

    fn set_alarm(&self, alarm: Pin<&mut Option<Sleep>>, until: Option<Instant>) {
        self.0.set_alarm(alarm, until.map(|due| due + LATE));
    }
}

#[test]
fn alarms_may_ring_late_within_the_slack() {
    let hold = |slack| {
        let clock = HandClock::new();
        let timer = Late(clock.clone());
        guarded(|| timer_contract(&timer, slack, |by| clock.advance(by))).map(|()| clock.now())
    };
    let took = hold(LATE).unwrap().saturating_since(Instant::EPOCH);
    assert!(took <= 70 * LATE, "a real timer would take {took:?}");
    for slack in [Duration::ZERO, LATE / 2] {
        let late = hold(slack).map(|_| "it was not found").unwrap_err();
        assert!(late.contains("an alarm does not wake its task"), "{late}");
    }
}

// ---- Wrong ones. ----

#[derive(Clone, Copy, PartialEq)]
enum Fault {
    NeverRings,
    KeepsTheOldAlarm,
    RingsAtTheFirstTimeOnly,
    IsNotCleared,
    WakesTheFirstTask,
    RingsEarlyForEver,
}

/// A timer with a fault.
struct Faulty(HandClock, Fault);

struct FaultyAlarm {
    sleep: Sleep,
    fault: Fault,
    first: Option<Waker>,
    has_rung: bool,
}

impl Clock for Faulty {
    fn now(&self) -> Instant {
        self.0.now()
    }
}

impl Timer for Faulty {
    type Alarm = FaultyAlarm;

    fn set_alarm(&self, mut alarm: Pin<&mut Option<FaultyAlarm>>, until: Option<Instant>) {
        let keeps = match self.1 {
            Fault::KeepsTheOldAlarm => until.is_some() && alarm.is_some(),
            Fault::IsNotCleared => until.is_none(),
            _ => false,
        };
        if keeps {
            return;
        }
        let is_again = alarm.is_some();
        alarm.set(until.map(|due| FaultyAlarm {
            sleep: self.0.sleep_until(due),
            fault: self.1,
            first: None,
            has_rung: is_again && self.1 == Fault::RingsAtTheFirstTimeOnly,
        }));
    }
}

impl Future for FaultyAlarm {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        match self.fault {
            Fault::NeverRings => return Poll::Pending,
            Fault::RingsEarlyForEver => return Poll::Ready(()),
            _ if self.has_rung => return Poll::Pending,
            _ => {}
        }
        let waker = match self.fault {
            Fault::WakesTheFirstTask => self.first.get_or_insert(context.waker().clone()),
            _ => context.waker(),
        };
        let waker = waker.clone();
        Pin::new(&mut self.sleep).poll(&mut Context::from_waker(&waker))
    }
}

#[test]
fn each_fault_of_a_timer_is_found() {
    let faults = [
        (Fault::NeverRings, "an alarm does not wake"),
        (Fault::KeepsTheOldAlarm, "an earlier time does not wake"),
        (Fault::RingsAtTheFirstTimeOnly, "an earlier time does not"),
        (Fault::IsNotCleared, "an alarm that was cleared rings"),
        (Fault::WakesTheFirstTask, "has polled last does not wake"),
        (Fault::RingsEarlyForEver, "an alarm rings early for ever"),
    ];
    for slack in [Duration::ZERO, LATE] {
        for (fault, message) in faults {
            let clock = HandClock::new();
            let timer = Faulty(clock.clone(), fault);
            let found = guarded(|| timer_contract(&timer, slack, |by| clock.advance(by)));
            let found = found.map(|()| "it was not found").unwrap_err();
            assert!(found.contains(message), "{message}: {found}");
        }
    }
}
