//! As `nothing`, with a timer of embassy-time: `awaited` has it, too.

#![no_std]
#![no_main]

use core::pin::pin;
use core::task::{Context, Waker};

use embassy_time::{Duration, Timer};
use requeue_firmware::end;

#[cfg_attr(target_arch = "arm", cortex_m_rt::entry)]
#[cfg_attr(target_arch = "riscv32", riscv_rt::entry)]
fn main() -> ! {
    let mut timer = pin!(Timer::after(Duration::from_millis(5)));
    let _ = timer.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    end(true)
}
