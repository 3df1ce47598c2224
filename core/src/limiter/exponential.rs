//! Exponential backoff per key, in integers. Owns the growth of a delay with a key's failures;
//! never looks at the time.

use core::time::Duration;

use crate::Instant;
use crate::limiter::RateLimiter;
use crate::time::{duration_from_nanos, nanos};

/// A key that failed n times waits `base * 2^n`, and never longer than `max`.
///
/// client-go's `ItemExponentialFailureRateLimiter`, equal to the nanosecond. The record of a key is
/// its number of failures.
///
/// client-go multiplies in `float64`. This limiter shifts integers, so that firmware which uses
/// only this limiter links no floating point. The effects of the float on the result are the same:
///
/// - `base` is rounded to 53 significant bits, ties to even. Nothing below 2^53 ns, 104 days, is
///   affected.
/// - A delay of 2^63 ns, 292 years, or more does not fit Go's `time.Duration` and becomes `max`,
///   even if `max` is longer. (At exactly 2^63 ns Go leaves the result to the processor. Here it is
///   `max`.)
///
/// With a `base` of zero every delay is zero. In Go that product is not a number after 1024
/// failures.
///
/// # Cost
///
/// O(1): one shift. 16 bytes, and 4 bytes per key.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use requeue::limiter::{Exponential, RateLimiter};
/// use requeue::Instant;
///
/// let mut limiter =
///     Exponential::new(Duration::from_millis(5), Duration::from_millis(30));
/// let mut failures = 0;
/// let mut when = || limiter.when(&mut failures, Instant::EPOCH).as_millis();
/// assert_eq!([when(), when(), when(), when()], [5, 10, 20, 30]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[doc(alias = "ItemExponentialFailureRateLimiter")]
#[doc(alias = "TypedItemExponentialFailureRateLimiter")]
pub struct Exponential {
    /// Nanoseconds, of which at most 53 bits are significant.
    base: u64,
    /// Nanoseconds.
    max: u64,
}

impl Exponential {
    /// Creates a limiter whose first delay is `base`, and whose longest is `max`.
    ///
    /// Both are kept in nanoseconds: more than 584 years counts as [`Duration::MAX`], which means
    /// never.
    pub const fn new(base: Duration, max: Duration) -> Self {
        Self {
            base: round_to_53_bits(nanos(base)),
            max: nanos(max),
        }
    }

    /// The delay after `failures` earlier failures, in nanoseconds.
    const fn delay(self, failures: u32) -> u64 {
        if self.base == 0 {
            return 0;
        }
        // `base << failures` is less than 2^63 exactly if one leading zero is left.
        if failures >= self.base.leading_zeros() {
            return self.max;
        }
        let delay = self.base << failures;
        if delay > self.max { self.max } else { delay }
    }
}

impl RateLimiter for Exponential {
    type Record = u32;

    fn when(&mut self, failures: &mut u32, _now: Instant) -> Duration {
        let delay = self.delay(*failures);
        *failures = failures.saturating_add(1);
        duration_from_nanos(delay)
    }

    fn failures(&self, failures: &u32) -> u32 {
        *failures
    }

    fn set_failures(&self, failures: &mut u32, count: u32) {
        *failures = count;
    }
}

/// The result of a conversion of `value` to `f64` and back: 53 significant bits, ties to even.
const fn round_to_53_bits(value: u64) -> u64 {
    let excess_bits = (u64::BITS - value.leading_zeros()).saturating_sub(f64::MANTISSA_DIGITS);
    if excess_bits == 0 {
        return value;
    }
    let unit = 1 << excess_bits;
    let remainder = value & (unit - 1);
    let floor = value - remainder;
    let is_odd = floor & unit != 0;
    if remainder > unit / 2 || (remainder == unit / 2 && is_odd) {
        // 2^64 saturates to u64::MAX. Both are above the limit of 2^63, so the result is the same.
        floor.saturating_add(unit)
    } else {
        floor
    }
}

#[cfg(test)]
mod tests {
    //! The cases named after client-go re-express util/workqueue/default_rate_limiters_test.go.

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const MILLISECOND: Duration = Duration::from_millis(1);
    const I64_MAX: u64 = i64::MAX as u64;

    /// The delay after `failures` earlier failures, in nanoseconds.
    #[track_caller]
    fn delay(base: u64, max: u64, failures: u32) -> u64 {
        let mut limiter = Exponential::new(duration_from_nanos(base), duration_from_nanos(max));
        let mut record = failures;
        let delay = limiter.when(&mut record, Instant::EPOCH);
        assert_eq!(limiter.failures(&record), failures.saturating_add(1));
        nanos(delay)
    }

    #[test]
    fn item_exponential_failure_rate_limiter() {
        let mut limiter = Exponential::new(MILLISECOND, SECOND);
        let (mut one, mut two) = (0, 0);
        for expected in [1, 2, 4, 8, 16] {
            let delay = limiter.when(&mut one, Instant::EPOCH);
            assert_eq!(delay, Duration::from_millis(expected));
        }
        assert_eq!(limiter.failures(&one), 5);

        assert_eq!(limiter.when(&mut two, Instant::EPOCH), MILLISECOND);
        assert_eq!(limiter.when(&mut two, Instant::EPOCH), MILLISECOND * 2);
        assert_eq!(limiter.failures(&two), 2);

        one = Default::default();
        assert_eq!(limiter.failures(&one), 0);
        assert_eq!(limiter.when(&mut one, Instant::EPOCH), MILLISECOND);
    }

    #[test]
    fn item_exponential_failure_rate_limiter_overflow() {
        let thousand_seconds = 1000 * 1_000_000_000;
        assert_eq!(delay(1_000_000, thousand_seconds, 5), 32_000_000);
        assert_eq!(delay(1_000_000, thousand_seconds, 1000), thousand_seconds);

        let minute = 60 * 1_000_000_000;
        let thousand_hours = 1000 * 60 * minute;
        assert_eq!(delay(minute, thousand_hours, 2), 4 * minute);
        assert_eq!(delay(minute, thousand_hours, 1000), thousand_hours);
    }

    #[test]
    fn item_exponential_failure_rate_limiter_float64_boundary() {
        let bases = [1_000_000, 5_000_000, I64_MAX, I64_MAX - 1023]
            .into_iter()
            .chain((0..63).map(|exponent| 1 << exponent));
        for base in bases {
            for max in [0, 1, 1000 * 1_000_000_000, I64_MAX] {
                for attempt in 0..65 {
                    let exact = u128::from(base) << attempt;
                    let expected = exact.min(u128::from(max)) as u64;
                    assert_eq!(
                        delay(base, max, attempt),
                        expected,
                        "{base} {max} {attempt}"
                    );
                }
            }
        }
    }

    #[test]
    fn rounds_as_a_conversion_to_f64_does() {
        for exponent in 0..u64::BITS {
            for offset in 0..if cfg!(miri) { 5 } else { 5000 } {
                for value in [
                    (1_u64 << exponent).wrapping_add(offset),
                    (1_u64 << exponent).wrapping_sub(offset),
                    (3_u64 << exponent).wrapping_add(offset),
                ] {
                    assert_eq!(round_to_53_bits(value), value as f64 as u64, "{value}");
                }
            }
        }
    }

    #[test]
    #[cfg_attr(
        miri,
        ignore = "Miri rounds powi at random, as it may be on some processor"
    )]
    fn equals_the_float_it_replaces() {
        for base in [1, 7, (1 << 53) + 1, (1 << 53) + 3, (1 << 60) + 129, I64_MAX] {
            for max in [1, 1 << 40, (1 << 62) + 1, I64_MAX] {
                for failures in 0..=1000 {
                    let exact = base as f64 * 2_f64.powi(failures as i32);
                    let expected = if exact >= 2_f64.powi(63) {
                        max
                    } else {
                        (exact as u64).min(max)
                    };
                    assert_eq!(
                        delay(base, max, failures),
                        expected,
                        "{base} {max} {failures}"
                    );
                }
            }
        }
    }

    #[test]
    fn the_count_of_failures_saturates() {
        assert_eq!(delay(1, 77, u32::MAX), 77);
        assert_eq!(delay(0, 77, u32::MAX), 0);
    }

    #[test]
    fn a_delay_that_go_cannot_hold_is_the_maximum_even_if_that_is_longer() {
        assert_eq!(delay(1, I64_MAX + 9, 62), 1 << 62);
        assert_eq!(delay(1, I64_MAX + 9, 63), I64_MAX + 9);
        assert_eq!(delay(I64_MAX, I64_MAX + 9, 0), I64_MAX + 9);
    }

    #[test]
    fn never_stays_never() {
        let mut limiter = Exponential::new(Duration::MAX, Duration::MAX);
        assert_eq!(limiter.when(&mut 0, Instant::EPOCH), Duration::MAX);
        let mut limiter = Exponential::new(SECOND, Duration::MAX);
        assert_eq!(limiter.when(&mut 100, Instant::EPOCH), Duration::MAX);
        assert_eq!(limiter.when(&mut 0, Instant::EPOCH), SECOND);
    }

    #[test]
    fn a_base_beyond_the_maximum_waits_the_maximum() {
        assert_eq!(delay(100, 10, 0), 10);
        assert_eq!(delay(I64_MAX + 1, 10, 0), 10);
    }
}
