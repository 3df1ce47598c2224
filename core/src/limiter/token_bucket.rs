//! A token bucket that all keys share. Owns the tokens, and the time of the next one; never looks
//! at a key.

use core::time::Duration;

use crate::Instant;
use crate::limiter::RateLimiter;
use crate::time::nanos;

/// The maximum of Go's `time.Duration`, which also limits the arithmetic of this bucket.
const NANOS_MAX: u64 = i64::MAX as u64;

/// A bucket for `burst` tokens, starts full and refills at `rate` tokens per second.
///
/// Every call takes one token. If none is left, it takes a future one, and the delay is the time
/// until the bucket has earned it: delays queue up, whichever key they belong to. The bucket keeps
/// no record of a single key, so its [`failures`](RateLimiter::failures) is always zero, and to
/// forget a key returns no token.
///
/// client-go's `BucketRateLimiter`, which is `Reserve` of `golang.org/x/time/rate`. The arithmetic
/// is the same in `f64`, operation by operation, and equal to the nanosecond:
///
/// | parameters | delay |
/// |---|---|
/// | rate [`TokenBucket::UNLIMITED_RATE`] or above | zero, for any burst |
/// | burst 0 | [`TokenBucket::INFINITE_DELAY`], and nothing is charged |
/// | rate 0 | zero for the first `burst` calls, then [`TokenBucket::INFINITE_DELAY`] |
/// | a rate that is negative or not a number | as rate 0 |
///
/// If the clock goes backwards, nothing is earned, and the bucket follows it: the same time is
/// earned a second time when the clock catches up. x/time/rate does the same.
///
/// # Cost
///
/// O(1): four multiplications and divisions of `f64`, in software on a processor without a floating
/// point unit. 32 bytes, and none per key.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use requeue::limiter::{TokenBucket, RateLimiter};
/// use requeue::Instant;
///
/// let mut bucket = TokenBucket::new(10.0, 2);
/// let mut when = |now| bucket.when(&mut (), Instant::from_nanos(now)).as_millis();
/// assert_eq!([when(0), when(0)], [0, 0]);
/// assert_eq!([when(0), when(0)], [100, 200]);
/// // After 300 ms the two borrowed tokens are paid back, and one more is earned.
/// assert_eq!([when(300_000_000), when(300_000_000)], [0, 100]);
/// ```
#[derive(Clone, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[doc(alias = "BucketRateLimiter")]
#[doc(alias = "TypedBucketRateLimiter")]
pub struct TokenBucket {
    /// Tokens per second: not NaN, not negative, at most [`TokenBucket::UNLIMITED_RATE`].
    rate: f64,
    burst: u32,
    /// Tokens at time `last`. Negative while future tokens are borrowed.
    tokens: f64,
    /// When a token was last taken.
    last: Instant,
}

impl TokenBucket {
    /// The rate that limits nothing: `rate.Inf` of x/time/rate.
    pub const UNLIMITED_RATE: f64 = f64::MAX;

    /// The delay for a token that never comes: `rate.InfDuration` of x/time/rate, 292 years.
    ///
    /// Unlike [`Duration::MAX`] it is a deadline, because a limiter around the bucket may compare
    /// and shorten it, as client-go's limiters do.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue::limiter::{TokenBucket, RateLimiter, WithMaxWait};
    /// use requeue::Instant;
    ///
    /// let mut closed = TokenBucket::new(10.0, 0);
    /// assert_eq!(closed.when(&mut (), Instant::EPOCH), TokenBucket::INFINITE_DELAY);
    /// let mut shortened = WithMaxWait::new(closed, Duration::from_secs(60));
    /// assert_eq!(shortened.when(&mut (), Instant::EPOCH), Duration::from_secs(60));
    /// ```
    pub const INFINITE_DELAY: Duration = Duration::from_nanos(NANOS_MAX);

    /// Creates a full bucket of `burst` tokens, which refills at `rate` tokens per second.
    pub const fn new(rate: f64, burst: u32) -> Self {
        let rate = if rate >= Self::UNLIMITED_RATE {
            Self::UNLIMITED_RATE
        } else if rate > 0.0 {
            rate
        } else {
            // Negative or NaN. With NaN, Go lets everything pass. A limiter without a valid rate
            // should let nothing pass.
            0.0
        };
        Self {
            rate,
            burst,
            tokens: burst as f64,
            last: Instant::EPOCH,
        }
    }

    /// Creates a full bucket of `burst` tokens that earns one token per `interval`: `rate.Every`.
    ///
    /// An interval of zero means no limit.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue::limiter::{TokenBucket, RateLimiter};
    /// use requeue::Instant;
    ///
    /// let mut bucket = TokenBucket::every(Duration::from_millis(250), 1);
    /// assert_eq!(bucket.when(&mut (), Instant::EPOCH), Duration::ZERO);
    /// assert_eq!(bucket.when(&mut (), Instant::EPOCH), Duration::from_millis(250));
    /// ```
    pub const fn every(interval: Duration, burst: u32) -> Self {
        if interval.is_zero() {
            Self::new(Self::UNLIMITED_RATE, burst)
        } else {
            Self::new(1.0 / seconds(nanos(interval)), burst)
        }
    }

    /// Creates a bucket that is never empty.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue::limiter::{TokenBucket, RateLimiter};
    /// use requeue::Instant;
    ///
    /// assert_eq!(TokenBucket::unlimited().when(&mut (), Instant::EPOCH), Duration::ZERO);
    /// ```
    pub const fn unlimited() -> Self {
        Self::new(Self::UNLIMITED_RATE, 0)
    }

    /// The number of tokens at `now`, at most a full bucket.
    fn tokens_at(&self, now: Instant) -> f64 {
        let elapsed = nanos(now.saturating_since(self.last)).min(NANOS_MAX);
        let tokens = self.tokens + seconds(elapsed) * self.rate;
        let full = f64::from(self.burst);
        // Not `f64::min`: some bare-metal C libraries lack the function that it may call.
        if tokens > full { full } else { tokens }
    }

    /// The time it takes to earn `tokens` tokens.
    fn time_to_earn(&self, tokens: f64) -> Duration {
        // The conversion truncates toward zero and saturates, even if a rate of zero makes the
        // quotient infinite.
        let nanos = ((tokens / self.rate) * 1e9) as u64;
        Duration::from_nanos(nanos.min(NANOS_MAX))
    }
}

impl RateLimiter for TokenBucket {
    type Record = ();

    fn when(&mut self, (): &mut (), now: Instant) -> Duration {
        if self.rate == Self::UNLIMITED_RATE {
            return Duration::ZERO;
        }
        if self.burst == 0 {
            return Self::INFINITE_DELAY;
        }
        self.tokens = self.tokens_at(now) - 1.0;
        self.last = now;
        if self.tokens < 0.0 {
            self.time_to_earn(-self.tokens)
        } else {
            Duration::ZERO
        }
    }

    fn failures(&self, (): &()) -> u32 {
        0
    }

    fn set_failures(&self, (): &mut (), _: u32) {}
}

/// Nanoseconds as seconds, rounded as by Go's `Duration.Seconds`: in two parts.
const fn seconds(nanos: u64) -> f64 {
    let whole = nanos / 1_000_000_000;
    let rest = nanos % 1_000_000_000;
    whole as f64 + rest as f64 / 1e9
}

#[cfg(test)]
mod tests {
    //! `limiter_jump_backwards` re-expresses a case of golang.org/x/time/rate, rate_test.go.

    use super::*;

    const MILLISECOND: u64 = 1_000_000;
    const INFINITE: u64 = i64::MAX as u64;

    /// The delay at `millis`, in nanoseconds.
    fn when(bucket: &mut TokenBucket, millis: u64) -> u64 {
        let delay = bucket.when(&mut (), Instant::from_nanos(millis * MILLISECOND));
        assert_eq!(bucket.failures(&()), 0);
        nanos(delay)
    }

    #[test]
    fn a_full_bucket_is_a_burst_and_then_the_rate() {
        let mut bucket = TokenBucket::new(1000.0, 3);
        for expected in [0, 0, 0, 1, 2, 3] {
            assert_eq!(when(&mut bucket, 0), expected * MILLISECOND);
        }
        // 3 ms repay the debt, and 4 more earn more than the bucket can hold.
        for expected in [0, 0, 0, 1] {
            assert_eq!(when(&mut bucket, 7), expected * MILLISECOND);
        }
    }

    #[test]
    fn rate_zero_gives_the_burst_and_nothing_else() {
        for rate in [0.0, -0.0, -7.0, f64::NEG_INFINITY, f64::NAN] {
            let mut bucket = TokenBucket::new(rate, 2);
            assert_eq!(when(&mut bucket, 0), 0);
            assert_eq!(when(&mut bucket, 0), 0);
            assert_eq!(when(&mut bucket, 0), INFINITE);
            assert_eq!(when(&mut bucket, u64::MAX / MILLISECOND), INFINITE);
        }
    }

    #[test]
    fn burst_zero_gives_nothing() {
        let mut bucket = TokenBucket::new(1000.0, 0);
        assert_eq!(when(&mut bucket, 0), INFINITE);
        assert_eq!(when(&mut bucket, 1_000_000), INFINITE);
    }

    #[test]
    fn an_unlimited_rate_ignores_the_burst() {
        for rate in [f64::MAX, f64::INFINITY] {
            for burst in [0, 1, u32::MAX] {
                let mut bucket = TokenBucket::new(rate, burst);
                for millis in [0, 5, 3] {
                    assert_eq!(when(&mut bucket, millis), 0);
                }
            }
        }
        assert_eq!(when(&mut TokenBucket::unlimited(), 0), 0);
        assert_eq!(when(&mut TokenBucket::every(Duration::ZERO, 0), 0), 0);
    }

    #[test]
    fn a_wait_beyond_go_is_the_infinite_delay() {
        let mut bucket = TokenBucket::new(1e-12, 1);
        assert_eq!(when(&mut bucket, 0), 0);
        assert_eq!(when(&mut bucket, 0), INFINITE);
        let mut bucket = TokenBucket::new(f64::MIN_POSITIVE, 1);
        assert_eq!(when(&mut bucket, 0), 0);
        assert_eq!(when(&mut bucket, 0), INFINITE);
        let mut bucket = TokenBucket::every(Duration::MAX, 1);
        assert_eq!(when(&mut bucket, 0), 0);
        assert_eq!(when(&mut bucket, 0), INFINITE);
    }

    #[test]
    fn the_longest_idle_time_fills_the_bucket_and_no_more() {
        let mut bucket = TokenBucket::new(1e308, 1);
        assert_eq!(when(&mut bucket, 0), 0);
        let end = Instant::NEVER;
        assert_eq!(bucket.when(&mut (), end), Duration::ZERO);
        let mut bucket = TokenBucket::new(1.0, 2);
        assert_eq!(bucket.when(&mut (), end), Duration::ZERO);
        assert_eq!(bucket.when(&mut (), end), Duration::ZERO);
        assert_eq!(bucket.when(&mut (), end), Duration::from_secs(1));
    }

    #[test]
    fn an_idle_time_beyond_go_is_cut() {
        let mut bucket = TokenBucket::new(1e-10, 2);
        assert_eq!(when(&mut bucket, 0), 0);
        assert_eq!(when(&mut bucket, 0), 0);
        // 584 years would earn 1.8 tokens; the 292 that Go can count earn 0.9.
        assert_ne!(bucket.when(&mut (), Instant::NEVER), Duration::ZERO);
    }

    #[test]
    fn rounds_as_go_does() {
        // Quotient first: 1 token / 1e-9 per second is not quite 1e9 seconds.
        let mut bucket = TokenBucket::new(1e-9, 1);
        assert_eq!(when(&mut bucket, 0), 0);
        assert_eq!(when(&mut bucket, 0), 999_999_999_999_999_872);

        // Seconds in two parts: a single quotient would leave 108 ns to wait.
        let mut bucket = TokenBucket::new(10.0, 1);
        for borrowed in 0..20 {
            assert_eq!(when(&mut bucket, 0), borrowed * 100 * MILLISECOND);
        }
        let delay = bucket.when(&mut (), Instant::from_nanos(1_999_999_891));
        assert_eq!(delay, Duration::from_nanos(109));
    }

    #[test]
    fn limiter_jump_backwards() {
        let mut bucket = TokenBucket::new(10.0, 3);
        assert_eq!(when(&mut bucket, 100), 0);
        // Back to the start: two tokens are still left.
        assert_eq!(when(&mut bucket, 0), 0);
        assert_eq!(when(&mut bucket, 0), 0);
        assert_eq!(when(&mut bucket, 0), 100 * MILLISECOND);
        // The 100 ms are earned again, and pay the debt.
        assert_eq!(when(&mut bucket, 100), 100 * MILLISECOND);
    }
}
