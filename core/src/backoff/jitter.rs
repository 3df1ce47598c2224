//! Random additions to pauses, so that loops that failed together do not retry together. Owns the
//! arithmetic; the caller provides the random bits.

use core::time::Duration;

use crate::time::{duration_from_nanos, nanos};

/// Returns `duration` plus a random part, uniform and less than `max_factor * duration`:
/// `wait.Jitter`.
///
/// A `max_factor` of zero or below counts as 1, as in apimachinery. `rng` returns 64 random bits. A
/// fixed seed gives repeatable pauses.
///
/// # Cost
///
/// O(1): 64 bits of `rng` and three multiplications of `f64`.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use requeue::backoff::{jitter, no_jitter};
///
/// // With the crate `rand`, pass `&mut rand::random::<u64>`.
/// let mut bits = 0x2545_f491_4f6c_dd1d_u64;
/// let mut xorshift = || {
///     bits ^= bits << 13;
///     bits ^= bits >> 7;
///     bits ^= bits << 17;
///     bits
/// };
/// let second = Duration::from_secs(1);
/// let pause = jitter(second, 0.5, &mut xorshift);
/// assert!(second <= pause && pause < second + second / 2);
/// assert_eq!(jitter(second, 0.5, &mut no_jitter), second);
/// ```
pub fn jitter<R: FnMut() -> u64 + ?Sized>(
    duration: Duration,
    max_factor: f64,
    rng: &mut R,
) -> Duration {
    let max_factor = if max_factor <= 0.0 { 1.0 } else { max_factor };
    let extra = fraction(rng) * max_factor * nanos(duration) as f64;
    duration.saturating_add(duration_from_nanos(extra as u64))
}

/// Adds no jitter: it returns zero each time, in place of random bits.
///
/// For loops without jitter, and for tests. Do not use it where randomness is needed.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use requeue::backoff::{Backoff, no_jitter};
///
/// let second = Duration::from_secs(1);
/// let mut backoff = Backoff { duration: second, jitter: 0.5, ..Backoff::default() };
/// assert_eq!(backoff.step(&mut no_jitter), second);
/// ```
pub const fn no_jitter() -> u64 {
    0
}

/// A number in `0.0..1.0`, in even steps of 2^-53.
fn fraction<R: FnMut() -> u64 + ?Sized>(rng: &mut R) -> f64 {
    const STEP: f64 = 1.0 / (1_u64 << f64::MANTISSA_DIGITS) as f64;
    // The upper bits, because weak generators are weakest in the lower ones.
    let bits = rng() >> (u64::BITS - f64::MANTISSA_DIGITS);
    bits as f64 * STEP
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn stays_below_the_factor() {
        assert_eq!(fraction(&mut || 0), 0.0);
        assert_eq!(fraction(&mut || 1 << 63), 0.5);
        assert_eq!(fraction(&mut || u64::MAX), 1.0_f64.next_down());
        let longest = jitter(SECOND, 0.5, &mut || u64::MAX);
        assert_eq!(longest, Duration::from_nanos(1_499_999_999));
    }

    #[test]
    fn a_factor_that_is_not_positive_counts_as_one() {
        for factor in [0.0, -0.0, -3.0, 1.0] {
            let pause = jitter(SECOND, factor, &mut || 1 << 63);
            assert_eq!(pause, Duration::from_millis(1500));
        }
    }

    #[test]
    fn saturates() {
        let mut rng = || u64::MAX;
        assert_eq!(jitter(Duration::MAX, 0.1, &mut rng), Duration::MAX);
        assert_eq!(jitter(SECOND, f64::INFINITY, &mut rng), Duration::MAX);
        assert_eq!(jitter(SECOND, f64::NAN, &mut rng), SECOND);
        assert_eq!(jitter(SECOND, f64::INFINITY, &mut no_jitter), SECOND);
        assert_eq!(jitter(Duration::ZERO, 2.0, &mut rng), Duration::ZERO);
    }
}
