//! The queue in a bare loop: no Embassy, no executor, no task.
//!
//! Interrupts add keys, and resume those that wait for them. The loop works on keys, and sleeps
//! until the next interrupt or the next deadline.

#![no_std]
#![no_main]

mod virt;

use core::time::Duration;

use portable_atomic::Ordering;
use requeue_bare::binding::Clock;
use requeue_bare::limiter::default_item_based;
use requeue_bare::priority::WithSuspension;
use requeue_bare::{Action, Policy, Queue, WorkQueue};
use requeue_firmware::{board, end, handler, println};

use virt::{LOOKS, SLEEPS, Virt};

/// Room for eight keys. The sensors share a bus that allows 500 runs a second, one at a time.
static SENSORS: WorkQueue<Virt, u16, 8, WithSuspension> = WorkQueue::from_queue(
    Queue::new(default_item_based()).with_policy(Policy::new().run_rate(500.0, 1)),
    Virt,
);

fn on_interrupt(_line: u16) {
    if !SENSORS.resume(&19) {
        // A full queue would return the key as an error; here there is room for every key.
        let _ = SENSORS.add(17);
    }
}

/// Sensor 17 is read. Sensor 18 does not answer, and is retried after 1 ms, 2 ms, 4 ms and so on.
/// Sensor 19 measures until the line is raised, which sensor 18 does when it is first read.
fn reconcile(key: u16, is_first: bool) -> Action {
    match (key, is_first) {
        (19, true) => return Action::Suspend(Duration::from_millis(100)),
        (18, true) => board::pend(board::LINES[0]),
        _ => {}
    }
    match key {
        18 => Action::Retry,
        _ => Action::Success,
    }
}

const RUNS: usize = 7;
/// One for each deadline of sensor 18, of which there are four, and one for each token of the bus
/// that is waited for, of which there are three.
const SLEEPS_EXPECTED: u32 = 7;
/// One before each sleep, one that finds each key, and one that finds the queue closed.
const LOOKS_EXPECTED: u32 = 15;

#[riscv_rt::entry]
fn main() -> ! {
    board::start();
    handler::set(on_interrupt);
    let added = SENSORS.add_after(18, Duration::from_millis(5));
    added.expect("room for eight keys");
    board::pend(board::LINES[0]);
    board::pend(board::LINES[0]);
    SENSORS.add(19).expect("room for eight keys");

    let mut seen = [(0, 0); RUNS];
    let mut runs = 0;
    let ended = SENSORS.run(|&key| {
        let is_first = seen.iter().all(|(other, _)| *other != key);
        seen[runs] = (key, Virt.now().as_nanos() / 1_000_000);
        runs += 1;
        if runs == RUNS {
            // A real loop never ends.
            SENSORS.shut_down();
        }
        reconcile(key, is_first)
    });
    let sleeps = SLEEPS.load(Ordering::Relaxed);
    let looks = LOOKS.load(Ordering::Relaxed);
    println!(
        "superloop: key and millisecond of each run: {seen:?}; {looks} looks, {sleeps} sleeps"
    );
    // Two interrupts make one run. Nothing is early, a resumed key runs before its timeout, and each
    // run waits for its token.
    let expected = [
        (17, 0),
        (19, 2),
        (18, 5),
        (19, 7),
        (18, 9),
        (18, 11),
        (18, 15),
    ];
    let on_time = seen == expected;
    end(ended.is_ok() && on_time && (looks, sleeps) == (LOOKS_EXPECTED, SLEEPS_EXPECTED))
}
