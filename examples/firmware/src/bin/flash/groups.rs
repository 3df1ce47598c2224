//! The program of `queue`, whose keys belong to groups with a limit.

#![no_std]
#![no_main]

use core::hint::black_box;
use core::time::Duration;

use embassy_sync::blocking_mutex::raw::CriticalSectionRawMutex;
use requeue_embassy::binding::Clock;
use requeue_embassy::limiter::{Exponential, default_item_based};
use requeue_embassy::priority::{Groups, Plain};
use requeue_embassy::{GroupLimits, Instant};
use requeue_embassy::{Queue, WorkQueue};
use requeue_firmware::end;

/// A clock that takes no flash, so that no driver is counted.
struct Foreign;

impl Clock for Foreign {
    fn now(&self) -> Instant {
        Instant::from_nanos(black_box(1))
    }
}

type Parts = ((), u8, Foreign);
type Keys =
    WorkQueue<CriticalSectionRawMutex, u16, 16, Groups<u8, Plain, 4>, Exponential, 3, Parts>;

static KEYS: Keys = WorkQueue::from_queue(
    Queue::with_groups(default_item_based(), (), |key: &u16| *key as u8),
    Foreign,
);

#[cfg_attr(target_arch = "arm", cortex_m_rt::entry)]
#[cfg_attr(target_arch = "riscv32", riscv_rt::entry)]
fn main() -> ! {
    KEYS.limit_groups(GroupLimits::new().max_active(black_box(1)));
    let _ = black_box(KEYS.add(black_box(7)));
    let _ = black_box(KEYS.add_after(black_box(8), Duration::from_millis(black_box(5))));
    while let Some(guard) = KEYS.try_get() {
        let finished = if black_box(true) {
            guard.success()
        } else {
            guard.retry()
        };
        let _ = black_box(finished);
    }
    end(true)
}
