//! The queue in a bare loop: no Embassy, no executor, no task.
//!
//! An interrupt adds keys. The loop works on them, and sleeps until the next interrupt or the next
//! deadline.

#![no_std]
#![no_main]

use core::time::Duration;

use portable_atomic::{AtomicU32, Ordering};
use requeue_bare::binding::Clock;
use requeue_bare::limiter::default_item_based;
use requeue_bare::priority::WithPolicy;
use requeue_bare::{Action, Board, Instant, Policy, Queue, WorkQueue};
use requeue_firmware::{arch, board, end, handler, println};

/// The machine's timer, of 10 MHz, and its alarm.
struct Virt;

const NANOS_PER_TICK: u64 = 100;

impl Clock for Virt {
    fn now(&self) -> Instant {
        Instant::from_nanos(board::time() * NANOS_PER_TICK)
    }
}

impl Board for Virt {
    fn arm(&self, at: Option<Instant>) {
        // The first tick that is not early.
        board::set_alarm(at.map_or(u64::MAX, |at| at.as_nanos().div_ceil(NANOS_PER_TICK)));
    }

    fn idle(&self) {
        SLEEPS.fetch_add(1, Ordering::Relaxed);
        arch::wait_for_interrupt();
    }
}

static SLEEPS: AtomicU32 = AtomicU32::new(0);

/// Room for eight keys. The sensors share a bus that allows 500 runs a second, one at a time.
static SENSORS: WorkQueue<Virt, u16, 8, WithPolicy> = WorkQueue::from_queue(
    Queue::new(default_item_based()).with_policy(Policy::new().run_rate(500.0, 1)),
    Virt,
);

fn on_interrupt(_line: u16) {
    // A full queue would return the key as an error; here there is room for every key.
    let _ = SENSORS.add(17);
}

/// Sensor 17 is read. Sensor 18 does not answer, and is retried after 1 ms, 2 ms, 4 ms and so on.
fn reconcile(key: u16) -> Action {
    match key {
        17 => Action::Success,
        _ => Action::Retry,
    }
}

const RUNS: usize = 6;
/// One for each deadline of sensor 18, of which there are five, and one for a token of the bus.
const SLEEPS_EXPECTED: u32 = 6;

#[riscv_rt::entry]
fn main() -> ! {
    board::start();
    handler::set(on_interrupt);
    let added = SENSORS.add_after(18, Duration::from_millis(5));
    added.expect("room for eight keys");
    board::pend(board::LINES[0]);
    board::pend(board::LINES[0]);

    let mut seen = [(0, 0); RUNS];
    let mut runs = 0;
    let ended = SENSORS.run(|&key| {
        seen[runs] = (key, Virt.now().as_nanos() / 1_000_000);
        runs += 1;
        if runs == RUNS {
            // A real loop never ends.
            SENSORS.shut_down();
        }
        reconcile(key)
    });
    let sleeps = SLEEPS.load(Ordering::Relaxed);
    println!("superloop: key and millisecond of each run: {seen:?}; {sleeps} sleeps");
    // Two interrupts make one run. Nothing is early, and the first retry waits for its token too.
    let on_time = seen == [(17, 0), (18, 5), (18, 7), (18, 9), (18, 13), (18, 21)];
    end(ended.is_ok() && on_time && sleeps == SLEEPS_EXPECTED)
}
