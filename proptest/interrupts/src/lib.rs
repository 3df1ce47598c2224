//! A mutex for queues of `requeue-embassy` that lets a test interrupt every critical section.
//!
//! On a microcontroller with one core an interrupt can come between any two instructions outside of
//! critical sections. The queue changes only within critical sections, so all interrupts between
//! two of them do the same. [`Interruptible`] calls a function of the test at these *boundaries*.
//! The tests of this package try an interrupt at each boundary. In `proptest/schedules` another
//! task can run there.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::{Mutex, TryLockError};

use requeue_embassy::raw::RawMutex;

/// A mutex whose critical sections can be interrupted before and after, but not within.
///
/// # Panics
///
/// If it is locked twice at once.
///
/// # Examples
///
/// ```
/// use std::cell::Cell;
/// use std::rc::Rc;
/// use requeue_embassy::ManualClock;
/// use requeue_interrupts::{Interruptible, interrupt_with};
///
/// let boundaries = Rc::new(Cell::new(0));
/// let counter = Rc::clone(&boundaries);
/// interrupt_with(move || counter.set(counter.get() + 1));
/// let clock: ManualClock<Interruptible> = ManualClock::new();
/// let _ = clock.now();
/// assert_eq!(boundaries.get(), 2);
/// ```
#[derive(Debug)]
pub struct Interruptible(Mutex<()>);

// SAFETY: `work` runs while a mutex of std is locked.
#[allow(unsafe_code, reason = "the trait is unsafe")]
unsafe impl RawMutex for Interruptible {
    #[allow(
        clippy::declare_interior_mutable_const,
        reason = "the trait asks for a constant"
    )]
    const INIT: Self = Self(Mutex::new(()));

    fn lock<R>(&self, work: impl FnOnce() -> R) -> R {
        boundary();
        let result = {
            let _locked = match self.0.try_lock() {
                Ok(locked) => locked,
                // The state that it protects is embassy-sync's, which no panic spoils.
                Err(TryLockError::Poisoned(locked)) => locked.into_inner(),
                Err(TryLockError::WouldBlock) => unreachable!("locked twice at once"),
            };
            CRITICAL.set(CRITICAL.get() + 1);
            let _critical = Critical;
            work()
        };
        boundary();
        result
    }
}

/// Has `interrupt` called at each boundary of this thread from now on. It may use the queue: the
/// boundaries that it passes meanwhile call it too.
pub fn interrupt_with(interrupt: impl Fn() + 'static) {
    INTERRUPT.set(Some(Rc::new(interrupt)));
}

/// A place where an interrupt may come, unless it is within a critical section.
pub fn boundary() {
    if !is_critical()
        && let Some(interrupt) = INTERRUPT.with_borrow(Option::clone)
    {
        interrupt();
    }
}

/// Whether this thread is in a critical section.
pub fn is_critical() -> bool {
    CRITICAL.get() > 0
}

thread_local! {
    static INTERRUPT: RefCell<Option<Rc<dyn Fn()>>> = const { RefCell::new(None) };
    /// How many critical sections this thread is in.
    static CRITICAL: Cell<usize> = const { Cell::new(0) };
}

/// A critical section, also if it ends with a panic.
struct Critical;

impl Drop for Critical {
    fn drop(&mut self) {
        CRITICAL.set(CRITICAL.get() - 1);
    }
}
