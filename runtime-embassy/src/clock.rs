//! Clocks that tasks can wait on: embassy-time's, and one that a test moves. Owns the conversion
//! between ticks and nanoseconds; never decides whom to wake for a key.

use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;

use embassy_sync::blocking_mutex::raw::{CriticalSectionRawMutex, RawMutex};
use embassy_time::TICK_HZ;
use requeue_core::Instant;
use requeue_core::binding::{Clock, Lock, Timer};

use crate::sync::Locked;

/// embassy-time's clock, with the driver and the tick rate that the firmware has chosen.
///
/// Its epoch is the driver's. It shows the beginning of the current tick, and an alarm is set for
/// the first tick that does not begin before the deadline: by this clock no key is early. As with
/// embassy-time's own timers, a delay counts from the beginning of the tick in which it is
/// requested.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use requeue::embassy::QueueClock;
///
/// let earlier = QueueClock.now();
/// // A test on the host moves the time itself; a board need not.
/// embassy_time::MockDriver::get().advance(embassy_time::Duration::from_secs(3600));
/// assert_eq!(QueueClock.now(), earlier + Duration::from_secs(3600));
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct QueueClock;

impl QueueClock {
    /// Returns the time at the beginning of the current tick.
    #[inline]
    pub fn now(self) -> Instant {
        Self::at(embassy_time::Instant::now())
    }

    /// Converts one of embassy-time's instants.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue::embassy::QueueClock;
    /// use requeue::embassy::Instant;
    ///
    /// let second = embassy_time::Instant::from_secs(1);
    /// assert_eq!(QueueClock::at(second), Instant::EPOCH + Duration::from_secs(1));
    /// ```
    pub const fn at(instant: embassy_time::Instant) -> Instant {
        instant_of(instant.as_ticks(), TICK_HZ)
    }

    /// Converts to one of embassy-time's instants: the first tick that does not begin before this
    /// instant. [`Instant::NEVER`] becomes about the last tick.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue::embassy::{QueueClock, Instant};
    ///
    /// let second = Instant::EPOCH + Duration::from_secs(1);
    /// assert_eq!(QueueClock::to_embassy(second), embassy_time::Instant::from_secs(1));
    /// ```
    pub const fn to_embassy(instant: Instant) -> embassy_time::Instant {
        embassy_time::Instant::from_ticks(ticks_until(instant, TICK_HZ))
    }
}

impl Clock for QueueClock {
    #[inline]
    fn now(&self) -> Instant {
        (*self).now()
    }
}

impl Timer for QueueClock {
    type Alarm = embassy_time::Timer;

    fn set_alarm(&self, mut alarm: Pin<&mut Option<embassy_time::Timer>>, until: Option<Instant>) {
        alarm.set(until.map(|due| embassy_time::Timer::at(Self::to_embassy(due))));
    }
}

/// A clock that stands still until a test moves it. A queue takes it by reference, because it
/// belongs to the test.
///
/// Moving it wakes the tasks whose deadlines have passed, in every call that waits: `get`, `run`,
/// [`backoff_until`](crate::backoff_until) and the rest. A reference to the clock is a [`Timer`].
///
/// It has places for the wakers of eight tasks. One more task pushes another out, which is woken
/// and polls again until it finds a place.
///
/// # Examples
///
/// ```
/// use core::pin::pin;
/// use core::time::Duration;
/// use embassy_futures::poll_once;
/// use requeue::embassy::limiter::{Exponential, default_item_based};
/// use requeue::embassy::priority::Plain;
/// use requeue::embassy::raw::NoopRawMutex;
/// use requeue::embassy::{ManualClock, Queue, WorkQueue};
///
/// type ByHand<'c> = ((), u8, &'c ManualClock<NoopRawMutex>);
/// type Probes<'c> = WorkQueue<NoopRawMutex, u8, 4, Plain, Exponential, 3, ByHand<'c>>;
///
/// let clock = ManualClock::new();
/// let queue: Probes<'_> = WorkQueue::from_queue(Queue::new(default_item_based()), &clock);
/// let _ = queue.add_after(17, Duration::from_secs(3600));
/// let mut worker = pin!(queue.get());
/// assert!(poll_once(worker.as_mut()).is_pending());
///
/// clock.advance(Duration::from_secs(3600));
/// assert!(poll_once(worker.as_mut()).is_ready());
/// ```
#[derive(Debug)]
pub struct ManualClock<R: RawMutex = CriticalSectionRawMutex> {
    manual: Locked<R, Manual>,
}

#[derive(Debug)]
struct Manual {
    now: Instant,
    sleepers: [Option<Sleeper>; SLEEPERS_MAX],
    /// The place that is given to the next task if none is free.
    next_place: usize,
}

/// A task that waits, until its waker is called.
#[derive(Debug)]
struct Sleeper {
    until: Instant,
    waker: Waker,
}

const SLEEPERS_MAX: usize = 8;

impl<R: RawMutex> ManualClock<R> {
    /// Creates a clock that shows its epoch.
    pub const fn new() -> Self {
        Self {
            manual: Locked::new(Manual {
                now: Instant::EPOCH,
                sleepers: [const { None }; SLEEPERS_MAX],
                next_place: 0,
            }),
        }
    }

    /// Returns the time that the clock shows.
    pub fn now(&self) -> Instant {
        self.manual.with(|manual| manual.now)
    }

    /// Moves the clock forward, to [`Instant::NEVER`] at most, and wakes the tasks whose deadlines
    /// have passed.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue::embassy::ManualClock;
    /// use requeue::embassy::Instant;
    /// use requeue::embassy::raw::NoopRawMutex;
    ///
    /// let clock: ManualClock<NoopRawMutex> = ManualClock::new();
    /// clock.advance(Duration::from_secs(60));
    /// clock.advance(Duration::from_secs(30));
    /// assert_eq!(clock.now(), Instant::EPOCH + Duration::from_secs(90));
    /// ```
    pub fn advance(&self, by: Duration) {
        self.change(|now| now + by);
    }

    /// Sets the clock, and wakes as [`advance`](Self::advance) does. `now` must not lie in the
    /// past, because a [`Clock`] does not go backwards.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::embassy::ManualClock;
    /// use requeue::embassy::Instant;
    /// use requeue::embassy::raw::NoopRawMutex;
    ///
    /// let clock: ManualClock<NoopRawMutex> = ManualClock::new();
    /// clock.set(Instant::from_nanos(1_000_000));
    /// assert_eq!(clock.now(), Instant::from_nanos(1_000_000));
    /// ```
    pub fn set(&self, now: Instant) {
        self.change(|_| now);
    }

    fn change(&self, change: impl FnOnce(Instant) -> Instant) {
        // Woken after the lock, because a waker is foreign code.
        let due = self.manual.with(|manual| {
            manual.now = change(manual.now);
            let Manual { now, sleepers, .. } = manual;
            sleepers
                .each_mut()
                .map(|place| place.take_if(|sleeper| sleeper.until <= *now))
        });
        let due = due.into_iter().flatten();
        due.for_each(|sleeper| sleeper.waker.wake());
    }
}

impl<R: RawMutex> Default for ManualClock<R> {
    fn default() -> Self {
        Self::new()
    }
}

impl<R: RawMutex> Clock for ManualClock<R> {
    fn now(&self) -> Instant {
        self.now()
    }
}

impl<'c, R: RawMutex> Timer for &'c ManualClock<R> {
    type Alarm = ManualAlarm<'c, R>;

    fn set_alarm(&self, mut alarm: Pin<&mut Option<Self::Alarm>>, until: Option<Instant>) {
        let clock = *self;
        alarm.set(until.map(|until| ManualAlarm { clock, until }));
    }
}

/// An alarm of a [`ManualClock`].
#[derive(Debug)]
pub struct ManualAlarm<'c, R: RawMutex> {
    clock: &'c ManualClock<R>,
    until: Instant,
}

impl<R: RawMutex> Future for ManualAlarm<'_, R> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let (until, waker) = (self.until, context.waker().clone());
        let replaced = self.clock.manual.with(|manual| {
            if manual.now >= until {
                return Err(waker);
            }
            Ok(manual.register(Sleeper { until, waker }))
        });
        // Woken and dropped after the lock, because a waker is foreign code.
        let Ok(replaced) = replaced else {
            return Poll::Ready(());
        };
        if let Some(Sleeper { waker, .. }) = replaced
            && !waker.will_wake(context.waker())
        {
            waker.wake();
        }
        Poll::Pending
    }
}

impl Manual {
    /// Returns the sleeper whose place the new one has.
    fn register(&mut self, mut new: Sleeper) -> Option<Sleeper> {
        let is_own = |sleeper: &Sleeper| sleeper.waker.will_wake(&new.waker);
        let mut places = self.sleepers.iter();
        let own = places.position(|place| place.as_ref().is_some_and(is_own));
        let free = || self.sleepers.iter().position(Option::is_none);
        let place = own.or_else(free).unwrap_or_else(|| {
            self.next_place = (self.next_place + 1) % SLEEPERS_MAX;
            self.next_place
        });
        let place = self.sleepers.get_mut(place)?;
        if let (Some(_), Some(present)) = (own, &place) {
            // A task may wait for several alarms: the clock knows the earliest.
            new.until = new.until.min(present.until);
        }
        place.replace(new)
    }
}

const NANOS_PER_SEC: u64 = 1_000_000_000;

/// The instant at which a tick begins, its fraction of a nanosecond cut off.
///
/// `hz` is a constant at every call. For rates that divide a second evenly only a multiplication is
/// left, and for powers of two no division, which takes hundreds of instructions on a processor
/// without one for it.
#[inline]
pub(crate) const fn instant_of(ticks: u64, hz: u64) -> Instant {
    if NANOS_PER_SEC.is_multiple_of(hz) {
        return Instant::from_nanos(ticks.saturating_mul(NANOS_PER_SEC / hz));
    }
    // The remainder is less than `hz`, and the fastest rate has 33 bits: the product fits.
    let rest = (ticks % hz) * NANOS_PER_SEC / hz;
    let whole = (ticks / hz).saturating_mul(NANOS_PER_SEC);
    Instant::from_nanos(whole.saturating_add(rest))
}

/// The first tick that does not begin before an instant.
#[inline]
pub(crate) const fn ticks_until(due: Instant, hz: u64) -> u64 {
    let nanos = due.as_nanos();
    if NANOS_PER_SEC.is_multiple_of(hz) {
        return nanos.div_ceil(NANOS_PER_SEC / hz);
    }
    let rest = ((nanos % NANOS_PER_SEC) * hz).div_ceil(NANOS_PER_SEC);
    let whole = (nanos / NANOS_PER_SEC).saturating_mul(hz);
    whole.saturating_add(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATES: [u64; 12] = [
        1,
        100,
        128,
        1_000,
        1_024,
        32_768,
        1_000_000,
        12_000_000,
        64_000_000,
        1_000_000_000,
        1_310_720_000,
        5_242_880_000,
    ];

    /// Small numbers, large ones, and what lies around whole seconds.
    fn samples(unit: u64) -> impl Iterator<Item = u64> {
        let near = |n: u64| n.saturating_sub(2)..=n.saturating_add(2);
        let seconds = [0, 1, 2, 59, 86_400, 31_536_000, 3_153_600_000];
        let whole = seconds.map(|n| unit.saturating_mul(n));
        let powers = (0..64).map(|bit| 1_u64 << bit);
        whole.into_iter().chain(powers).flat_map(near)
    }

    #[test]
    fn the_clock_shows_the_beginning_of_a_tick() {
        for hz in RATES {
            for ticks in samples(hz) {
                let exact = u128::from(ticks) * 1_000_000_000 / u128::from(hz);
                let exact = u64::try_from(exact).unwrap_or(u64::MAX);
                let shown = instant_of(ticks, hz).as_nanos();
                assert_eq!(shown, exact, "tick {ticks} at {hz} Hz");
            }
        }
    }

    #[test]
    fn an_alarm_rings_at_the_first_tick_that_is_not_early() {
        for hz in RATES {
            for nanos in samples(NANOS_PER_SEC) {
                let due = Instant::from_nanos(nanos);
                let ticks = ticks_until(due, hz);
                if ticks == u64::MAX {
                    let reach = u128::from(nanos) * u128::from(hz) / 1_000_000_000;
                    assert!(reach >= u128::from(u64::MAX), "{nanos} ns at {hz} Hz");
                    continue;
                }
                assert!(instant_of(ticks, hz) >= due, "{nanos} ns at {hz} Hz: early");
                let before = ticks.checked_sub(1).map(|tick| instant_of(tick, hz));
                assert!(
                    before.is_none_or(|before| before < due),
                    "{nanos} ns at {hz} Hz: a tick late"
                );
            }
        }
    }

    #[test]
    fn a_whole_tick_comes_back_as_itself() {
        // Where a tick is a nanosecond or longer, no two of them begin at the same one.
        for hz in RATES.into_iter().filter(|hz| *hz <= NANOS_PER_SEC) {
            for ticks in samples(hz) {
                let begin = instant_of(ticks, hz);
                if !begin.is_never() {
                    assert_eq!(ticks_until(begin, hz), ticks, "tick {ticks} at {hz} Hz");
                }
            }
        }
    }
}
