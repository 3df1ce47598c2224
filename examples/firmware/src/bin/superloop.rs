//! Bring your own runtime: the queue in a bare loop, without Embassy and without an executor.
//!
//! A runtime says three things: what time it is, how to be alone with the state, and how to wake
//! those who wait. Here an interrupt adds keys, and the loop sleeps until the next interrupt when
//! there is nothing to do.

#![no_std]
#![no_main]

use core::cell::RefCell;
use core::time::Duration;

use critical_section::Mutex;
use requeue_embassy::core::{
    Clock, Completion, Fixed, Getter, Instant, ItemExponentialFailure, Lock, Next, Queue, Waker,
    WorkQueue, default_item_based,
};
use requeue_firmware::{arch, board, end, handler, println};

type Keys = Queue<u16, Fixed<8>, ItemExponentialFailure>;

/// Interrupts are held off while somebody has the state.
struct Interrupts(Mutex<RefCell<Keys>>);

impl Lock for Interrupts {
    type State = Keys;

    fn with<R>(&self, work: impl FnOnce(&mut Keys) -> R) -> R {
        critical_section::with(|section| work(&mut self.0.borrow_ref_mut(section)))
    }
}

/// The machine's timer, of 10 MHz.
struct MachineTimer;

impl Clock for MachineTimer {
    fn now(&self) -> Instant {
        Instant::from_nanos(board::time() * 100)
    }
}

/// Whoever adds a key is an interrupt, and that ends the sleep by itself.
struct Woken;

impl Waker for Woken {
    fn wake_one(&self) {}
    fn wake_all(&self) {}
}

static QUEUE: WorkQueue<Interrupts, MachineTimer, Woken> = WorkQueue::from_parts(
    Interrupts(Mutex::new(RefCell::new(Keys::new(default_item_based())))),
    MachineTimer,
    Woken,
);

const RUNS: usize = 6;

#[riscv_rt::entry]
fn main() -> ! {
    board::start();
    handler::set(|_| {
        let _ = QUEUE.add(17);
    });
    QUEUE
        .add_after(18, Duration::from_millis(5))
        .expect("room for eight keys");
    board::pend(board::LINES[0]);
    board::pend(board::LINES[0]);

    let mut getter = Getter::new();
    let mut seen = [(0, 0); RUNS];
    let mut count = 0;
    while count < RUNS {
        match QUEUE.poll_get(&mut getter) {
            Next::Work(work) => {
                let millis = QUEUE.clock().now().as_nanos() / 1_000_000;
                seen[count] = (work.key, millis);
                count += 1;
                // Sensor 18 does not answer, and is asked again after 1 ms, 2 ms, 4 ms and so on.
                let completion = match work.key {
                    17 => Completion::Succeeded,
                    _ => Completion::Retry,
                };
                let finished = QUEUE.complete(work.ticket, completion);
                finished.expect("nobody else completes it");
            }
            Next::Wait { until } => sleep(until),
            Next::Closed => break,
        }
    }
    println!("superloop: key and millisecond of each run: {seen:?}");
    // Two interrupts make one run; nothing is early.
    end(seen == [(17, 0), (18, 5), (18, 6), (18, 8), (18, 12), (18, 20)])
}

/// Sleeps until an interrupt, at the latest until a deadline. A key that an interrupt has added
/// since the queue was looked at must not be slept through: hence the second look, with interrupts
/// off.
fn sleep(until: Option<Instant>) {
    let ticks = until.map_or(u64::MAX, |due| due.as_nanos().div_ceil(100));
    critical_section::with(|_| {
        let nothing_came = QUEUE
            .lock()
            .with(|queue| queue.is_empty(Instant::EPOCH).value);
        if nothing_came {
            board::set_alarm(ticks);
            arch::wait_for_interrupt();
        }
    });
}
