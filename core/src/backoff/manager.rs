//! Backoffs that start over after a while, by the time between their calls.

use core::time::Duration;

use super::Backoff;
use crate::Instant;

/// The source of the pauses of a loop that runs for ever.
///
/// apimachinery's `BackoffManager` returns timers. This returns durations, because waiting depends
/// on the runtime. Its `NewJitteredBackoffManager` is a [`Backoff`] with a duration and a jitter,
/// and no steps.
///
/// # Contract
///
/// - `next_delay` MUST be bounded in time and MUST NOT wait.
/// - It is called once for each pause. `now` is the time of the call, from a clock that does not go
///   backwards; a manager MUST NOT panic if it does.
///
/// # Examples
///
/// A custom manager, with which a loop runs on the full second:
///
/// ```
/// use core::time::Duration;
/// use requeue_core::backoff::{BackoffManager, no_jitter};
/// use requeue_core::Instant;
///
/// struct OnTheSecond;
///
/// impl BackoffManager for OnTheSecond {
///     fn next_delay<R>(&mut self, now: Instant, _rng: &mut R) -> Duration
///     where
///         R: FnMut() -> u64 + ?Sized,
///     {
///         const SECOND: u64 = 1_000_000_000;
///         Duration::from_nanos(SECOND - now.as_nanos() % SECOND)
///     }
/// }
///
/// let now = Instant::from_nanos(300_000_000);
/// assert_eq!(OnTheSecond.next_delay(now, &mut no_jitter), Duration::from_millis(700));
/// ```
pub trait BackoffManager {
    /// Returns the pause to make from `now` on, and moves on to the next one.
    #[must_use = "the backoff has moved on: this pause is not returned again"]
    fn next_delay<R: FnMut() -> u64 + ?Sized>(&mut self, now: Instant, rng: &mut R) -> Duration;
}

/// apimachinery's `Backoff.DelayFunc`: never starts over.
impl BackoffManager for Backoff {
    fn next_delay<R: FnMut() -> u64 + ?Sized>(&mut self, _now: Instant, rng: &mut R) -> Duration {
        self.step(rng)
    }
}

impl<M: BackoffManager + ?Sized> BackoffManager for &mut M {
    fn next_delay<R: FnMut() -> u64 + ?Sized>(&mut self, now: Instant, rng: &mut R) -> Duration {
        (**self).next_delay(now, rng)
    }
}

/// A backoff that starts over periodically: apimachinery's `Backoff.DelayWithReset`.
///
/// The first call more than the interval after the last start starts over, even if the loop has
/// been busy in between. Two special cases are the same as in apimachinery:
///
/// - A factor of zero (or below) needs no reset: this is the plain backoff.
/// - An interval of zero means no backoff: the duration never grows. (There also a negative one.)
///
/// # Cost
///
/// O(1): that of [`Backoff::step`].
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use requeue_core::backoff::{Backoff, BackoffManager, no_jitter};
/// use requeue_core::Instant;
///
/// let backoff = Backoff {
///     duration: Duration::from_secs(1),
///     factor: 2.0,
///     steps: 10,
///     ..Backoff::default()
/// };
/// let mut delays = backoff.delay_with_reset(Duration::from_secs(60), Instant::EPOCH);
/// let mut next = |at| {
///     let now = Instant::EPOCH + Duration::from_secs(at);
///     delays.next_delay(now, &mut no_jitter).as_secs()
/// };
/// assert_eq!([next(0), next(30), next(60)], [1, 2, 4]);
/// assert_eq!([next(61), next(90)], [1, 2]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct DelayWithReset {
    initial: Backoff,
    current: Backoff,
    /// `None` if the backoff never starts over.
    reset_interval: Option<Duration>,
    last_start: Instant,
}

impl DelayWithReset {
    /// Creates a backoff that starts over each `reset_interval`. The first one begins at `now`.
    pub const fn new(backoff: Backoff, reset_interval: Duration, now: Instant) -> Self {
        let mut initial = backoff;
        let reset_interval = if backoff.factor <= 0.0 {
            None
        } else if reset_interval.is_zero() {
            initial.factor = 0.0;
            initial.steps = 0;
            None
        } else {
            Some(reset_interval)
        };
        Self {
            initial,
            current: initial,
            reset_interval,
            last_start: now,
        }
    }
}

impl BackoffManager for DelayWithReset {
    fn next_delay<R: FnMut() -> u64 + ?Sized>(&mut self, now: Instant, rng: &mut R) -> Duration {
        if let Some(interval) = self.reset_interval
            && now.saturating_since(self.last_start) > interval
        {
            self.current = self.initial;
            self.last_start = now;
        }
        self.current.step(rng)
    }
}

/// A backoff that starts over after a time without calls: `NewExponentialBackoffManager`.
///
/// Unlike [`DelayWithReset`] it counts from its own last call. A loop that keeps failing keeps
/// calling, and waits longer and longer. A loop that ran well for more than the reset time starts
/// over. It never runs out of steps.
///
/// A pause longer than the reset time also counts as a time without calls, so the reset time should
/// be longer than the cap.
///
/// # Cost
///
/// O(1): that of [`Backoff::step`].
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use requeue_core::backoff::{Backoff, BackoffManager, ExponentialBackoffManager, no_jitter};
/// use requeue_core::Instant;
///
/// let backoff = Backoff {
///     duration: Duration::from_secs(1),
///     factor: 2.0,
///     cap: Duration::from_secs(3),
///     ..Backoff::default()
/// };
/// let mut manager =
///     ExponentialBackoffManager::new(backoff, Duration::from_secs(60), Instant::EPOCH);
/// let mut next = |at| {
///     let now = Instant::EPOCH + Duration::from_secs(at);
///     manager.next_delay(now, &mut no_jitter).as_secs()
/// };
/// assert_eq!([next(0), next(50), next(100)], [1, 2, 3]);
/// assert_eq!([next(160), next(221)], [3, 1]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct ExponentialBackoffManager {
    initial: Backoff,
    current: Backoff,
    reset_after: Duration,
    last_call: Instant,
}

impl ExponentialBackoffManager {
    /// The number of steps that apimachinery uses instead of the caller's
    /// [`steps`](Backoff::steps): `math.MaxInt32`, so that they are never used up.
    const STEPS: u32 = i32::MAX as u32;

    /// Creates a backoff that starts over at a call more than `reset_after` after the call before,
    /// or after `now` for the first call.
    ///
    /// The [`steps`](Backoff::steps) are not used: only the cap ends the growth.
    pub const fn new(backoff: Backoff, reset_after: Duration, now: Instant) -> Self {
        let mut initial = backoff;
        initial.steps = Self::STEPS;
        Self {
            initial,
            current: initial,
            reset_after,
            last_call: now,
        }
    }
}

impl BackoffManager for ExponentialBackoffManager {
    fn next_delay<R: FnMut() -> u64 + ?Sized>(&mut self, now: Instant, rng: &mut R) -> Duration {
        if now.saturating_since(self.last_call) > self.reset_after {
            self.current = self.initial;
        }
        self.last_call = now;
        self.current.step(rng)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backoff::no_jitter;

    const BACKOFF: Backoff = Backoff {
        duration: Duration::from_secs(1),
        factor: 2.0,
        jitter: 0.0,
        steps: 3,
        cap: Duration::ZERO,
    };

    /// The delay at second `at`, in seconds.
    fn next(manager: &mut impl BackoffManager, at: u64) -> u64 {
        let now = Instant::EPOCH + Duration::from_secs(at);
        manager.next_delay(now, &mut no_jitter).as_secs()
    }

    #[test]
    fn a_backoff_by_itself_does_not_start_over() {
        let mut backoff = BACKOFF;
        let mut borrowed = &mut backoff;
        let delays = [0, 1, u64::MAX].map(|at| next(&mut borrowed, at));
        assert_eq!(delays, [1, 2, 4]);
        assert_eq!(backoff.steps, 0);
    }

    #[test]
    fn reset_gives_the_steps_back() {
        let mut delays = BACKOFF.delay_with_reset(Duration::from_secs(10), Instant::EPOCH);
        let before = [0, 1, 2, 3, 10].map(|at| next(&mut delays, at));
        assert_eq!(before, [1, 2, 4, 8, 8]);
        let after = [11, 21, 22].map(|at| next(&mut delays, at));
        assert_eq!(after, [1, 2, 1]);
    }

    #[test]
    fn reset_interval_zero_is_no_backoff() {
        let mut delays = BACKOFF.delay_with_reset(Duration::ZERO, Instant::EPOCH);
        assert_eq!([0, 0, 9].map(|at| next(&mut delays, at)), [1, 1, 1]);
    }

    #[test]
    fn reset_without_factor_is_the_backoff_as_it_is() {
        for factor in [0.0, -1.0] {
            let backoff = Backoff { factor, ..BACKOFF };
            let mut delays = backoff.delay_with_reset(Duration::from_secs(1), Instant::EPOCH);
            let mut plain = backoff;
            for at in [0, 5, 10] {
                assert_eq!(next(&mut delays, at), next(&mut plain, at));
            }
        }
    }

    #[test]
    fn the_manager_counts_from_its_last_call() {
        let reset_after = Duration::from_secs(10);
        let start = Instant::EPOCH + Duration::from_secs(100);
        let mut manager = ExponentialBackoffManager::new(BACKOFF, reset_after, start);
        let delays = [110, 120, 130, 140, 150].map(|at| next(&mut manager, at));
        assert_eq!(delays, [1, 2, 4, 8, 16], "its steps are not the caller's");
        assert_eq!([161, 171].map(|at| next(&mut manager, at)), [1, 2]);
    }

    #[test]
    fn the_manager_starts_over_after_the_cap() {
        let backoff = Backoff {
            cap: Duration::from_secs(3),
            ..BACKOFF
        };
        let reset_after = Duration::from_secs(10);
        let mut manager = ExponentialBackoffManager::new(backoff, reset_after, Instant::EPOCH);
        let delays = [0, 1, 2, 3, 14, 15].map(|at| next(&mut manager, at));
        assert_eq!(delays, [1, 2, 3, 3, 1, 2]);
    }

    #[test]
    fn a_clock_that_goes_backwards_starts_nothing_over() {
        let mut delays = BACKOFF.delay_with_reset(Duration::from_secs(5), Instant::NEVER);
        assert_eq!([9, 3, 0].map(|at| next(&mut delays, at)), [1, 2, 4]);
        let mut manager =
            ExponentialBackoffManager::new(BACKOFF, Duration::from_secs(5), Instant::NEVER);
        assert_eq!([9, 3, 0].map(|at| next(&mut manager, at)), [1, 2, 4]);
    }
}
