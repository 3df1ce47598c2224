//! microbit: an nRF51, a Cortex-M0 at 16 MHz with 16 KiB of RAM. TIMER0 is clock and alarm at
//! once.

use core::cell::Cell;

use cortex_m_rt::exception;
use critical_section::{CriticalSection, Mutex};

use crate::alarm::{self, Alarm};
use crate::{arch, edges, read, write};

/// The processor's clock.
pub const CLOCK_HZ: u32 = 16_000_000;

/// Bytes of RAM.
pub const RAM_BYTES: usize = 16 * 1024;

/// The interrupt lines of the sensors. Only software raises the first two: no device has them.
/// The third is that of TIMER1, which can fire faster than a sensor is read.
pub const LINES: [u16; 3] = [20, 21, 9];

const TIMER1: usize = 0x4000_9000;
const MICROSECONDS_PER_EDGE: u32 = 20;

const TIMER0: usize = 0x4000_8000;
const TIMER0_INTERRUPT: u16 = 8;

const START: usize = 0x000;
const STOP: usize = 0x004;
const CLEAR: usize = 0x00C;
const CAPTURE1: usize = 0x044;
const COMPARED0: usize = 0x140;
const SHORTCUTS: usize = 0x200;
const INTERRUPTS: usize = 0x304;
const WIDTH: usize = 0x508;
const PRESCALER: usize = 0x510;
const COMPARE0: usize = 0x540;
const COMPARE1: usize = 0x544;

const WIDTH_32: u32 = 3;
/// 16 MHz divided by 2^4: a tick of embassy-time.
const MICROSECONDS: u32 = 4;
const ON_COMPARE0: u32 = 1 << 16;
const CLEAR_ON_COMPARE0: u32 = 1;

/// The alarm fires, and so the clock is read, at least four times before it wraps around. No
/// interrupt counts the wraps, because the emulator fires a compare that equals the counter twice.
const LONGEST: u64 = 1 << 30;

/// The last reading of the clock: how often it has wrapped around, and its value.
static LAST: Mutex<Cell<(u32, u32)>> = Mutex::new(Cell::new((0, 0)));

/// TIMER0.
pub struct Hardware;

impl Alarm for Hardware {
    fn now(section: CriticalSection<'_>) -> u64 {
        // SAFETY: the timer is this driver's.
        let low = unsafe {
            write(TIMER0 + CAPTURE1, 1);
            read(TIMER0 + COMPARE1)
        };
        let last = LAST.borrow(section);
        let (mut high, before) = last.get();
        if low < before {
            high = high.wrapping_add(1);
        }
        last.set((high, low));
        u64::from(high) << 32 | u64::from(low)
    }

    fn set(section: CriticalSection<'_>, at: u64) -> bool {
        // SAFETY: the timer is this driver's.
        unsafe { write(TIMER0 + COMPARED0, 0) };
        let now = Self::now(section);
        if at <= now {
            return false;
        }
        // A compare that is written when the counter is already there is missed: two ticks ahead
        // at least, and then a look whether that was enough.
        let ring = at.clamp(now + 2, now + LONGEST);
        // SAFETY: as above.
        unsafe { write(TIMER0 + COMPARE0, ring as u32) };
        Self::now(section) < ring
    }
}

/// Starts the clock, and enables the interrupts that the images use.
pub fn start() {
    // SAFETY: the timer is this driver's.
    unsafe {
        write(TIMER0 + WIDTH, WIDTH_32);
        write(TIMER0 + PRESCALER, MICROSECONDS);
        write(TIMER0 + COMPARE0, LONGEST as u32);
        write(TIMER0 + INTERRUPTS, ON_COMPARE0);
        write(TIMER0 + CLEAR, 1);
        write(TIMER0 + START, 1);
    }
    for number in [TIMER0_INTERRUPT, LINES[0], LINES[1], LINES[2]] {
        arch::unmask(number);
    }
}

/// Raises an interrupt.
pub fn pend(number: u16) {
    arch::pend(number);
    // The handler has run when this returns.
    cortex_m::asm::isb();
}

/// Makes the third line bounce: `count` edges, 20 us apart.
pub fn bounce(count: u32) {
    edges::set(count);
    // SAFETY: the timer is this line's.
    unsafe {
        write(TIMER1 + PRESCALER, MICROSECONDS);
        write(TIMER1 + COMPARE0, MICROSECONDS_PER_EDGE);
        write(TIMER1 + SHORTCUTS, CLEAR_ON_COMPARE0);
        write(TIMER1 + INTERRUPTS, ON_COMPARE0);
        write(TIMER1 + CLEAR, 1);
        write(TIMER1 + START, 1);
    }
}

fn on_edge() {
    let is_last = edges::take();
    // SAFETY: the timer is this line's.
    unsafe {
        write(TIMER1 + COMPARED0, 0);
        if is_last {
            write(TIMER1 + STOP, 1);
        }
    }
}

#[exception]
unsafe fn DefaultHandler(number: i16) {
    let number = number as u16;
    if number == LINES[2] {
        on_edge();
    }
    if number == TIMER0_INTERRUPT {
        // SAFETY: the timer is this driver's.
        unsafe { write(TIMER0 + COMPARED0, 0) };
        alarm::on_ring();
        return;
    }
    crate::handler::call(number);
}
