//! The queue in a bare loop: no Embassy, no executor, no task.
//!
//! The state machine of `requeue-core` takes the time as an argument and never blocks. So a
//! critical section, a clock and `wfi` are all that a program needs. An interrupt adds keys. The
//! loop works on them, and sleeps until the next interrupt or for as long as `poll_get` says.

#![no_std]
#![no_main]

use core::cell::RefCell;
use core::time::Duration;

use critical_section::Mutex;
use portable_atomic::{AtomicU32, Ordering};
use requeue_core::binding::{Getter, Next, Work};
use requeue_core::limiter::{DefaultItemBased, default_item_based};
use requeue_core::priority::WithPolicy;
use requeue_core::storage::Fixed;
use requeue_core::{Action, Instant, Policy, Queue, Session};
use requeue_firmware::{arch, board, end, handler, println};

/// Room for eight keys. The sensors share a bus that allows 500 runs a second, one at a time.
type Keys = Queue<u16, WithPolicy, DefaultItemBased, Fixed<8>>;

const POLICY: Policy = Policy::new().run_rate(500.0, 1);

static QUEUE: Mutex<RefCell<Keys>> = Mutex::new(RefCell::new(
    Keys::new(default_item_based()).with_policy(POLICY),
));

/// How often the loop has looked at the queue.
static LOOKS: AtomicU32 = AtomicU32::new(0);

/// Runs `work` on the queue with interrupts off. You may ignore the wakes that its operations ask
/// for: the loop looks again after every interrupt.
fn with<T>(
    work: impl FnOnce(&mut Session<'_, u16, WithPolicy, DefaultItemBased, Fixed<8>>) -> T,
) -> T {
    critical_section::with(|section| work(&mut QUEUE.borrow_ref_mut(section).at(now())))
}

fn on_interrupt(_line: u16) {
    // A full queue would return the key as an error; here there is room for every key.
    let _ = with(|session| session.add(17));
}

/// Sensor 17 is read. Sensor 18 does not answer, and is retried after 1 ms, 2 ms, 4 ms and so on.
fn reconcile(key: u16) -> Action {
    match key {
        17 => Action::Success,
        _ => Action::Retry,
    }
}

fn run(work: Work<u16>) {
    let action = reconcile(work.key);
    with(|session| session.finish(work.ticket, action));
}

/// Returns the next key. Sleeps while there is none that may run.
///
/// The queue knows how long to sleep. A loop that asks whether the queue is empty never sleeps
/// beside a ready key that has to wait for a token, for another run of its group or for the end of
/// a pause.
fn next(getter: &mut Getter) -> Option<Work<u16>> {
    loop {
        // With interrupts off, so that none adds a key between the look and the sleep. `wfi` also
        // returns for an interrupt that is held off. It is served between two looks.
        let next = critical_section::with(|_| {
            LOOKS.fetch_add(1, Ordering::Relaxed);
            let next = with(|session| session.poll_get(getter));
            if let Next::Wait { until } = next {
                board::set_alarm(until.map_or(u64::MAX, ticks_until));
                arch::wait_for_interrupt();
            }
            next
        });
        match next {
            Next::Work(work) => return Some(work),
            Next::Wait { .. } => {}
            Next::Closed => return None,
        }
    }
}

/// The machine's timer, of 10 MHz.
fn now() -> Instant {
    Instant::from_nanos(board::time() * NANOS_PER_TICK)
}

/// The first tick that is not early.
fn ticks_until(due: Instant) -> u64 {
    due.as_nanos().div_ceil(NANOS_PER_TICK)
}

const NANOS_PER_TICK: u64 = 100;
const RUNS: usize = 6;
/// One look for each run, and one for each sleep: five until a deadline, one until a token.
const LOOKS_MAX: u32 = 12;

#[riscv_rt::entry]
fn main() -> ! {
    board::start();
    handler::set(on_interrupt);
    let added = with(|session| session.add_after(18, Duration::from_millis(5)));
    added.expect("room for eight keys");
    board::pend(board::LINES[0]);
    board::pend(board::LINES[0]);

    let mut seen = [(0, 0); RUNS];
    let mut getter = Getter::new();
    for seen in &mut seen {
        let work = next(&mut getter).expect("the queue is not shut down");
        *seen = (work.key, now().as_nanos() / 1_000_000);
        run(work);
    }
    let looks = LOOKS.load(Ordering::Relaxed);
    println!("superloop: key and millisecond of each run: {seen:?}; {looks} looks");
    // Two interrupts make one run. Nothing is early, and the first retry waits for its token too.
    let on_time = seen == [(17, 0), (18, 5), (18, 7), (18, 9), (18, 13), (18, 21)];
    end(on_time && looks <= LOOKS_MAX)
}
