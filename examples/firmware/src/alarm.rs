//! A tickless driver for embassy-time: a free-running clock, and one alarm for the next deadline.
//!
//! A board reads its clock and sets its alarm. This module keeps the deadlines of all tasks.

use core::cell::RefCell;
use core::task::Waker;

use critical_section::{CriticalSection, Mutex};
use embassy_time_driver::Driver;
use embassy_time_queue_utils::Queue;
use portable_atomic::{AtomicU32, Ordering};

use crate::board::Hardware;

/// A board's clock and its alarm.
pub trait Alarm {
    /// Returns the time in ticks of embassy-time. It never goes back.
    fn now(section: CriticalSection<'_>) -> u64;

    /// Sets the alarm for a time, or for an earlier one if that is too far away. Returns false if
    /// the time has passed: the alarm might never fire then.
    fn set(section: CriticalSection<'_>, at: u64) -> bool;
}

/// How often the alarm has fired.
pub static RINGS: AtomicU32 = AtomicU32::new(0);

embassy_time_driver::time_driver_impl!(static DEADLINES: Deadlines = Deadlines::new());

struct Deadlines {
    tasks: Mutex<RefCell<Queue>>,
}

impl Deadlines {
    const fn new() -> Self {
        Self {
            tasks: Mutex::new(RefCell::new(Queue::new())),
        }
    }

    /// Wakes the tasks that are due, and sets the alarm for the next deadline.
    fn attend(&self, section: CriticalSection<'_>) {
        let mut tasks = self.tasks.borrow_ref_mut(section);
        loop {
            let next = tasks.next_expiration(Hardware::now(section));
            if Hardware::set(section, next) {
                return;
            }
        }
    }
}

impl Driver for Deadlines {
    fn now(&self) -> u64 {
        critical_section::with(Hardware::now)
    }

    fn schedule_wake(&self, at: u64, waker: &Waker) {
        critical_section::with(|section| {
            let is_next = self.tasks.borrow_ref_mut(section).schedule_wake(at, waker);
            if is_next {
                self.attend(section);
            }
        });
    }
}

/// The handler of a board's alarm calls this.
pub fn on_ring() {
    critical_section::with(|section| {
        RINGS.store(RINGS.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        DEADLINES.attend(section);
    });
}
