//! Random delays, so that keys that failed together are not retried together. Owns the range of a
//! delay; the caller provides the random bits.

use core::fmt;
use core::time::Duration;

use crate::Instant;
use crate::limiter::RateLimiter;
use crate::time::nanos;

/// Makes the delays of another limiter random, so that replicas do not retry in lockstep.
///
/// | | the delay, evenly distributed |
/// |---|---|
/// | [`full`](Self::full) | from zero to the inner one |
/// | [`equal`](Self::equal) | from half of the inner one to all of it |
///
/// Both bounds are included, to the nanosecond. *Full* spreads retries best; *equal* never retries
/// at once ("Exponential Backoff And Jitter", AWS Architecture Blog, 2015). A delay is never longer
/// than the inner one, and a delay of [`Duration::MAX`], which is for ever, stays that.
///
/// You pass the generator: a function that returns 64 random bits. Seed it differently in each
/// replica. A test that seeds it gets the same delays each time. With
/// [`no_jitter`](crate::backoff::no_jitter) each delay is the shortest.
///
/// A [`WithMaxWait`](crate::limiter::WithMaxWait) goes around this one. If [failures are
/// held](crate::Policy::hold_failures), a hold is as long as the random delay.
///
/// # Cost
///
/// That of the inner limiter, 64 bits of the generator, and one multiplication of 64 bits.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use requeue::limiter::{RateLimiter, WithJitter, default_item_based};
/// use requeue::Instant;
///
/// // With the crate `rand`, pass `rand::random::<u64>`.
/// let mut bits = 0x2545_f491_4f6c_dd1d_u64;
/// let xorshift = || {
///     bits ^= bits << 13;
///     bits ^= bits >> 7;
///     bits ^= bits << 17;
///     bits
/// };
/// let mut limiter = WithJitter::equal(default_item_based(), xorshift);
/// let mut failures = 3;
/// let delay = limiter.when(&mut failures, Instant::EPOCH);
/// assert!(Duration::from_millis(4) <= delay && delay <= Duration::from_millis(8));
/// ```
#[derive(Clone)]
pub struct WithJitter<L, R> {
    inner: L,
    rng: R,
    keeps_half: bool,
}

impl<L, R> WithJitter<L, R> {
    /// Creates a limiter whose delays are from zero to those of `inner`.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::backoff::no_jitter;
    /// use requeue::limiter::{WithJitter, default_item_based};
    /// use requeue::priority::Plain;
    /// use requeue::storage::Fixed;
    /// use requeue::{Instant, Queue};
    ///
    /// let limiter = WithJitter::full(default_item_based(), no_jitter);
    /// let mut queue: Queue<&str, Plain, _, Fixed<4>> = Queue::new(limiter);
    /// let scheduled = queue.at(Instant::EPOCH).add_rate_limited("node-7").unwrap();
    /// assert!(scheduled.delay.is_zero(), "the shortest delay of 0 to 1 ms");
    /// ```
    pub const fn full(inner: L, rng: R) -> Self {
        Self {
            inner,
            rng,
            keeps_half: false,
        }
    }

    /// Creates a limiter whose delays are from half of those of `inner` to all of them. The
    /// [type](Self) has an example.
    pub const fn equal(inner: L, rng: R) -> Self {
        Self {
            inner,
            rng,
            keeps_half: true,
        }
    }
}

impl<L: fmt::Debug, R> fmt::Debug for WithJitter<L, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WithJitter")
            .field("inner", &self.inner)
            .field("keeps_half", &self.keeps_half)
            .finish_non_exhaustive()
    }
}

impl<L: RateLimiter, R: FnMut() -> u64> RateLimiter for WithJitter<L, R> {
    type Record = L::Record;

    fn when(&mut self, record: &mut L::Record, now: Instant) -> Duration {
        let longest = nanos(self.inner.when(record, now));
        if longest == u64::MAX {
            return Duration::MAX;
        }
        let kept = if self.keeps_half {
            longest.div_ceil(2)
        } else {
            0
        };
        Duration::from_nanos(kept + up_to(longest - kept, &mut self.rng))
    }

    fn failures(&self, record: &L::Record) -> u32 {
        self.inner.failures(record)
    }

    fn set_failures(&self, record: &mut L::Record, count: u32) {
        self.inner.set_failures(record, count);
    }
}

/// A number in `0..=max`, for a `max` below the largest: the upper half of a product. The
/// probabilities of two numbers differ by at most 2^-64.
fn up_to(max: u64, rng: &mut impl FnMut() -> u64) -> u64 {
    let product = u128::from(rng()) * (u128::from(max) + 1);
    (product >> u64::BITS) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backoff::no_jitter;

    /// Always the same delay.
    struct Always(Duration);

    impl RateLimiter for Always {
        type Record = ();

        fn when(&mut self, (): &mut (), _now: Instant) -> Duration {
            self.0
        }

        fn failures(&self, (): &()) -> u32 {
            7
        }

        fn set_failures(&self, (): &mut (), _: u32) {}
    }

    /// splitmix64, from a seed.
    fn seeded(mut seed: u64) -> impl FnMut() -> u64 {
        move || {
            seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut bits = seed;
            bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            bits ^ (bits >> 31)
        }
    }

    /// The largest number each time.
    fn largest() -> u64 {
        u64::MAX
    }

    fn delay<R: FnMut() -> u64>(mut limiter: WithJitter<Always, R>) -> u64 {
        nanos(limiter.when(&mut (), Instant::EPOCH))
    }

    #[test]
    fn the_bounds_are_exact() {
        let longest = u64::MAX - 1;
        for (inner, half) in [(0, 0), (1, 1), (2, 1), (7, 4), (longest, longest / 2)] {
            let always = || Always(Duration::from_nanos(inner));
            assert_eq!(delay(WithJitter::full(always(), no_jitter)), 0);
            assert_eq!(delay(WithJitter::full(always(), largest)), inner);
            assert_eq!(delay(WithJitter::equal(always(), no_jitter)), half);
            assert_eq!(delay(WithJitter::equal(always(), largest)), inner);
        }
    }

    #[test]
    fn never_stays_never() {
        for inner in [Duration::MAX, Duration::from_nanos(u64::MAX)] {
            let mut limiter = WithJitter::full(Always(inner), no_jitter);
            assert_eq!(limiter.when(&mut (), Instant::EPOCH), Duration::MAX);
            assert_eq!(limiter.failures(&()), 7);
        }
    }

    /// Each tenth of the range has a tenth of 100,000 delays, within five standard deviations.
    #[test]
    #[cfg_attr(miri, ignore = "fewer delays would have wider bounds")]
    fn delays_are_evenly_distributed() {
        let inner = Duration::from_secs(10);
        for (mut limiter, first) in [
            (WithJitter::full(Always(inner), seeded(1)), 0),
            (WithJitter::equal(Always(inner), seeded(2)), 5_000_000_000),
        ] {
            let width = (10_000_000_000 - first) / 10;
            let mut tenths = [0_i64; 10];
            for _ in 0..100_000 {
                let delay = nanos(limiter.when(&mut (), Instant::EPOCH));
                let tenth = (delay - first) / width;
                tenths[(tenth as usize).min(9)] += 1;
            }
            let even = tenths.iter().all(|count| (count - 10_000).abs() < 475);
            assert!(even, "{tenths:?}");
        }
    }
}
