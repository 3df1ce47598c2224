//! Shared by the images: a board, an executor that sleeps, and a way to print and to end.
//!
//! Nothing here is about the queue. `unsafe` is for the board alone: registers, and the attributes
//! by which the linker finds handlers.

#![no_std]

#[cfg(target_arch = "arm")]
#[path = "arch/arm.rs"]
pub mod arch;
#[cfg(target_arch = "riscv32")]
#[path = "arch/riscv.rs"]
pub mod arch;

#[cfg(feature = "microbit")]
#[path = "board/microbit.rs"]
pub mod board;
#[cfg(feature = "mps2")]
#[path = "board/mps2.rs"]
pub mod board;
#[cfg(feature = "virt")]
#[path = "board/virt.rs"]
pub mod board;

pub mod alarm;
#[cfg(feature = "lines")]
mod edges;
pub mod executor;
pub mod handler;
pub mod meter;
pub mod stack;

use core::fmt;
use core::panic::PanicInfo;

/// Ends the emulator: with success, or with a failure.
pub fn end(succeeded: bool) -> ! {
    arch::exit(succeeded)
}

/// The output of `println!`.
pub struct Console;

impl fmt::Write for Console {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.bytes().for_each(arch::put);
        Ok(())
    }
}

/// Prints a line.
#[macro_export]
macro_rules! println {
    ($($words:tt)*) => {{
        use core::fmt::Write as _;
        let _ = writeln!($crate::Console, $($words)*);
    }};
}

#[panic_handler]
fn panic(why: &PanicInfo<'_>) -> ! {
    println!("{why}");
    end(false)
}

/// Reads a register of a device.
///
/// # Safety
///
/// `address` is a register of the board, and no other code depends on the effect of reading it.
pub unsafe fn read(address: usize) -> u32 {
    // SAFETY: the caller upholds the contract.
    unsafe { (address as *const u32).read_volatile() }
}

/// Writes a register of a device.
///
/// # Safety
///
/// `address` is a register of the board, and no other code depends on its former value.
pub unsafe fn write(address: usize, value: u32) {
    // SAFETY: the caller upholds the contract.
    unsafe { (address as *mut u32).write_volatile(value) }
}
