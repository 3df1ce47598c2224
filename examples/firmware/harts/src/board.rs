//! QEMU's `virt` with two harts: how they start, their clock, their alarms and how one interrupts
//! the other.

use core::arch::global_asm;
use core::fmt;
use core::panic::PanicInfo;

use riscv::register::{mhartid, mie};

// Hart 0 prepares the memory. Hart 1 sleeps until it is interrupted.
global_asm!(
    r#".section .init.mp_hook, "ax"
    .global _mp_hook
_mp_hook:
    beqz a0, 2f
    li t0, 8
    csrs mie, t0
1:  wfi
    csrr t1, mip
    andi t1, t1, 8
    beqz t1, 1b
    li a0, 0
    ret
2:  li a0, 1
    ret"#
);

const SOFTWARE_PENDING: usize = 0x0200_0000;
const COMPARE: usize = 0x0200_4000;
const TIME: usize = 0x0200_BFF8;

/// Returns the hart that this runs on.
pub fn hart() -> usize {
    mhartid::read()
}

/// Starts the other hart, and enables the interrupts of this one.
pub fn start() {
    set_alarm(hart(), u64::MAX);
    match hart() {
        0 => interrupt(1),
        _ => acknowledge(),
    }
    // SAFETY: the handlers are in place, since the linker put them there.
    unsafe {
        mie::set_msoft();
        mie::set_mtimer();
        riscv::interrupt::enable();
    }
}

/// Returns the time in ticks of 100 ns. It is the same on both harts.
pub fn time() -> u64 {
    loop {
        let (high, low, again) = (read(TIME + 4), read(TIME), read(TIME + 4));
        if high == again {
            return u64::from(high) << 32 | u64::from(low);
        }
    }
}

/// Sets the alarm of a hart. A time that has passed interrupts at once.
pub fn set_alarm(hart: usize, at: u64) {
    let compare = COMPARE + 8 * hart;
    write(compare + 4, u32::MAX);
    write(compare, at as u32);
    write(compare + 4, (at >> 32) as u32);
}

/// Interrupts a hart.
pub fn interrupt(hart: usize) {
    write(SOFTWARE_PENDING + 4 * hart, 1);
}

/// Ends the interrupt that the other hart has sent to this one.
pub fn acknowledge() {
    write(SOFTWARE_PENDING + 4 * hart(), 0);
}

/// Masks the interrupts of this hart alone, which may sleep meanwhile.
pub fn masked<T>(work: impl FnOnce() -> T) -> T {
    riscv::interrupt::disable();
    let value = work();
    // SAFETY: only loops call this, whose interrupts are enabled.
    unsafe { riscv::interrupt::enable() };
    value
}

/// Ends the emulator.
pub fn exit(succeeded: bool) -> ! {
    loop {
        write(0x10_0000, if succeeded { 0x5555 } else { 0x1_3333 });
    }
}

/// The serial port.
pub struct Console;

impl fmt::Write for Console {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            // SAFETY: the transmit register of the serial port.
            unsafe { (0x1000_0000 as *mut u8).write_volatile(byte) };
        }
        Ok(())
    }
}

/// Prints a line, which the other hart does not interrupt.
#[macro_export]
macro_rules! println {
    ($($words:tt)*) => {
        critical_section::with(|_| {
            use core::fmt::Write as _;
            let _ = writeln!($crate::board::Console, $($words)*);
        })
    };
}

#[panic_handler]
fn panic(why: &PanicInfo<'_>) -> ! {
    println!("hart {}: {why}", hart());
    exit(false)
}

fn write(address: usize, value: u32) {
    // SAFETY: a register of a device that is this module's.
    unsafe { (address as *mut u32).write_volatile(value) };
}

fn read(address: usize) -> u32 {
    // SAFETY: reading the clock has no effect.
    unsafe { (address as *const u32).read_volatile() }
}
