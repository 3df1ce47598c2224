//! An executor that sleeps by `wfi`.
//!
//! embassy's own for Cortex-M sleeps by `wfe`, at which the emulator does not sleep: it would spin.

use embassy_executor::{Spawner, raw};
use portable_atomic::{AtomicBool, AtomicU32, Ordering};
use static_cell::StaticCell;

use crate::arch;

/// How often the processor has gone to sleep.
pub static SLEEPS: AtomicU32 = AtomicU32::new(0);

static IS_PENDING: AtomicBool = AtomicBool::new(true);

/// Called by embassy when a task has been woken.
#[unsafe(export_name = "__pender")]
fn pend(_context: *mut ()) {
    IS_PENDING.store(true, Ordering::SeqCst);
}

/// Runs tasks for ever.
pub fn run(spawn: impl FnOnce(Spawner)) -> ! {
    static EXECUTOR: StaticCell<raw::Executor> = StaticCell::new();
    let executor: &'static raw::Executor = EXECUTOR.init(raw::Executor::new(core::ptr::null_mut()));
    spawn(executor.spawner());
    loop {
        // SAFETY: not from within itself, and from this thread alone.
        unsafe { executor.poll() };
        // An interrupt between the check and the sleep stays pending, and ends the sleep at once.
        critical_section::with(|_| {
            if IS_PENDING.load(Ordering::SeqCst) {
                IS_PENDING.store(false, Ordering::SeqCst);
            } else {
                SLEEPS.store(SLEEPS.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                arch::wait_for_interrupt();
            }
        });
    }
}
