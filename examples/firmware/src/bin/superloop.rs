//! The queue in a bare loop: no Embassy, no executor, no task.
//!
//! The state machine of `requeue-core` takes the time as an argument and never blocks. So a
//! critical section, a clock and `wfi` are all that a program needs. An interrupt adds keys; the
//! loop works on them, and sleeps until the next interrupt or the next deadline.

#![no_std]
#![no_main]

use core::cell::RefCell;
use core::time::Duration;

use critical_section::Mutex;
use requeue_core::binding::Work;
use requeue_core::{Action, Fixed, Instant, ItemExponentialFailure, Queue, default_item_based};
use requeue_firmware::{arch, board, end, handler, println};

/// Room for eight keys.
type Keys = Queue<u16, Fixed<8>, ItemExponentialFailure>;

static QUEUE: Mutex<RefCell<Keys>> = Mutex::new(RefCell::new(Keys::new(default_item_based())));

/// Runs `work` on the queue with interrupts off. No call waits inside this queue, so the wakes that
/// its operations ask for are always `None`.
fn with<T>(work: impl FnOnce(&mut Keys, Instant) -> T) -> T {
    critical_section::with(|section| work(&mut QUEUE.borrow_ref_mut(section), now()))
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
    let finished = with(|session| session.finish(work.ticket, action));
    finished.expect("nothing else ends this run");
}

/// Sleeps until an interrupt, and no longer than until the next deadline.
///
/// It looks at the queue again with interrupts off: a key that an interrupt has added since the
/// last look must not be slept through. `wfi` returns for an interrupt that is held off, too.
fn sleep() {
    critical_section::with(|_| {
        let due = with(|queue, now| match queue.at(now).is_empty() {
            true => Some(queue.next_deadline()),
            false => None,
        });
        if let Some(due) = due {
            board::set_alarm(due.map_or(u64::MAX, ticks_until));
            arch::wait_for_interrupt();
        }
    });
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

#[riscv_rt::entry]
fn main() -> ! {
    board::start();
    handler::set(on_interrupt);
    let added = with(|session| session.add_after(18, Duration::from_millis(5)));
    added.expect("room for eight keys");
    board::pend(board::LINES[0]);
    board::pend(board::LINES[0]);

    let mut seen = [(0, 0); RUNS];
    for seen in &mut seen {
        let work = loop {
            match with(|session| session.try_get()) {
                Some(work) => break work,
                None => sleep(),
            }
        };
        *seen = (work.key, now().as_nanos() / 1_000_000);
        run(work);
    }
    println!("superloop: key and millisecond of each run: {seen:?}");
    // Two interrupts make one run; nothing is early.
    end(seen == [(17, 0), (18, 5), (18, 6), (18, 8), (18, 12), (18, 20)])
}
