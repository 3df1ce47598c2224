//! What a loop needs of its board: a clock, an alarm, and a way to sleep.

use core::cell::Cell;
use core::task::Waker;
use core::time::Duration;

use critical_section::Mutex;
use requeue_core::Instant;
use requeue_core::binding::Clock;

/// A microcontroller: its clock ([`Clock::now`]), one alarm, and how it sleeps.
///
/// The queue calls the methods of this trait from [`get`](crate::WorkQueue::get) and other calls
/// that wait, never from an interrupt handler. It calls [`Clock::now`] from everywhere.
///
/// # Contract
///
/// - The clock never goes back, and its epoch does not change.
/// - An alarm whose time has passed MUST become pending immediately. Otherwise a deadline that
///   passes just before the sleep is missed.
/// - The interrupt handler of the alarm is yours. It MUST turn the alarm off with
///   [`arm`](Self::arm)`(None)`, unless the hardware does: otherwise the interrupt stays pending, and
///   the handler runs for ever. The queue sets the alarm before each sleep, and does not turn it off
///   when it wakes.
/// - [`idle`](Self::idle) MUST return once any interrupt is pending, also while interrupts are
///   masked. `wfi` does, on Cortex-M and on RISC-V.
///
/// # Examples
///
/// A machine timer that counts ten times a microsecond:
///
/// ```
/// use core::sync::atomic::{AtomicU64, Ordering};
/// use requeue::bare::limiter::default_item_based;
/// use requeue::bare::{Board, Clock, Instant, WorkQueue};
///
/// # static MTIME: AtomicU64 = AtomicU64::new(0);
/// # static MTIMECMP: AtomicU64 = AtomicU64::new(0);
/// # fn wfi() {}
/// struct Mtime;
///
/// impl Clock for Mtime {
///     fn now(&self) -> Instant {
///         Instant::from_nanos(MTIME.load(Ordering::Relaxed) * 100)
///     }
/// }
///
/// impl Board for Mtime {
///     fn arm(&self, at: Option<Instant>) {
///         let tick = at.map_or(u64::MAX, |at| at.as_nanos().div_ceil(100));
///         MTIMECMP.store(tick, Ordering::Relaxed);
///     }
///
///     fn idle(&self) {
///         wfi();
///     }
/// }
///
/// static SENSORS: WorkQueue<Mtime, u16, 8> = WorkQueue::new(default_item_based(), Mtime);
/// # let _ = SENSORS.add(17);
/// # SENSORS.get().unwrap().success();
/// ```
pub trait Board: Clock {
    /// Sets the alarm for the first tick that is not before `at`, or turns it off. It replaces the
    /// alarm that was set before. Called with interrupts masked.
    fn arm(&self, at: Option<Instant>);

    /// Sleeps until an interrupt is pending. May return earlier. Called with interrupts masked.
    fn idle(&self);

    /// Runs `work` with the interrupts of this core masked: a critical section, unless the board
    /// says otherwise. The core sleeps in it.
    ///
    /// With several cores the board MUST mask the interrupts of its own core alone. A critical
    /// section of several cores is a lock, and the others would wait for it while this one sleeps.
    fn masked<T>(&self, work: impl FnOnce() -> T) -> T {
        critical_section::with(|_| work())
    }

    /// Returns what wakes this core from [`idle`](Self::idle). With several cores it sends an
    /// interrupt to this one. With one core nothing needs to be woken: whatever adds a key is an
    /// interrupt itself. So by default it does nothing.
    fn waker(&self) -> Waker {
        Waker::noop().clone()
    }
}

impl<B: Board> Board for &B {
    fn arm(&self, at: Option<Instant>) {
        (**self).arm(at);
    }

    fn idle(&self) {
        (**self).idle();
    }

    fn masked<T>(&self, work: impl FnOnce() -> T) -> T {
        (**self).masked(work)
    }

    fn waker(&self) -> Waker {
        (**self).waker()
    }
}

/// A board for tests on the host. Its time passes only while the loop sleeps, and when a test moves
/// it: an hour of delays takes no time.
///
/// Sleeping moves the time to the alarm. Without an alarm nothing moves, so a call that waits for a
/// key that nothing adds never returns, as on a real board.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use requeue::bare::limiter::default_item_based;
/// use requeue::bare::{ManualClock, WorkQueue};
///
/// let board = ManualClock::new();
/// let queue: WorkQueue<&ManualClock, u16, 8> = WorkQueue::new(default_item_based(), &board);
/// let hour = Duration::from_secs(3600);
/// let _ = queue.add_after(17, hour);
/// queue.get().unwrap().success();
/// assert_eq!(board.elapsed(), hour);
/// ```
#[derive(Debug)]
pub struct ManualClock {
    now: Mutex<Cell<Duration>>,
    alarm: Mutex<Cell<Option<Instant>>>,
}

impl ManualClock {
    /// Creates a board whose time is zero.
    pub const fn new() -> Self {
        Self {
            now: Mutex::new(Cell::new(Duration::ZERO)),
            alarm: Mutex::new(Cell::new(None)),
        }
    }

    /// Lets time pass. Saturates.
    pub fn advance(&self, by: Duration) {
        critical_section::with(|section| {
            let now = self.now.borrow(section);
            now.set(now.get().saturating_add(by));
        });
    }

    /// Returns how much time has passed.
    pub fn elapsed(&self) -> Duration {
        critical_section::with(|section| self.now.borrow(section).get())
    }
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Instant {
        Instant::EPOCH + self.elapsed()
    }
}

impl Board for ManualClock {
    fn arm(&self, at: Option<Instant>) {
        critical_section::with(|section| self.alarm.borrow(section).set(at));
    }

    fn idle(&self) {
        critical_section::with(|section| {
            let now = self.now.borrow(section);
            if let Some(at) = self.alarm.borrow(section).take() {
                now.set(now.get().max(at - Instant::EPOCH));
            }
        });
    }
}
