//! QEMU's `virt`, a RISC-V with a 64-bit clock of 10 MHz and one alarm.

use critical_section::CriticalSection;
use riscv::interrupt::Interrupt;

use crate::alarm::{self, Alarm};
use crate::{read, write};

const SOFTWARE_PENDING: usize = 0x0200_0000;
const COMPARE: usize = 0x0200_4000;
const TIME: usize = 0x0200_BFF8;

/// Bytes of RAM.
pub const RAM_BYTES: usize = 16 * 1024 * 1024;

/// The one interrupt that software raises.
pub const LINES: [u16; 1] = [3];

/// The clock of the core-local interruptor.
pub struct Hardware;

impl Alarm for Hardware {
    fn now(_: CriticalSection<'_>) -> u64 {
        loop {
            // SAFETY: reading has no effect.
            let (high, low, again) = unsafe { (read(TIME + 4), read(TIME), read(TIME + 4)) };
            if high == again {
                return u64::from(high) << 32 | u64::from(low);
            }
        }
    }

    /// A time that has passed keeps the interrupt pending, so that no alarm is missed.
    fn set(_: CriticalSection<'_>, at: u64) -> bool {
        // SAFETY: the alarm is this driver's. The upper half goes first, and far away, so that no
        // time in between rings.
        unsafe {
            write(COMPARE + 4, u32::MAX);
            write(COMPARE, at as u32);
            write(COMPARE + 4, (at >> 32) as u32);
        }
        true
    }
}

/// Enables the interrupts that the images use.
pub fn start() {
    // SAFETY: the handlers are in place, since the linker put them there.
    unsafe {
        write(COMPARE + 4, u32::MAX);
        riscv::register::mie::set_mtimer();
        riscv::register::mie::set_msoft();
        riscv::interrupt::enable();
    }
}

/// Raises an interrupt.
pub fn pend(_: u16) {
    // SAFETY: the interrupt is the images'.
    unsafe { write(SOFTWARE_PENDING, 1) };
}

#[riscv_rt::core_interrupt(Interrupt::MachineTimer)]
fn on_timer() {
    alarm::on_ring();
}

#[riscv_rt::core_interrupt(Interrupt::MachineSoft)]
fn on_software() {
    // SAFETY: acknowledges the interrupt.
    unsafe { write(SOFTWARE_PENDING, 0) };
    crate::handler::call(LINES[0]);
}

/// Returns the time in ticks of 100 ns, for an image without embassy-time.
pub fn time() -> u64 {
    critical_section::with(Hardware::now)
}

/// Sets the alarm, for an image without embassy-time.
pub fn set_alarm(at: u64) {
    critical_section::with(|section| Hardware::set(section, at));
}
