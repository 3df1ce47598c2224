//! The program of `queue`, with a delay that may become longer.

#![no_std]
#![no_main]

#[macro_use]
mod program;

use core::hint::black_box;
use core::time::Duration;

use embassy_sync::blocking_mutex::raw::CriticalSectionRawMutex;
use requeue_embassy::limiter::{Exponential, default_item_based};
use requeue_embassy::priority::WithSlack;
use requeue_embassy::{Queue, WorkQueue};
use requeue_firmware::end;

program!(WithSlack, Queue::new(default_item_based()), |keys| {
    let delay = Duration::from_millis(black_box(5));
    let _ = black_box(keys.add_within(black_box(9), delay, delay));
});
