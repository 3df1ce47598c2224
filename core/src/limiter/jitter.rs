//! Random delays, so that keys that failed together are not retried together.

use core::time::Duration;

use rand_core::Rng;

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
/// The generator is the user's. Replicas have to seed theirs differently, and a test that seeds it
/// gets the same delays each time. With [`NoJitter`](crate::backoff::NoJitter) each delay is the
/// shortest.
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
/// use requeue_core::backoff::rand_core;
/// use requeue_core::limiter::{RateLimiter, WithJitter, default_item_based};
/// use requeue_core::Instant;
///
/// // Any generator that implements `rand_core::Rng`: those of the crate `rand` do.
/// fn fourth_delay(rng: impl rand_core::Rng) -> Duration {
///     let mut limiter = WithJitter::equal(default_item_based(), rng);
///     let mut failures = 3;
///     let delay = limiter.when(&mut failures, Instant::EPOCH);
///     assert!(Duration::from_millis(4) <= delay && delay <= Duration::from_millis(8));
///     delay
/// }
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
/// # fourth_delay(Xorshift(0x2545_f491_4f6c_dd1d));
/// ```
#[derive(Clone, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
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
    /// use requeue_core::backoff::NoJitter;
    /// use requeue_core::limiter::{WithJitter, default_item_based};
    /// use requeue_core::priority::Plain;
    /// use requeue_core::storage::Fixed;
    /// use requeue_core::{Instant, Queue};
    ///
    /// let limiter = WithJitter::full(default_item_based(), NoJitter);
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

impl<L: RateLimiter, R: Rng> RateLimiter for WithJitter<L, R> {
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

/// A number in `0..=max`, for a `max` below the largest: the upper half of a product. No two of
/// them differ in probability by more than 2^-64.
fn up_to(max: u64, rng: &mut impl Rng) -> u64 {
    let product = u128::from(rng.next_u64()) * (u128::from(max) + 1);
    (product >> u64::BITS) as u64
}

#[cfg(test)]
mod tests {
    use core::convert::Infallible;

    use rand_core::TryRng;

    use super::*;
    use crate::backoff::NoJitter;

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
    struct Seeded(u64);

    impl Seeded {
        fn next(&mut self) -> u64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut bits = self.0;
            bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            bits ^ (bits >> 31)
        }
    }

    /// The largest number each time.
    struct Largest;

    macro_rules! generator {
        ($type:ty, $self:ident => $next:expr) => {
            impl TryRng for $type {
                type Error = Infallible;

                fn try_next_u32(&mut self) -> Result<u32, Infallible> {
                    self.try_next_u64().map(|bits| bits as u32)
                }

                fn try_next_u64(&mut $self) -> Result<u64, Infallible> {
                    Ok($next)
                }

                fn try_fill_bytes(&mut self, dst: &mut [u8]) -> Result<(), Infallible> {
                    dst.fill(self.try_next_u32()? as u8);
                    Ok(())
                }
            }
        };
    }

    generator!(Seeded, self => self.next());
    generator!(Largest, self => u64::MAX);

    fn delay<R: Rng>(mut limiter: WithJitter<Always, R>) -> u64 {
        nanos(limiter.when(&mut (), Instant::EPOCH))
    }

    #[test]
    fn the_bounds_are_exact() {
        let longest = u64::MAX - 1;
        for (inner, half) in [(0, 0), (1, 1), (2, 1), (7, 4), (longest, longest / 2)] {
            let always = || Always(Duration::from_nanos(inner));
            assert_eq!(delay(WithJitter::full(always(), NoJitter)), 0);
            assert_eq!(delay(WithJitter::full(always(), Largest)), inner);
            assert_eq!(delay(WithJitter::equal(always(), NoJitter)), half);
            assert_eq!(delay(WithJitter::equal(always(), Largest)), inner);
        }
    }

    #[test]
    fn never_stays_never() {
        for inner in [Duration::MAX, Duration::from_nanos(u64::MAX)] {
            let mut limiter = WithJitter::full(Always(inner), NoJitter);
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
            (WithJitter::full(Always(inner), Seeded(1)), 0),
            (WithJitter::equal(Always(inner), Seeded(2)), 5_000_000_000),
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
