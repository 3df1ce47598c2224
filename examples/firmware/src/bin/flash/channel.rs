//! The same program with a channel of embassy-sync.

#![no_std]
#![no_main]

use core::hint::black_box;

use embassy_sync::blocking_mutex::raw::CriticalSectionRawMutex;
use embassy_sync::channel::Channel;
use requeue_firmware::end;

static KEYS: Channel<CriticalSectionRawMutex, u16, 16> = Channel::new();

#[cfg_attr(target_arch = "arm", cortex_m_rt::entry)]
#[cfg_attr(target_arch = "riscv32", riscv_rt::entry)]
fn main() -> ! {
    let _ = black_box(KEYS.try_send(black_box(7)));
    let _ = black_box(KEYS.try_receive());
    end(true)
}
