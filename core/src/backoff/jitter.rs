//! Random additions to pauses, so that loops which failed together do not retry together.

use core::convert::Infallible;
use core::time::Duration;

use rand_core::{Rng, TryRng};

use crate::time::{duration_from_nanos, nanos};

/// Returns `duration` plus a random part, uniform and less than `max_factor * duration`:
/// `wait.Jitter`.
///
/// A `max_factor` of zero or below counts as 1, as in apimachinery. The caller passes the
/// generator, so that a fixed seed gives repeatable pauses.
///
/// # Cost
///
/// O(1): 64 bits of `rng` and three multiplications of `f64`.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use requeue_core::backoff::{NoJitter, jitter, rand_core};
///
/// // Any generator that implements `rand_core::Rng`: those of the crate `rand` do.
/// fn pause(rng: &mut impl rand_core::Rng) -> Duration {
///     let second = Duration::from_secs(1);
///     let pause = jitter(second, 0.5, rng);
///     assert!(second <= pause && pause < second + second / 2);
///     pause
/// }
/// assert_eq!(pause(&mut NoJitter), Duration::from_secs(1));
/// # struct Xorshift(u64);
/// # impl rand_core::TryRng for Xorshift {
/// #     type Error = core::convert::Infallible;
/// #     fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
/// #         self.try_next_u64().map(|x| x as u32)
/// #     }
/// #     fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
/// #         self.0 ^= self.0 << 13; self.0 ^= self.0 >> 7; self.0 ^= self.0 << 17; Ok(self.0)
/// #     }
/// #     fn try_fill_bytes(&mut self, to: &mut [u8]) -> Result<(), Self::Error> {
/// #         to.fill(0);
/// #         Ok(())
/// #     }
/// # }
/// # pause(&mut Xorshift(0x2545_f491_4f6c_dd1d));
/// ```
pub fn jitter<R: Rng + ?Sized>(duration: Duration, max_factor: f64, rng: &mut R) -> Duration {
    let max_factor = if max_factor <= 0.0 { 1.0 } else { max_factor };
    let extra = fraction(rng) * max_factor * nanos(duration) as f64;
    duration.saturating_add(duration_from_nanos(extra as u64))
}

/// A generator that adds no jitter: it always returns zero.
///
/// For loops without jitter, and for tests. Do not use it where randomness is needed.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use requeue_core::backoff::{Backoff, NoJitter};
///
/// let second = Duration::from_secs(1);
/// let mut backoff = Backoff { duration: second, jitter: 0.5, ..Backoff::default() };
/// assert_eq!(backoff.step(&mut NoJitter), second);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct NoJitter;

impl TryRng for NoJitter {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(0)
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(0)
    }

    fn try_fill_bytes(&mut self, dst: &mut [u8]) -> Result<(), Infallible> {
        dst.fill(0);
        Ok(())
    }
}

/// A number in `0.0..1.0`, in even steps of 2^-53.
fn fraction<R: Rng + ?Sized>(rng: &mut R) -> f64 {
    const STEP: f64 = 1.0 / (1_u64 << f64::MANTISSA_DIGITS) as f64;
    // The upper bits, because weak generators are weakest in the lower ones.
    let bits = rng.next_u64() >> (u64::BITS - f64::MANTISSA_DIGITS);
    bits as f64 * STEP
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Returns the same number each time.
    pub(in crate::backoff) struct Constant(pub(in crate::backoff) u64);

    impl TryRng for Constant {
        type Error = Infallible;

        fn try_next_u32(&mut self) -> Result<u32, Infallible> {
            Ok(self.0 as u32)
        }

        fn try_next_u64(&mut self) -> Result<u64, Infallible> {
            Ok(self.0)
        }

        fn try_fill_bytes(&mut self, dst: &mut [u8]) -> Result<(), Infallible> {
            dst.fill(self.0 as u8);
            Ok(())
        }
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn stays_below_the_factor() {
        assert_eq!(fraction(&mut Constant(0)), 0.0);
        assert_eq!(fraction(&mut Constant(1 << 63)), 0.5);
        assert_eq!(fraction(&mut Constant(u64::MAX)), 1.0_f64.next_down());
        let longest = jitter(SECOND, 0.5, &mut Constant(u64::MAX));
        assert_eq!(longest, Duration::from_nanos(1_499_999_999));
    }

    #[test]
    fn no_jitter_draws_zero() {
        assert_eq!((NoJitter.next_u32(), NoJitter.next_u64()), (0, 0));
        let mut bytes = [1; 3];
        NoJitter.fill_bytes(&mut bytes);
        assert_eq!(bytes, [0; 3]);
    }

    #[test]
    fn a_factor_that_is_not_positive_counts_as_one() {
        for factor in [0.0, -0.0, -3.0, 1.0] {
            let pause = jitter(SECOND, factor, &mut Constant(1 << 63));
            assert_eq!(pause, Duration::from_millis(1500));
        }
    }

    #[test]
    fn saturates() {
        let mut rng = Constant(u64::MAX);
        assert_eq!(jitter(Duration::MAX, 0.1, &mut rng), Duration::MAX);
        assert_eq!(jitter(SECOND, f64::INFINITY, &mut rng), Duration::MAX);
        assert_eq!(jitter(SECOND, f64::NAN, &mut rng), SECOND);
        assert_eq!(jitter(SECOND, f64::INFINITY, &mut NoJitter), SECOND);
        assert_eq!(jitter(Duration::ZERO, 2.0, &mut rng), Duration::ZERO);
    }
}
