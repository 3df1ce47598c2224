//! mps2-an385, a Cortex-M3 at 25 MHz. Its dual timer is clock and alarm at once.

use core::cell::Cell;

use cortex_m_rt::exception;
use critical_section::{CriticalSection, Mutex};

use crate::alarm::{self, Alarm};
use crate::{arch, edges, read, write};

/// The processor's clock.
pub const CLOCK_HZ: u32 = 25_000_000;
/// The clock's, for each tick of embassy-time.
const CYCLES_PER_TICK: u64 = 25;

/// Bytes of RAM.
pub const RAM_BYTES: usize = 4 * 1024 * 1024;

/// The interrupt lines of the sensors. Only software raises the first two: no device has them.
/// The third is that of TIMER0, which can fire faster than a sensor is read.
pub const LINES: [u16; 3] = [20, 21, 8];

/// TIMER0.
const BOUNCING: usize = 0x4000_0000;
const BOUNCING_CONTROL: usize = 0x00;
const BOUNCING_VALUE: usize = 0x04;
const BOUNCING_RELOAD: usize = 0x08;
const BOUNCING_CLEAR: usize = 0x0C;
const BOUNCING_ON: u32 = 1 << 3 | 1;
const CYCLES_PER_EDGE: u32 = 20 * CLOCK_HZ / 1_000_000;

/// The half of the dual timer that counts down for ever, and the half that is the alarm.
const CLOCK: usize = 0x4000_2000;
const RING: usize = 0x4000_2020;
const DUAL_TIMER: u16 = 10;

const LOAD: usize = 0x00;
const VALUE: usize = 0x04;
const CONTROL: usize = 0x08;
const CLEAR: usize = 0x0C;
const PENDING: usize = 0x10;

const ENABLE: u32 = 1 << 7;
const INTERRUPT: u32 = 1 << 5;
const WIDE: u32 = 1 << 1;
const ONCE: u32 = 1;

/// How often the clock has wrapped around, as counted by its interrupt.
static WRAPS: Mutex<Cell<u32>> = Mutex::new(Cell::new(0));

/// The dual timer.
pub struct Hardware;

impl Alarm for Hardware {
    fn now(section: CriticalSection<'_>) -> u64 {
        cycles(section) / CYCLES_PER_TICK
    }

    fn set(section: CriticalSection<'_>, at: u64) -> bool {
        // SAFETY: the alarm is this driver's.
        unsafe {
            write(RING + CONTROL, 0);
            write(RING + CLEAR, 1);
        }
        if at == u64::MAX {
            return true;
        }
        let left = at
            .saturating_mul(CYCLES_PER_TICK)
            .saturating_sub(cycles(section));
        if left == 0 {
            return false;
        }
        // A time that is too far for 32 bits is waited for in pieces.
        let left = u32::try_from(left).unwrap_or(u32::MAX);
        // SAFETY: as above.
        unsafe {
            write(RING + LOAD, left);
            write(RING + CONTROL, ENABLE | INTERRUPT | WIDE | ONCE);
        }
        true
    }
}

fn cycles(section: CriticalSection<'_>) -> u64 {
    // SAFETY: reading has no effect.
    let count = || unsafe { !read(CLOCK + VALUE) };
    // SAFETY: as above.
    let has_wrapped = || unsafe { read(CLOCK + PENDING) } & 1 != 0;
    let mut low = count();
    let mut high = WRAPS.borrow(section).get();
    // If the interrupt is masked, this wrap is not counted yet, and `low` may be from before it.
    if has_wrapped() {
        low = count();
        high = high.wrapping_add(1);
    }
    u64::from(high) << 32 | u64::from(low)
}

/// Starts the clock, and enables the interrupts that the images use.
pub fn start() {
    // SAFETY: the clock is this driver's.
    unsafe {
        write(CLOCK + LOAD, u32::MAX);
        write(CLOCK + CONTROL, ENABLE | INTERRUPT | WIDE);
    }
    for number in [DUAL_TIMER, LINES[0], LINES[1], LINES[2]] {
        arch::unmask(number);
    }
}

/// Raises an interrupt.
pub fn pend(number: u16) {
    arch::pend(number);
    // The handler has run when this returns.
    cortex_m::asm::isb();
}

/// Makes the third line bounce: `count` edges, 20 us apart. The emulator skips every second one.
pub fn bounce(count: u32) {
    edges::set(count);
    // SAFETY: the timer is this line's.
    unsafe {
        write(BOUNCING + BOUNCING_RELOAD, CYCLES_PER_EDGE - 1);
        write(BOUNCING + BOUNCING_VALUE, CYCLES_PER_EDGE - 1);
        write(BOUNCING + BOUNCING_CONTROL, BOUNCING_ON);
    }
}

fn on_edge() {
    let is_last = edges::take();
    // SAFETY: the timer is this line's.
    unsafe {
        write(BOUNCING + BOUNCING_CLEAR, 1);
        if is_last {
            write(BOUNCING + BOUNCING_CONTROL, 0);
        }
    }
}

#[exception]
unsafe fn DefaultHandler(number: i16) {
    let number = number as u16;
    if number == LINES[2] {
        on_edge();
    }
    if number == DUAL_TIMER {
        critical_section::with(|section| {
            // SAFETY: the clock and the alarm are this driver's.
            unsafe {
                if read(CLOCK + PENDING) & 1 != 0 {
                    write(CLOCK + CLEAR, 1);
                    let wraps = WRAPS.borrow(section);
                    wraps.set(wraps.get().wrapping_add(1));
                }
                write(RING + CLEAR, 1);
            }
        });
        alarm::on_ring();
        return;
    }
    crate::handler::call(number);
}
