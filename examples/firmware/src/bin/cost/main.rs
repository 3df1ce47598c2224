//! Measures the queue on a board: instructions, RAM and stack, next to the alternatives.
//!
//! Instructions are counted by the emulator (`-icount`), so that the figures are the same each time
//! and on each machine. They are not cycles: the emulated flash and bus have no wait states.

#![no_std]
#![no_main]

mod by_hand;
mod depth;
mod interrupt;
mod peers;
mod subject;

use requeue_firmware::{arch, board, end, meter};

#[cfg_attr(target_arch = "arm", cortex_m_rt::entry)]
#[cfg_attr(target_arch = "riscv32", riscv_rt::entry)]
fn main() -> ! {
    board::start();
    arch::start_counting();
    meter::calibrate();
    print_rows();
    interrupt::print();
    peers::print();
    subject::print_sizes();
    depth::print();
    end(true)
}

fn print_rows() {
    let small = subject::measure::<16, u8>();
    let medium = subject::measure::<64, u8>();
    let large = if board::RAM_BYTES >= RAM_FOR_LARGE {
        subject::measure::<256, u16>()
    } else {
        heapless::Vec::new()
    };
    meter::print("instructions", &small, &medium, &large);
}

/// A queue of 256 keys is on the stack here, and is moved once.
const RAM_FOR_LARGE: usize = 64 * 1024;
