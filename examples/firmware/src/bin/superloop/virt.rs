//! The board of the bare loops, which counts their looks and sleeps.

use portable_atomic::{AtomicU32, Ordering};
use requeue_bare::binding::Clock;
use requeue_bare::{Board, Instant};
use requeue_firmware::{arch, board};

/// The machine's timer, of 10 MHz, and its alarm.
pub(crate) struct Virt;

const NANOS_PER_TICK: u64 = 100;

impl Clock for Virt {
    fn now(&self) -> Instant {
        Instant::from_nanos(board::time() * NANOS_PER_TICK)
    }
}

impl Board for Virt {
    fn arm(&self, at: Option<Instant>) {
        // The first tick that is not early.
        board::set_alarm(at.map_or(u64::MAX, |at| at.as_nanos().div_ceil(NANOS_PER_TICK)));
    }

    fn idle(&self) {
        SLEEPS.fetch_add(1, Ordering::Relaxed);
        arch::wait_for_interrupt();
    }

    fn masked<T>(&self, work: impl FnOnce() -> T) -> T {
        LOOKS.fetch_add(1, Ordering::Relaxed);
        critical_section::with(|_| work())
    }
}

pub(crate) static SLEEPS: AtomicU32 = AtomicU32::new(0);
/// Looks after which the loop would sleep.
pub(crate) static LOOKS: AtomicU32 = AtomicU32::new(0);
