//! Time as the queue sees it: a number of nanoseconds, passed in by the caller. Owns the
//! arithmetic, which saturates; reads no clock.

use core::fmt;
use core::time::Duration;

/// The source of time of a runtime.
///
/// # Contract
///
/// - `now` MUST NOT go backwards. If it does, the queue stays valid and loses nothing, but delayed
///   keys become ready that much later.
/// - The epoch may be any (program start, boot, queue creation) but MUST stay the same for the life
///   of the queue.
/// - `now` MUST be cheap and MUST NOT touch the queue: it is called while the queue is locked.
///
/// # Examples
///
/// ```
/// use core::cell::Cell;
/// use requeue::Instant;
/// use requeue::binding::Clock;
///
/// /// A clock that a test moves by hand.
/// struct Manual(Cell<u64>);
///
/// impl Clock for Manual {
///     fn now(&self) -> Instant {
///         Instant::from_nanos(self.0.get())
///     }
/// }
///
/// let clock = Manual(Cell::new(7));
/// assert_eq!(clock.now(), Instant::from_nanos(7));
/// ```
pub trait Clock {
    /// Returns the time that has passed since the clock's epoch.
    fn now(&self) -> Instant;
}

impl<C: Clock + ?Sized> Clock for &C {
    fn now(&self) -> Instant {
        (**self).now()
    }
}

/// A point in time: nanoseconds since the epoch of the queue's [`Clock`].
///
/// 64 bits of nanoseconds cover 584 years. All arithmetic saturates. The last instant,
/// [`Instant::NEVER`], is a deadline that never comes, and for which no timer is set.
///
/// The clock of each runtime converts to and from that runtime's own instants:
/// `queue.clock().at(instant)` returns one of these, and `to_std`, `to_tokio` or `to_embassy` goes
/// the other way.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use requeue::Instant;
///
/// let start = Instant::from_nanos(5);
/// assert_eq!(start + Duration::from_nanos(2), Instant::from_nanos(7));
/// assert_eq!(start + Duration::MAX, Instant::NEVER);
/// assert_eq!(Instant::from_nanos(7) - start, Duration::from_nanos(2));
/// assert_eq!(start - Instant::from_nanos(9), Duration::ZERO);
///
/// assert!(Instant::NEVER.is_never());
/// assert_eq!(Instant::NEVER.to_string(), "never");
/// assert_eq!(Instant::from_nanos(1_500_000_000).to_string(), "1.5s");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Instant(u64);

impl Instant {
    /// The clock's epoch.
    pub const EPOCH: Self = Self(0);

    /// Later than every deadline: a key that waits for it waits until it is added again. A clock
    /// must not return it, because a delay of zero that begins then never ends.
    pub const NEVER: Self = Self(u64::MAX);

    /// Whether this time is still to come. What never comes is, also at the end of time.
    #[inline]
    pub(crate) const fn is_after(self, now: Self) -> bool {
        self.0 > now.0 || self.is_never()
    }

    /// Creates the instant `nanos` nanoseconds after the epoch.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Returns the number of nanoseconds since the epoch.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the instant that is `delay` later, [`Instant::NEVER`] if that overflows.
    pub const fn saturating_add(self, delay: Duration) -> Self {
        Self(self.0.saturating_add(nanos(delay)))
    }

    /// Returns the time from `earlier` to this instant, zero if `earlier` is later.
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// Returns whether this is [`Instant::NEVER`].
    pub const fn is_never(self) -> bool {
        self.0 == u64::MAX
    }
}

impl core::ops::Add<Duration> for Instant {
    type Output = Self;

    /// Saturates at [`Instant::NEVER`].
    fn add(self, delay: Duration) -> Self {
        self.saturating_add(delay)
    }
}

impl core::ops::Sub for Instant {
    type Output = Duration;

    /// The time from `earlier` to this instant, zero if `earlier` is later, as std's.
    fn sub(self, earlier: Self) -> Duration {
        self.saturating_since(earlier)
    }
}

impl core::ops::Sub<Duration> for Instant {
    type Output = Self;

    /// Saturates at [`Instant::EPOCH`]. [`Instant::NEVER`] stays.
    fn sub(self, duration: Duration) -> Self {
        if self.is_never() {
            return self;
        }
        Self(self.0.saturating_sub(nanos(duration)))
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_never() {
            f.write_str("never")
        } else {
            write!(f, "{:?}", Duration::from_nanos(self.0))
        }
    }
}

/// A duration in nanoseconds, `u64::MAX` if that overflows.
pub(crate) const fn nanos(duration: Duration) -> u64 {
    // 64-bit arithmetic only, because `Duration::as_nanos` would link 128-bit multiplication into
    // firmware.
    duration
        .as_secs()
        .saturating_mul(1_000_000_000)
        .saturating_add(duration.subsec_nanos() as u64)
}

/// The inverse of [`nanos`]. What was saturated becomes [`Duration::MAX`], so that "never" stays
/// "never" through any number of limiters.
pub(crate) const fn duration_from_nanos(nanos: u64) -> Duration {
    if nanos == u64::MAX {
        Duration::MAX
    } else {
        Duration::from_nanos(nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Stopped(Instant);

    impl Clock for Stopped {
        fn now(&self) -> Instant {
            self.0
        }
    }

    #[test]
    fn a_borrowed_clock_shows_the_same_time() {
        let clock = Stopped(Instant::from_nanos(7));
        assert_eq!(Clock::now(&&clock), Instant::from_nanos(7));
    }

    #[test]
    fn differences_saturate_and_never_stays() {
        let start = Instant::from_nanos(5);
        assert_eq!(start - Duration::from_nanos(2), Instant::from_nanos(3));
        assert_eq!(start - Duration::MAX, Instant::EPOCH);
        assert_eq!(Instant::NEVER - Duration::from_secs(1), Instant::NEVER);
        assert_eq!(start - Instant::NEVER, Duration::ZERO);
    }

    #[test]
    fn what_saturates_is_never() {
        assert_eq!(nanos(Duration::MAX), u64::MAX);
        assert_eq!(duration_from_nanos(u64::MAX), Duration::MAX);
        let last = Duration::from_nanos(u64::MAX - 1);
        assert_eq!(duration_from_nanos(nanos(last)), last);
    }
}
