//! The pauses of an endless loop: apimachinery's `DelayFunc` and `BackoffManager`. Owns the growth
//! and the restart of the pauses; never waits.

use core::time::Duration;

use super::Backoff;
use crate::Instant;

/// The number of steps of an endless backoff: apimachinery's `math.MaxInt32`.
const STEPS: u32 = i32::MAX as u32;

impl Backoff {
    /// Returns the pauses of this backoff, which never starts over: `Backoff.DelayFunc`. O(1), and
    /// [`step`](Self::step) for each pause.
    ///
    /// The closure takes the present time, and `rng` returns 64 random bits, as for `step`. A
    /// closure of your own does the same for a [`BackoffUntil`](crate::backoff::BackoffUntil). It
    /// must not wait, and must accept a time before the last one.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue::Instant;
    /// use requeue::backoff::{Backoff, no_jitter};
    ///
    /// let second = Duration::from_secs(1);
    /// let backoff = Backoff { duration: second, factor: 2.0, steps: 2, ..Backoff::default() };
    /// let mut next = backoff.delay_func(no_jitter);
    /// assert_eq!([(); 4].map(|()| next(Instant::EPOCH).as_secs()), [1, 2, 4, 4]);
    /// ```
    ///
    /// Pauses of your own, with which a loop runs on the full second:
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue::Instant;
    /// use requeue::backoff::BackoffUntil;
    ///
    /// const SECOND: u64 = 1_000_000_000;
    /// let on_the_second = |now: Instant| Duration::from_nanos(SECOND - now.as_nanos() % SECOND);
    /// let mut until = BackoffUntil::sliding(on_the_second);
    /// let now = Instant::from_nanos(300_000_000);
    /// until.start(now);
    /// assert_eq!(until.finish(now), Instant::from_nanos(SECOND));
    /// ```
    #[doc(alias = "BackoffManager")]
    #[doc(alias = "NewJitteredBackoffManager")]
    pub fn delay_func<R>(mut self, mut rng: R) -> impl FnMut(Instant) -> Duration
    where
        R: FnMut() -> u64,
    {
        move |_| self.step(&mut rng)
    }

    /// Returns the pauses of this backoff, which starts over after each `reset_interval`, counted
    /// from `now`: `Backoff.DelayWithReset`. Costs as [`delay_func`](Self::delay_func).
    ///
    /// The first call more than the interval after the last start starts over, even if the loop has
    /// been busy in between. Two special cases are the same as in apimachinery:
    ///
    /// - A factor of zero (or below) needs no reset: this is the plain backoff.
    /// - An interval of zero means no backoff: the duration never grows. (There also a negative
    ///   one.)
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue::Instant;
    /// use requeue::backoff::{Backoff, no_jitter};
    ///
    /// let second = Duration::from_secs(1);
    /// let backoff = Backoff { duration: second, factor: 2.0, steps: 10, ..Backoff::default() };
    /// let mut delays = backoff.delay_with_reset(60 * second, Instant::EPOCH, no_jitter);
    /// let mut next = |at| delays(Instant::EPOCH + at * second).as_secs();
    /// assert_eq!([next(0), next(30), next(60)], [1, 2, 4]);
    /// assert_eq!([next(61), next(90)], [1, 2]);
    /// ```
    pub fn delay_with_reset<R: FnMut() -> u64>(
        mut self,
        reset_interval: Duration,
        now: Instant,
        mut rng: R,
    ) -> impl FnMut(Instant) -> Duration {
        let resets = if self.factor <= 0.0 {
            false
        } else if reset_interval.is_zero() {
            self.factor = 0.0;
            self.steps = 0;
            false
        } else {
            true
        };
        let mut current = self;
        let mut last_start = now;
        move |now| {
            if resets && now.saturating_since(last_start) > reset_interval {
                current = self;
                last_start = now;
            }
            current.step(&mut rng)
        }
    }

    /// Returns the pauses of this backoff, which starts over at a call more than `reset_after`
    /// after the call before, or after `now` for the first call: `NewExponentialBackoffManager`.
    /// Costs as [`delay_func`](Self::delay_func).
    ///
    /// A loop that keeps failing keeps calling, and waits longer and longer. A loop that ran well
    /// for more than the reset time starts over. The [`steps`](Self::steps) are not used: only the
    /// cap ends the growth.
    ///
    /// A pause longer than the reset time also counts as a time without calls, so the reset time
    /// should be longer than the cap.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue::Instant;
    /// use requeue::backoff::{Backoff, no_jitter};
    ///
    /// let second = Duration::from_secs(1);
    /// let backoff =
    ///     Backoff { duration: second, factor: 2.0, cap: 3 * second, ..Backoff::default() };
    /// let mut delays = backoff.delay_with_idle_reset(60 * second, Instant::EPOCH, no_jitter);
    /// let mut next = |at| delays(Instant::EPOCH + at * second).as_secs();
    /// assert_eq!([next(0), next(50), next(100)], [1, 2, 3]);
    /// assert_eq!([next(160), next(221)], [3, 1]);
    /// ```
    #[doc(alias = "ExponentialBackoffManager")]
    #[doc(alias = "NewExponentialBackoffManager")]
    pub fn delay_with_idle_reset<R: FnMut() -> u64>(
        mut self,
        reset_after: Duration,
        now: Instant,
        mut rng: R,
    ) -> impl FnMut(Instant) -> Duration {
        self.steps = STEPS;
        let mut current = self;
        let mut last_call = now;
        move |now| {
            if now.saturating_since(last_call) > reset_after {
                current = self;
            }
            last_call = now;
            current.step(&mut rng)
        }
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
    fn next(delays: &mut impl FnMut(Instant) -> Duration, at: u64) -> u64 {
        delays(Instant::EPOCH + Duration::from_secs(at)).as_secs()
    }

    #[test]
    fn a_backoff_by_itself_does_not_start_over() {
        let mut delays = BACKOFF.delay_func(no_jitter);
        assert_eq!(
            [0, 1, 9, u64::MAX].map(|at| next(&mut delays, at)),
            [1, 2, 4, 8]
        );
    }

    #[test]
    fn reset_gives_the_steps_back() {
        let ten = Duration::from_secs(10);
        let mut delays = BACKOFF.delay_with_reset(ten, Instant::EPOCH, no_jitter);
        let before = [0, 1, 2, 3, 10].map(|at| next(&mut delays, at));
        assert_eq!(before, [1, 2, 4, 8, 8]);
        let after = [11, 21, 22].map(|at| next(&mut delays, at));
        assert_eq!(after, [1, 2, 1]);
    }

    #[test]
    fn reset_interval_zero_is_no_backoff() {
        let mut delays = BACKOFF.delay_with_reset(Duration::ZERO, Instant::EPOCH, no_jitter);
        assert_eq!([0, 0, 9].map(|at| next(&mut delays, at)), [1, 1, 1]);
    }

    #[test]
    fn reset_without_factor_is_the_backoff_as_it_is() {
        for factor in [0.0, -1.0] {
            let backoff = Backoff { factor, ..BACKOFF };
            for interval in [Duration::ZERO, Duration::from_secs(1)] {
                let mut delays = backoff.delay_with_reset(interval, Instant::EPOCH, no_jitter);
                let mut plain = backoff.delay_func(no_jitter);
                for at in [0, 5, 10] {
                    assert_eq!(next(&mut delays, at), next(&mut plain, at));
                }
            }
        }
    }

    #[test]
    fn an_idle_reset_counts_from_the_last_call() {
        let reset_after = Duration::from_secs(10);
        let start = Instant::EPOCH + Duration::from_secs(100);
        let mut delays = BACKOFF.delay_with_idle_reset(reset_after, start, no_jitter);
        let first = [110, 120, 130, 140, 150].map(|at| next(&mut delays, at));
        assert_eq!(first, [1, 2, 4, 8, 16], "its steps are not the caller's");
        assert_eq!([161, 171].map(|at| next(&mut delays, at)), [1, 2]);
    }

    #[test]
    fn an_idle_reset_starts_over_after_the_cap() {
        let backoff = Backoff {
            cap: Duration::from_secs(3),
            ..BACKOFF
        };
        let reset_after = Duration::from_secs(10);
        let mut delays = backoff.delay_with_idle_reset(reset_after, Instant::EPOCH, no_jitter);
        let delays = [0, 1, 2, 3, 14, 15].map(|at| next(&mut delays, at));
        assert_eq!(delays, [1, 2, 3, 3, 1, 2]);
    }

    #[test]
    fn a_clock_that_goes_backwards_starts_nothing_over() {
        let (five, never) = (Duration::from_secs(5), Instant::NEVER);
        let mut delays = BACKOFF.delay_with_reset(five, never, no_jitter);
        assert_eq!([9, 3, 0].map(|at| next(&mut delays, at)), [1, 2, 4]);
        let mut delays = BACKOFF.delay_with_idle_reset(five, never, no_jitter);
        assert_eq!([9, 3, 0].map(|at| next(&mut delays, at)), [1, 2, 4]);
    }
}
