//! A storm on two harts: bare loops, and their interrupts, add keys and work on them.

#![no_std]
#![no_main]

#[path = "../board.rs"]
mod board;
#[path = "../edges.rs"]
mod edges;
#[path = "../harts.rs"]
mod harts;
#[path = "../ledger.rs"]
mod ledger;
#[path = "../section.rs"]
mod section;

use core::time::Duration;

use edges::set_alarm;
use ledger::{From, KEYS, noise};
use requeue_bare::limiter::Exponential;
use requeue_bare::priority::Plain;
use requeue_bare::{Action, WaitError, WorkQueue};
use riscv::interrupt::Interrupt;
use riscv_rt::core_interrupt;

const BACKOFF: Exponential = Exponential::new(Duration::from_micros(50), Duration::from_millis(2));

static QUEUE: WorkQueue<harts::Harts, u8, KEYS, Plain, Exponential, 2> =
    WorkQueue::new(BACKOFF, harts::Harts);

fn add(key: u8) {
    QUEUE.add(key).expect("room for every key");
}

#[core_interrupt(Interrupt::MachineTimer)]
fn on_timer() {
    let (edge, _) = edges::take_rung();
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

#[riscv_rt::entry]
fn main(hart: usize) -> ! {
    board::start();
    edges::set_edge(1000);
    loop {
        if ledger::is_busy() {
            for _ in 0..noise(From::Loop, 8) {
                ledger::produce(From::Loop, add);
            }
        }
        // Hart 0 looks for the end. Hart 1 relies on wakes alone once the storm is over.
        let next = match hart {
            1 if ledger::is_over() => QUEUE.get(),
            _ => QUEUE.get_timeout(Duration::from_micros(100)),
        };
        match next {
            Ok(guard) => {
                let key = *guard;
                ledger::begin(key);
                ledger::finish(key);
                let _ = guard.finish(match noise(From::Loop, 16) {
                    0 => Action::Retry,
                    1 => Action::RequeueAfter(Duration::from_micros(300)),
                    _ => Action::Success,
                });
            }
            Err(WaitError::TimedOut) => {}
            Err(why) => panic!("{why}"),
        }
        if hart == 0 && ledger::is_over() && QUEUE.is_settled() {
            ledger::report("loops");
        }
    }
}
