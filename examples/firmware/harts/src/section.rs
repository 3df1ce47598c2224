//! Critical sections of two harts: interrupts masked, and a spinlock.

use core::sync::atomic::{AtomicUsize, Ordering};

use riscv::register::{mhartid, mstatus};

struct Spinlock;

critical_section::set_impl!(Spinlock);

/// The hart that is in a section, plus one.
static OWNER: AtomicUsize = AtomicUsize::new(0);

/// In the state that is restored: interrupts were enabled; a section of this hart is around.
const ENABLED: u8 = 1;
const NESTED: u8 = 2;

// SAFETY: at most one hart is the owner, and none of its interrupts comes in between.
unsafe impl critical_section::Impl for Spinlock {
    unsafe fn acquire() -> u8 {
        let enabled = if mstatus::read().mie() { ENABLED } else { 0 };
        riscv::interrupt::disable();
        let own = mhartid::read() + 1;
        // A section may be in another: the clock of a driver takes one as well.
        if OWNER.load(Ordering::Relaxed) == own {
            return enabled | NESTED;
        }
        while OWNER
            .compare_exchange_weak(0, own, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            core::hint::spin_loop();
        }
        enabled
    }

    unsafe fn release(before: u8) {
        if before & NESTED == 0 {
            OWNER.store(0, Ordering::Release);
        }
        if before & ENABLED != 0 {
            // SAFETY: they were enabled when the section began.
            unsafe { riscv::interrupt::enable() };
        }
    }
}
