//! The program of `queue`, whose keys belong to groups with a limit, but without a rate.

#![no_std]
#![no_main]

#[macro_use]
mod program;

use core::hint::black_box;
use core::time::Duration;

use embassy_sync::blocking_mutex::raw::CriticalSectionRawMutex;
use requeue_embassy::limiter::{Exponential, default_item_based};
use requeue_embassy::priority::{Groups, Plain};
use requeue_embassy::{GroupLimits, Queue, WorkQueue};
use requeue_firmware::end;

program!(
    Groups<u8, Plain, 4, ()>,
    Queue::with_groups(default_item_based(), (), |key: &u16| *key as u8),
    |keys| keys.limit_groups(GroupLimits::new().max_active(black_box(1)))
);
