//! The same program with a queue: delays, an exponential limiter, and a worker that polls.

#![no_std]
#![no_main]

#[macro_use]
mod program;

use core::hint::black_box;
use core::time::Duration;

use embassy_sync::blocking_mutex::raw::CriticalSectionRawMutex;
use requeue_embassy::limiter::{Exponential, default_item_based};
use requeue_embassy::priority::Plain;
use requeue_embassy::{Queue, WorkQueue};
use requeue_firmware::end;

program!(Plain, Queue::new(default_item_based()), |_| {});
