//! The program of `queue`, whose failures hold their keys.

#![no_std]
#![no_main]

#[macro_use]
mod program;

use core::hint::black_box;
use core::time::Duration;

use embassy_sync::blocking_mutex::raw::CriticalSectionRawMutex;
use requeue_embassy::limiter::{Exponential, default_item_based};
use requeue_embassy::priority::WithPolicy;
use requeue_embassy::{Policy, Queue, WorkQueue};
use requeue_firmware::end;

program!(
    WithPolicy,
    Queue::new(default_item_based()).with_policy(Policy::new().hold_failures()),
    |_| {}
);
