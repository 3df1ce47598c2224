//! The clock of an RTIC monotonic, that tasks of RTIC can wait on without a time driver. Owns no
//! conversion: it is that of embassy-time's clock.

use core::fmt;
use core::marker::PhantomData;
use core::pin::Pin;

use requeue_core::Instant;
use requeue_core::binding::{Clock, Timer};
use rtic_time::timer_queue::{Delay, TimerQueueBackend};

use crate::clock::{instant_of, ticks_until};

/// The clock of an RTIC monotonic: of its backend `B`, with `HZ` ticks a second. A queue with this
/// clock needs no driver of embassy-time.
///
/// Its epoch is the monotonic's. It shows the beginning of the current tick, and an alarm is set for
/// the first tick that does not begin before the deadline. The ticks are `u64`, because a queue's
/// clock never goes back: the SysTick monotonic has them with the feature `systick-64bit`.
///
/// # Panics
///
/// A call that waits until a deadline panics in rtic-time if the monotonic was not started before.
///
/// # Examples
///
/// With `systick_monotonic!(Mono, 1_000)` of rtic-monotonics, the backend is `SystickBackend`:
///
/// ```
/// # use core::sync::atomic::{AtomicU64, Ordering};
/// # use rtic_time::timer_queue::{TimerQueue, TimerQueueBackend};
/// # static TICKS: AtomicU64 = AtomicU64::new(0);
/// # static QUEUE: TimerQueue<SystickBackend> = TimerQueue::new();
/// # struct SystickBackend;
/// # impl TimerQueueBackend for SystickBackend {
/// #     type Ticks = u64;
/// #     fn now() -> u64 { TICKS.load(Ordering::Relaxed) }
/// #     fn set_compare(_: u64) {}
/// #     fn clear_compare_flag() {}
/// #     fn pend_interrupt() {}
/// #     fn timer_queue() -> &'static TimerQueue<Self> { &QUEUE }
/// # }
/// use core::time::Duration;
/// use requeue::limiter::{Exponential, default_item_based};
/// use requeue::priority::Plain;
/// use requeue::embassy::raw::CriticalSectionRawMutex;
/// use requeue::embassy::{Queue, RticClock, WorkQueue};
///
/// type Mono = RticClock<SystickBackend, 1_000>;
/// type Jobs = WorkQueue<CriticalSectionRawMutex, u8, 16, Plain, Exponential, 3, ((), u8, Mono)>;
///
/// static JOBS: Jobs = WorkQueue::from_queue(Queue::new(default_item_based()), RticClock::new());
///
/// let _ = JOBS.add_after(17, Duration::from_millis(5));
/// assert!(JOBS.try_get().is_none());
/// # TICKS.store(5, Ordering::Relaxed);
/// // Five ticks later:
/// assert_eq!(*JOBS.try_get().unwrap(), 17);
/// ```
pub struct RticClock<B, const HZ: u64>(PhantomData<fn() -> B>);

impl<B, const HZ: u64> RticClock<B, HZ> {
    /// Creates the clock. O(1).
    pub const fn new() -> Self {
        const { assert!(HZ > 0, "a clock has at least one tick a second") };
        Self(PhantomData)
    }
}

impl<B, const HZ: u64> Clone for RticClock<B, HZ> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B, const HZ: u64> Copy for RticClock<B, HZ> {}

impl<B, const HZ: u64> Default for RticClock<B, HZ> {
    fn default() -> Self {
        Self::new()
    }
}

impl<B, const HZ: u64> fmt::Debug for RticClock<B, HZ> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RticClock").field("hz", &HZ).finish()
    }
}

impl<B: TimerQueueBackend<Ticks = u64>, const HZ: u64> Clock for RticClock<B, HZ> {
    #[inline]
    fn now(&self) -> Instant {
        instant_of(B::now(), HZ)
    }
}

impl<B: TimerQueueBackend<Ticks = u64>, const HZ: u64> Timer for RticClock<B, HZ> {
    type Alarm = Delay<'static, B>;

    fn set_alarm(&self, mut alarm: Pin<&mut Option<Delay<'static, B>>>, until: Option<Instant>) {
        let delay = |due| B::timer_queue().delay_until(ticks_until(due, HZ));
        alarm.set(until.map(delay));
    }
}
