//! The board of the queue: one clock for both harts, an alarm and a wake for each.

use core::task::{RawWaker, RawWakerVTable, Waker};

use requeue_bare::binding::Clock;
use requeue_bare::{Board, Instant};

use crate::board;

const NANOS_PER_TICK: u64 = 100;

/// Both harts. Each method does what it says to the hart that it runs on.
pub struct Harts;

impl Clock for Harts {
    fn now(&self) -> Instant {
        Instant::from_nanos(board::time() * NANOS_PER_TICK)
    }
}

impl Board for Harts {
    fn arm(&self, at: Option<Instant>) {
        let at = at.map_or(u64::MAX, |at| at.as_nanos().div_ceil(NANOS_PER_TICK));
        crate::set_alarm(board::hart(), at);
    }

    fn idle(&self) {
        riscv::asm::wfi();
    }

    /// Not a critical section: the other hart would wait for its end while this one sleeps.
    fn masked<T>(&self, work: impl FnOnce() -> T) -> T {
        board::masked(work)
    }

    fn waker(&self) -> Waker {
        // SAFETY: the functions of the table only use the number of the hart.
        unsafe { Waker::new(board::hart() as *const (), &INTERRUPT) }
    }
}

/// A waker that interrupts a hart.
static INTERRUPT: RawWakerVTable = RawWakerVTable::new(
    |hart| RawWaker::new(hart, &INTERRUPT),
    |hart| board::interrupt(hart as usize),
    |hart| board::interrupt(hart as usize),
    |_| {},
);
