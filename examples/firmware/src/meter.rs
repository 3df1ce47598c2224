//! Counts instructions, and prints them.

use core::cell::Cell;
use core::future::{Pending, pending};
use core::hint::black_box;
use core::pin::Pin;
use core::time::Duration;

use portable_atomic::{AtomicU32, Ordering};
use requeue_embassy::{Instant, binding};

use crate::{arch, println};

/// A row: what was measured, and the instructions.
pub type Row = (&'static str, u32);

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

/// Prints rows that were measured with three sizes of a queue. A board that is too small for the
/// largest has no rows of it.
pub fn print(title: &str, small: &[Row], medium: &[Row], large: &[Row]) {
    println!("\n| {title} | N = 16 | N = 64 | N = 256 |\n|---|--:|--:|--:|");
    for (row, ((what, small), (_, medium))) in small.iter().zip(medium).enumerate() {
        match large.get(row) {
            Some((_, large)) => println!("| {what} | {small} | {medium} | {large} |"),
            None => println!("| {what} | {small} | {medium} | – |"),
        }
    }
}

/// A clock that costs almost nothing, so that no driver is measured: a test moves it, and its
/// alarms never ring.
#[derive(Debug, Default)]
pub struct Clock(Cell<Instant>);

impl Clock {
    /// A clock that shows its epoch.
    pub const fn new() -> Self {
        Self(Cell::new(Instant::EPOCH))
    }

    /// Moves the clock forward.
    pub fn advance(&self, by: Duration) {
        self.0.set(self.0.get() + by);
    }
}

impl binding::Clock for Clock {
    #[inline]
    fn now(&self) -> Instant {
        self.0.get()
    }
}

impl binding::Timer for Clock {
    type Alarm = Pending<()>;

    #[inline]
    fn set_alarm(&self, mut alarm: Pin<&mut Option<Pending<()>>>, until: Option<Instant>) {
        alarm.set(until.map(|_| pending()));
    }
}
