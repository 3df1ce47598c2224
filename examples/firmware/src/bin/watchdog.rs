//! A watchdog that is fed only while the queue keeps up, and three boards that do not.
//!
//! A key runs every 100 ms and feeds it, if [`is_within`](WorkQueue::is_within) says so. That notices
//!
//! - a run that hangs while other workers go on: it lasts too long,
//! - a clock that stops: the key is never due,
//! - a sleep from which no timer wakes the processor: the key is late.
//!
//! A real watchdog resets the board. This one counts, and mends what it can.

#![no_std]
#![no_main]

use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;

use cortex_m_rt::exception;
use embassy_executor::Spawner;
use embassy_sync::blocking_mutex::raw::CriticalSectionRawMutex;
use embassy_sync::signal::Signal;
use embassy_time::Timer;
use requeue_embassy::limiter::{Exponential, default_item_based};
use requeue_embassy::metrics::Times;
use requeue_embassy::priority::Plain;
use requeue_embassy::{Action, Queue, QueueClock, WorkQueue};
use requeue_firmware::{arch, board, end, executor, handler, println, write};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Job {
    /// Feeds the watchdog.
    Feed,
    /// Hangs until the board is reset.
    Transfer,
}

/// `Times` are what `is_within` looks at: 24 bytes a key.
type Jobs = WorkQueue<CriticalSectionRawMutex, Job, 4, Plain, Exponential, 3, (Times,)>;

static JOBS: Jobs =
    WorkQueue::from_queue(Queue::with_metrics(default_item_based(), Times), QueueClock);

const FEED_EVERY: Duration = Duration::from_millis(100);
/// How long a job may wait for a worker.
const READY_MAX: Duration = Duration::from_millis(50);
/// How long a run may take.
const RUN_MAX: Duration = Duration::from_millis(200);

#[embassy_executor::task(pool_size = 2)]
async fn worker() {
    let ended = JOBS.run(async |job| match job {
        Job::Feed => {
            if JOBS.is_within(READY_MAX, RUN_MAX) {
                feed();
            }
            Action::RequeueAfter(FEED_EVERY)
        }
        Job::Transfer => {
            REPLY.wait().await;
            Action::Success
        }
    });
    ended.await.expect("a place for each worker");
}

/// The reply of a device that does not reply.
static REPLY: Signal<CriticalSectionRawMutex, ()> = Signal::new();

/// The watchdog of the board bites after 300 ms.
const WATCHDOG: usize = 0x4000_8000;
const LOAD: usize = 0x00;
const CONTROL: usize = 0x08;
const CLEAR: usize = 0x0C;
const TIMEOUT_CYCLES: u32 = board::CLOCK_HZ / 10 * 3;

/// The halves of the dual timer: the clock and the alarm of the time driver.
const CLOCK_CONTROL: usize = 0x4000_2008;
const CLOCK_ON: u32 = 0xA2;
const ALARM_CONTROL: usize = 0x4000_2028;
const DUAL_TIMER: u16 = 10;

static BITES: AtomicU32 = AtomicU32::new(0);

fn start_watchdog() {
    // SAFETY: the watchdog is this image's.
    unsafe {
        write(WATCHDOG + LOAD, TIMEOUT_CYCLES);
        write(WATCHDOG + CONTROL, 1);
    }
}

fn feed() {
    // SAFETY: as above.
    unsafe { write(WATCHDOG + CLEAR, 1) };
}

/// The watchdog bites. No critical section masks this, so it uses no queue.
#[exception]
unsafe fn NonMaskableInt() {
    feed();
    BITES.fetch_add(1, Ordering::Relaxed);
    arch::pend(board::LINES[0]);
}

/// Mends what is broken, in place of a reset.
fn on_interrupt(line: u16) {
    if line == board::LINES[0] {
        REPLY.signal(());
        // SAFETY: the driver uses the same setting.
        unsafe { write(CLOCK_CONTROL, CLOCK_ON) };
        arch::pend(DUAL_TIMER);
    } else {
        // The timer is lost in a deep sleep.
        // SAFETY: the driver sets the alarm again when it is attended to.
        unsafe { write(ALARM_CONTROL, 0) };
    }
}

#[embassy_executor::task]
async fn main() {
    JOBS.add(Job::Feed).expect("room for each job");
    start_watchdog();
    let mut bites = [0; 4];
    for (phase, count) in bites.iter_mut().enumerate() {
        let before = BITES.load(Ordering::Relaxed);
        match phase {
            0 => {}
            1 => JOBS.add(Job::Transfer).map(drop).expect("room"),
            // SAFETY: what breaks is the point.
            2 => unsafe { write(CLOCK_CONTROL, 0) },
            // 20 us from now, when all tasks wait.
            _ => board::bounce(1),
        }
        Timer::after_secs(1).await;
        *count = BITES.load(Ordering::Relaxed) - before;
    }
    println!("watchdog: bites {bites:?}: all is well, a run hangs, no clock, no alarm");
    end(bites == [0, 1, 1, 1]);
}

#[cortex_m_rt::entry]
fn entry() -> ! {
    board::start();
    handler::set(on_interrupt);
    executor::run(|spawner: Spawner| {
        for _ in 0..2 {
            spawner.spawn(worker().expect("the pool has two"));
        }
        spawner.spawn(main().expect("the pool has one"));
    })
}
