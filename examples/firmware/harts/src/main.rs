#![no_std]
#![no_main]

mod board;
mod harts;
mod section;

use core::time::Duration;

use board::set_alarm;
use harts::Harts;
use requeue_bare::limiter::Exponential;
use requeue_bare::priority::Plain;
use requeue_bare::{Action, WorkQueue};
use riscv_rt::core_interrupt;

/// What there is to do. A key is never on both harts at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Job {
    Read { sensor: u8 },
    Blink,
}

/// A job that fails is retried after 10 ms, 20 ms, 40 ms and so on, up to a minute.
const BACKOFF: Exponential = Exponential::new(Duration::from_millis(10), Duration::from_secs(60));

/// Two loops sleep: the last number.
static JOBS: WorkQueue<Harts, Job, 16, Plain, Exponential, 2> = WorkQueue::new(BACKOFF, Harts);

/// The alarm of this hart. Its loop looks at the queue again.
#[core_interrupt(riscv::interrupt::Interrupt::MachineTimer)]
fn on_alarm() {
    set_alarm(board::hart(), u64::MAX);
}

/// The other hart has added a key.
#[core_interrupt(riscv::interrupt::Interrupt::MachineSoft)]
fn on_wake() {
    board::acknowledge();
}

/// Both harts begin here.
#[riscv_rt::entry]
fn main(hart: usize) -> ! {
    board::start();
    if hart == 0 {
        let _ = JOBS.add_after(Job::Blink, Duration::from_millis(100));
        for _ in 0..10 {
            let _ = JOBS.add(Job::Read { sensor: 0 });
        }
    }
    let ended = JOBS.run(|job| match job {
        Job::Read { sensor } if JOBS.failures(job) < 3 => {
            println!("{} ms: sensor {sensor} does not reply", now());
            Err("no reply")
        }
        Job::Read { sensor } => {
            println!("{} ms: sensor {sensor} is read", now());
            Ok(Action::Success)
        }
        Job::Blink => {
            println!("{} ms: blink", now());
            Ok(Action::RequeueAfter(Duration::from_millis(100)))
        }
    });
    // Returns when the queue is shut down.
    ended.expect("the queue has a place for each hart");
    board::exit(true)
}

fn now() -> u64 {
    JOBS.now().as_nanos() / 1_000_000
}
