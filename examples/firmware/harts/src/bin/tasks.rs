//! The same storm on an Embassy executor for each hart.

#![no_std]
#![no_main]

#[path = "../board.rs"]
mod board;
#[path = "../edges.rs"]
mod edges;
#[path = "../ledger.rs"]
mod ledger;
#[path = "../section.rs"]
mod section;

use core::cell::RefCell;
use core::sync::atomic::{AtomicBool, Ordering::SeqCst};
use core::task::Waker;
use core::time::Duration;

use critical_section::{CriticalSection, Mutex};
use embassy_executor::raw::Executor;
use embassy_futures::yield_now;
use embassy_time::Timer;
use embassy_time_driver::Driver;
use ledger::{From, KEYS, noise};
use requeue_embassy::limiter::Exponential;
use requeue_embassy::priority::Plain;
use requeue_embassy::raw::CriticalSectionRawMutex;
use requeue_embassy::{Action, WorkQueue};
use riscv::interrupt::Interrupt;
use riscv_rt::core_interrupt;
use static_cell::StaticCell;

const BACKOFF: Exponential = Exponential::new(Duration::from_micros(50), Duration::from_millis(2));

/// Two workers and one call that waits for the end, on each hart.
static QUEUE: WorkQueue<CriticalSectionRawMutex, u8, KEYS, Plain, Exponential, 6> =
    WorkQueue::new(BACKOFF);

fn add(key: u8) {
    QUEUE.add(key).expect("room for every key");
}

/// One clock for both harts. Its alarm is hart 0's.
struct Ticks(Mutex<RefCell<embassy_time_queue_utils::Queue>>);

embassy_time_driver::time_driver_impl!(static TICKS: Ticks =
    Ticks(Mutex::new(RefCell::new(embassy_time_queue_utils::Queue::new()))));

impl Ticks {
    fn attend(&self, section: CriticalSection<'_>) {
        let mut tasks = self.0.borrow_ref_mut(section);
        // A time that has passed meanwhile interrupts at once.
        edges::set_alarm(0, tasks.next_expiration(board::time()));
    }
}

impl Driver for Ticks {
    fn now(&self) -> u64 {
        board::time()
    }

    fn schedule_wake(&self, at: u64, waker: &Waker) {
        critical_section::with(|section| {
            let is_next = self.0.borrow_ref_mut(section).schedule_wake(at, waker);
            if is_next {
                self.attend(section);
            }
        });
    }
}

#[core_interrupt(Interrupt::MachineTimer)]
fn on_timer() {
    let (edge, alarm) = edges::take_rung();
    if alarm {
        critical_section::with(|section| TICKS.attend(section));
    }
    if edge {
        ledger::produce(From::Interrupt, add);
        if !ledger::is_over() {
            edges::set_edge(200 + u64::from(noise(From::Interrupt, 800)));
        }
    }
}

#[core_interrupt(Interrupt::MachineSoft)]
fn on_wake() {
    board::acknowledge();
}

/// A task of a hart was woken.
static IS_PENDING: [AtomicBool; 2] = [const { AtomicBool::new(true) }; 2];

/// Wakes the hart of an executor. embassy's own pender for RISC-V has one flag for all harts, and
/// interrupts none.
#[unsafe(export_name = "__pender")]
fn pend(context: *mut ()) {
    let hart = context as usize;
    if !IS_PENDING[hart].swap(true, SeqCst) && hart != board::hart() {
        board::interrupt(hart);
    }
}

#[embassy_executor::task(pool_size = 4)]
async fn worker() {
    let ended = QUEUE.run(async |key| {
        ledger::begin(*key);
        // The run takes more than one poll.
        yield_now().await;
        ledger::finish(*key);
        match noise(From::Loop, 16) {
            0 => Action::Retry,
            1 => Action::RequeueAfter(Duration::from_micros(300)),
            _ => Action::Success,
        }
    });
    ended.await.expect("a place for each worker");
}

#[embassy_executor::task(pool_size = 2)]
async fn producer() {
    while !ledger::is_over() {
        if ledger::is_busy() {
            for _ in 0..noise(From::Loop, 8) {
                ledger::produce(From::Loop, add);
            }
            yield_now().await;
        } else {
            Timer::after_micros(500).await;
        }
    }
    QUEUE
        .wait_settled()
        .await
        .expect("a place for each producer");
    if board::hart() == 0 {
        ledger::report("tasks");
    }
}

#[riscv_rt::entry]
fn main(hart: usize) -> ! {
    board::start();
    edges::set_edge(1000);
    static EXECUTORS: [StaticCell<Executor>; 2] = [const { StaticCell::new() }; 2];
    let executor: &'static Executor = EXECUTORS[hart].init(Executor::new(hart as *mut ()));
    let spawner = executor.spawner();
    for _ in 0..2 {
        spawner.spawn(worker().expect("the pool has four"));
    }
    spawner.spawn(producer().expect("the pool has two"));
    loop {
        // SAFETY: not from within itself, and from this hart alone.
        unsafe { executor.poll() };
        // embassy's own loop sleeps in a critical section, for whose end the other hart waits.
        board::masked(|| {
            if !IS_PENDING[hart].swap(false, SeqCst) {
                riscv::asm::wfi();
            }
        });
    }
}
