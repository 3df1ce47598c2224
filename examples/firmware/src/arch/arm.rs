//! Cortex-M: semihosting for output, SysTick for counting, NVIC for interrupts.

use core::arch::asm;

use cortex_m::peripheral::{NVIC, SYST};

/// Prints a byte.
pub fn put(byte: u8) {
    const WRITEC: u32 = 0x03;
    // SAFETY: the host reads one byte at the address.
    unsafe { call(WRITEC, &raw const byte as u32) };
}

/// Ends the emulator.
pub fn exit(succeeded: bool) -> ! {
    const EXIT: u32 = 0x18;
    const APPLICATION_EXIT: u32 = 0x2_0026;
    const RUN_TIME_ERROR: u32 = 0x2_0023;
    let reason = if succeeded {
        APPLICATION_EXIT
    } else {
        RUN_TIME_ERROR
    };
    loop {
        // SAFETY: takes a number and does not return.
        unsafe { call(EXIT, reason) };
    }
}

/// Sleeps until an interrupt is pending, masked or not.
pub fn wait_for_interrupt() {
    cortex_m::asm::wfi();
}

/// Enables an interrupt.
pub fn unmask(number: u16) {
    // SAFETY: no critical section of an image relies on this interrupt being masked.
    unsafe { NVIC::unmask(Interrupt(number)) };
}

/// Raises an interrupt.
pub fn pend(number: u16) {
    NVIC::pend(Interrupt(number));
}

/// Starts the counter that [`count`] reads.
pub fn start_counting() {
    // SAFETY: nothing else uses SysTick.
    let mut systick = unsafe { cortex_m::Peripherals::steal() }.SYST;
    systick.set_clock_source(cortex_m::peripheral::syst::SystClkSource::Core);
    systick.set_reload(0xFF_FFFF);
    systick.clear_current();
    systick.enable_counter();
}

/// Reads a counter of the processor's clock, which goes up.
#[inline(always)]
pub fn count() -> u32 {
    // SysTick goes down, in 24 bits.
    0xFF_FFFF - SYST::get_current()
}

/// Returns the instructions between two counts, if the emulator runs with `-icount shift=10`, which
/// makes each of them take 1024 ns.
pub fn instructions(from: u32, to: u32) -> u32 {
    let ticks = to.wrapping_sub(from) & 0xFF_FFFF;
    let nanos = u64::from(ticks) * 1_000_000_000 / u64::from(crate::board::CLOCK_HZ);
    ((nanos + 512) / 1024) as u32
}

/// Returns where the stack ends and begins. It grows down.
pub fn stack() -> (usize, usize) {
    unsafe extern "C" {
        static mut __sheap: u32;
        static mut _stack_start: u32;
    }
    // The linker script of cortex-m-rt places both; only their addresses are taken.
    (
        (&raw const __sheap) as usize,
        (&raw const _stack_start) as usize,
    )
}

/// Returns the stack pointer.
#[inline(always)]
pub fn stack_pointer() -> usize {
    let sp: usize;
    // SAFETY: reads a register.
    unsafe { asm!("mov {}, sp", out(reg) sp, options(nomem, nostack)) };
    sp
}

#[derive(Clone, Copy)]
struct Interrupt(u16);

// SAFETY: each number used is one that the board has.
unsafe impl cortex_m::interrupt::InterruptNumber for Interrupt {
    fn number(self) -> u16 {
        self.0
    }
}

/// # Safety
///
/// `argument` is what the operation takes.
unsafe fn call(operation: u32, argument: u32) {
    // SAFETY: the host writes its result to r0 and changes nothing else.
    unsafe { asm!("bkpt #0xab", inout("r0") operation => _, in("r1") argument, options(nostack)) };
}
