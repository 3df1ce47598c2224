//! As `queue`, with a worker that waits: a timer, and the list of waiting calls.

#![no_std]
#![no_main]

use core::hint::black_box;
use core::pin::pin;
use core::task::{Context, Waker};
use core::time::Duration;

use embassy_sync::blocking_mutex::raw::CriticalSectionRawMutex;
use requeue_embassy::WorkQueue;
use requeue_embassy::limiter::default_item_based;
use requeue_firmware::end;

static KEYS: WorkQueue<CriticalSectionRawMutex, u16, 16> = WorkQueue::new(default_item_based());

async fn worker() {
    while let Ok(guard) = KEYS.get().await {
        let finished = if black_box(true) {
            guard.success()
        } else {
            guard.retry()
        };
        let _ = black_box(finished);
    }
}

#[cfg_attr(target_arch = "arm", cortex_m_rt::entry)]
#[cfg_attr(target_arch = "riscv32", riscv_rt::entry)]
fn main() -> ! {
    let _ = black_box(KEYS.add(black_box(7)));
    let _ = black_box(KEYS.add_after(black_box(8), Duration::from_millis(black_box(5))));
    let mut worker = pin!(worker());
    let _ = worker
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()));
    end(true)
}
