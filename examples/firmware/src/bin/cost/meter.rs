//! Counts instructions.

use core::hint::black_box;

use portable_atomic::{AtomicU32, Ordering};
use requeue_firmware::arch;

/// Instructions that the meter itself counts.
static OVERHEAD: AtomicU32 = AtomicU32::new(0);

/// Measures the meter.
pub fn calibrate() {
    OVERHEAD.store(raw(|| ()), Ordering::Relaxed);
    // Checks the emulator's settings by a function of a known length.
    let hundred = instructions(hundred);
    assert!(
        (100..=110).contains(&hundred),
        "100 instructions were counted as {hundred}: run with -icount shift=10 (ARM) or 0 (RISC-V)"
    );
}

/// Returns the instructions that `work` takes.
#[inline(never)]
pub fn instructions<T>(work: impl FnOnce() -> T) -> u32 {
    raw(work).saturating_sub(OVERHEAD.load(Ordering::Relaxed))
}

#[inline(always)]
fn raw<T>(work: impl FnOnce() -> T) -> u32 {
    let from = arch::count();
    black_box(work());
    let to = arch::count();
    arch::instructions(from, to)
}

#[inline(never)]
fn hundred() {
    // SAFETY: does nothing.
    unsafe { core::arch::asm!(".rept 100", "nop", ".endr", options(nomem, nostack)) };
}
