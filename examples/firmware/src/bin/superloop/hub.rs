//! Twenty periodic keys in a bare loop: how often the board wakes in an hour if each delay may be a
//! little longer, so that one wake serves several keys.

#![no_std]
#![no_main]

mod virt;

use core::time::Duration;

use portable_atomic::Ordering;
use requeue_bare::binding::Clock;
use requeue_bare::limiter::default_item_based;
use requeue_bare::priority::WithSlack;
use requeue_bare::{Action, Queue, WorkQueue};
use requeue_firmware::{board, end, println};

use virt::{SLEEPS, Virt};

/// A queue of a fixed size uses slack if its type has `WithSlack`.
type Hub = WorkQueue<Virt, u8, 20, WithSlack>;

/// The delay of each key, from 0.1 s to a minute, each 1.4 times the one before it.
const MILLIS: [u64; 20] = [
    100, 140, 196, 275, 384, 538, 754, 1056, 1478, 2070, 2899, 4059, 5684, 7959, 11144, 15605,
    21852, 30599, 42848, 60000,
];
const HOUR: Duration = Duration::from_secs(3600);

/// The wakes of an hour if each delay may be so many per cent longer.
fn wakes(percent: u8) -> u32 {
    let hub: Hub = WorkQueue::from_queue(Queue::new(default_item_based()), Virt);
    let _ = hub.add_many(0..20, |_| {});
    let (began, before) = (Virt.now(), SLEEPS.load(Ordering::Relaxed));
    let ended = hub.run(|key| {
        if Virt.now().saturating_since(began) > HOUR {
            hub.shut_down();
        }
        let delay = Duration::from_millis(MILLIS[usize::from(*key)]);
        Action::RequeueAfter(delay).with_slack(percent)
    });
    assert!(ended.is_ok());
    SLEEPS.load(Ordering::Relaxed) - before
}

#[riscv_rt::entry]
fn main() -> ! {
    board::start();
    println!("\n| slack of twenty delays | wakes in an hour |\n|---|--:|");
    for percent in [0, 10, 20] {
        println!("| {percent} % | {} |", wakes(percent));
    }
    end(true)
}
