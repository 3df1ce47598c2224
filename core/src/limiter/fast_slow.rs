//! A few fast retries, then slow ones. Owns the number of fast retries; never looks at the time.

use core::time::Duration;

use crate::Instant;
use crate::limiter::RateLimiter;

/// A key waits `fast` for its first `max_fast_attempts` failures and `slow` for every later one.
///
/// client-go's `ItemFastSlowRateLimiter`. The record of a key is its number of failures. client-go
/// accepts a negative number of attempts, which has the effect of zero.
///
/// # Cost
///
/// O(1): one comparison. 4 bytes per key.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use requeue::limiter::{FastSlow, RateLimiter};
/// use requeue::Instant;
///
/// let mut limiter = FastSlow::new(Duration::from_millis(5), Duration::from_secs(10), 2);
/// let mut failures = 0;
/// let mut when = || limiter.when(&mut failures, Instant::EPOCH).as_millis();
/// assert_eq!([when(), when(), when()], [5, 5, 10_000]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[doc(alias = "ItemFastSlowRateLimiter")]
#[doc(alias = "TypedItemFastSlowRateLimiter")]
pub struct FastSlow {
    fast: Duration,
    slow: Duration,
    max_fast_attempts: u32,
}

impl FastSlow {
    /// Creates a limiter that delays the first `max_fast_attempts` retries of a key by `fast`, and
    /// all later ones by `slow`.
    pub const fn new(fast: Duration, slow: Duration, max_fast_attempts: u32) -> Self {
        Self {
            fast,
            slow,
            max_fast_attempts,
        }
    }
}

impl RateLimiter for FastSlow {
    type Record = u32;

    fn when(&mut self, failures: &mut u32, _now: Instant) -> Duration {
        *failures = failures.saturating_add(1);
        if *failures <= self.max_fast_attempts {
            self.fast
        } else {
            self.slow
        }
    }

    fn failures(&self, failures: &u32) -> u32 {
        *failures
    }

    fn set_failures(&self, failures: &mut u32, count: u32) {
        *failures = count;
    }
}

#[cfg(test)]
mod tests {
    //! The case named after client-go re-expresses util/workqueue/default_rate_limiters_test.go.

    use super::*;

    const FAST: Duration = Duration::from_millis(5);
    const SLOW: Duration = Duration::from_secs(10);

    #[test]
    fn item_fast_slow_rate_limiter() {
        let mut limiter = FastSlow::new(FAST, SLOW, 3);
        let (mut one, mut two) = (0, 0);
        for expected in [FAST, FAST, FAST, SLOW, SLOW] {
            assert_eq!(limiter.when(&mut one, Instant::EPOCH), expected);
        }
        assert_eq!(limiter.failures(&one), 5);

        assert_eq!(limiter.when(&mut two, Instant::EPOCH), FAST);
        assert_eq!(limiter.when(&mut two, Instant::EPOCH), FAST);
        assert_eq!(limiter.failures(&two), 2);

        one = Default::default();
        assert_eq!(limiter.failures(&one), 0);
        assert_eq!(limiter.when(&mut one, Instant::EPOCH), FAST);
    }

    #[test]
    fn no_fast_attempts_is_slow_from_the_start() {
        let mut limiter = FastSlow::new(FAST, SLOW, 0);
        assert_eq!(limiter.when(&mut 0, Instant::EPOCH), SLOW);
    }

    #[test]
    fn the_count_of_failures_saturates() {
        let mut limiter = FastSlow::new(FAST, SLOW, u32::MAX - 1);
        let mut failures = u32::MAX - 2;
        assert_eq!(limiter.when(&mut failures, Instant::EPOCH), FAST);
        assert_eq!(limiter.when(&mut failures, Instant::EPOCH), SLOW);
        assert_eq!(limiter.when(&mut failures, Instant::EPOCH), SLOW);
        assert_eq!(limiter.failures(&failures), u32::MAX);
    }
}
