//! Critical sections that leave the most urgent interrupts alone: they raise BASEPRI.

use cortex_m::register::{basepri, basepri_max};

/// Interrupts of hardware priority 0 are never masked. They must not use the queue, nor anything
/// else that takes a critical section. RTIC's tasks have priorities 1 to 7 here: those are the
/// hardware's priorities 7 to 1, in the upper three bits.
const CEILING: u8 = 1 << 5;

struct Ceiling;

critical_section::set_impl!(Ceiling);

// SAFETY: there is one core, and every interrupt that takes a critical section is masked.
unsafe impl critical_section::Impl for Ceiling {
    unsafe fn acquire() -> u8 {
        let before = basepri::read();
        // Never lowers the ceiling of a section around this one.
        basepri_max::write(CEILING);
        before
    }

    unsafe fn release(before: u8) {
        // SAFETY: ends the section that began at this level.
        unsafe { basepri::write(before) };
    }
}
