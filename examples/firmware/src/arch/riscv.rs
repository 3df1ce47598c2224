//! RISC-V on QEMU's `virt`: a serial port for output, `minstret` for counting.

use core::arch::asm;

/// Prints a byte.
pub fn put(byte: u8) {
    const UART: *mut u8 = 0x1000_0000 as *mut u8;
    // SAFETY: the transmit register of the serial port.
    unsafe { UART.write_volatile(byte) };
}

/// Ends the emulator.
pub fn exit(succeeded: bool) -> ! {
    const FINISHER: usize = 0x10_0000;
    const PASS: u32 = 0x5555;
    const FAIL_WITH_1: u32 = 0x1_3333;
    loop {
        // SAFETY: the device that ends the emulator.
        unsafe { crate::write(FINISHER, if succeeded { PASS } else { FAIL_WITH_1 }) };
    }
}

/// Sleeps until an interrupt is pending, masked or not.
pub fn wait_for_interrupt() {
    riscv::asm::wfi();
}

/// Does nothing: the counter always runs.
pub fn start_counting() {}

/// Returns the instructions that have been executed.
#[inline(always)]
pub fn count() -> u32 {
    let count: u32;
    // SAFETY: reads a counter.
    unsafe { asm!("csrr {}, minstret", out(reg) count, options(nomem, nostack)) };
    count
}

/// Returns the instructions between two counts.
pub fn instructions(from: u32, to: u32) -> u32 {
    to.wrapping_sub(from)
}

/// Returns where the stack ends and begins. It grows down.
pub fn stack() -> (usize, usize) {
    unsafe extern "C" {
        static mut _stack_start: u32;
        static _hart_stack_size: u32;
    }
    // The linker script of riscv-rt places both; only their addresses are taken.
    let top = (&raw const _stack_start) as usize;
    (top - (&raw const _hart_stack_size) as usize, top)
}

/// Returns the stack pointer.
#[inline(always)]
pub fn stack_pointer() -> usize {
    let sp: usize;
    // SAFETY: reads a register.
    unsafe { asm!("mv {}, sp", out(reg) sp, options(nomem, nostack)) };
    sp
}
