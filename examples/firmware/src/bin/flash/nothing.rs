//! A program that does nothing: its flash is subtracted from that of the others.

#![no_std]
#![no_main]

use requeue_firmware::end;

#[cfg_attr(target_arch = "arm", cortex_m_rt::entry)]
#[cfg_attr(target_arch = "riscv32", riscv_rt::entry)]
fn main() -> ! {
    critical_section::with(|_| core::hint::black_box(()));
    end(true)
}
