//! An upper limit on the delays of another limiter. Owns the limit; keeps no record of its own.

use core::time::Duration;

use crate::Instant;
use crate::limiter::RateLimiter;

/// Limits the delays of another limiter to at most `max`.
///
/// client-go's `WithMaxWaitRateLimiter`. The inner limiter is charged in full: a bucket whose delay
/// is shortened here still counts every token.
///
/// # Cost
///
/// That of the inner limiter, and one comparison.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use requeue::limiter::{TokenBucket, RateLimiter, WithMaxWait};
/// use requeue::Instant;
///
/// let mut limiter = WithMaxWait::new(TokenBucket::new(1.0, 1), Duration::from_secs(2));
/// let mut when = || limiter.when(&mut (), Instant::EPOCH).as_secs();
/// assert_eq!([when(), when(), when(), when()], [0, 1, 2, 2]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[doc(alias = "WithMaxWaitRateLimiter")]
#[doc(alias = "TypedWithMaxWaitRateLimiter")]
pub struct WithMaxWait<L> {
    inner: L,
    max: Duration,
}

impl<L> WithMaxWait<L> {
    /// Creates a limiter that limits the delays of `inner` to at most `max`.
    pub const fn new(inner: L, max: Duration) -> Self {
        Self { inner, max }
    }
}

impl<L: RateLimiter> RateLimiter for WithMaxWait<L> {
    type Record = L::Record;

    fn when(&mut self, record: &mut L::Record, now: Instant) -> Duration {
        self.inner.when(record, now).min(self.max)
    }

    fn failures(&self, record: &L::Record) -> u32 {
        self.inner.failures(record)
    }

    fn set_failures(&self, record: &mut L::Record, count: u32) {
        self.inner.set_failures(record, count);
    }
}

#[cfg(test)]
mod tests {
    //! The case named after client-go re-expresses util/workqueue/default_rate_limiters_test.go.

    use super::*;
    use crate::limiter::{Exponential, TokenBucket};

    /// One delay for the first `threshold` calls, for any key, and another for the rest.
    struct Step {
        count: u32,
        threshold: u32,
        base: Duration,
        max: Duration,
    }

    impl RateLimiter for Step {
        type Record = ();

        fn when(&mut self, (): &mut (), _now: Instant) -> Duration {
            self.count += 1;
            if self.count <= self.threshold {
                self.base
            } else {
                self.max
            }
        }

        fn failures(&self, (): &()) -> u32 {
            0
        }

        fn set_failures(&self, (): &mut (), _: u32) {}
    }

    #[test]
    fn with_max_wait_rate_limiter() {
        let step = Step {
            count: 0,
            threshold: 100,
            base: Duration::from_millis(5),
            max: Duration::from_secs(1000),
        };
        let mut limiter = WithMaxWait::new(step, Duration::from_secs(500));
        for _ in 0..100 {
            let delay = limiter.when(&mut (), Instant::EPOCH);
            assert_eq!(delay, Duration::from_millis(5));
        }
        for _ in 100..200 {
            let delay = limiter.when(&mut (), Instant::EPOCH);
            assert_eq!(delay, Duration::from_secs(500));
        }
    }

    #[test]
    fn failures_count_past_the_limit() {
        let second = Duration::from_secs(1);
        let mut limiter = WithMaxWait::new(Exponential::new(second, second * 100), second);
        let mut failures = 0;
        for _ in 0..5 {
            assert_eq!(limiter.when(&mut failures, Instant::EPOCH), second);
        }
        assert_eq!(limiter.failures(&failures), 5);
    }

    #[test]
    fn shortens_the_infinite_delay() {
        let mut limiter = WithMaxWait::new(TokenBucket::new(0.0, 0), Duration::from_secs(3));
        let delay = limiter.when(&mut (), Instant::EPOCH);
        assert_eq!(delay, Duration::from_secs(3));
    }
}
