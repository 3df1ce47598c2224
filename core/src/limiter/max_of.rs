//! Several limiters together: a tuple of limiters is a limiter, and the longest delay wins.
//!
//! Tuples need no type of their own: records, `const` construction and nesting follow from the
//! language.

use core::time::Duration;

use crate::Instant;
use crate::limiter::RateLimiter;

/// No limiter: the delay is zero, as for client-go's `MaxOfRateLimiter` without limiters.
impl RateLimiter for () {
    type Record = ();

    fn when(&mut self, (): &mut (), _now: Instant) -> Duration {
        Duration::ZERO
    }

    fn failures(&self, (): &()) -> u32 {
        0
    }

    fn set_failures(&self, (): &mut (), _: u32) {}
}

macro_rules! max_of {
    ($($limiter:ident $index:tt),+) => {
        /// The longest delay of all. Every limiter is charged, even if another limiter's delay
        /// wins.
        impl<$($limiter: RateLimiter),+> RateLimiter for ($($limiter,)+) {
            type Record = ($($limiter::Record,)+);

            fn when(&mut self, record: &mut Self::Record, now: Instant) -> Duration {
                let mut longest = Duration::ZERO;
                $(longest = longest.max(self.$index.when(&mut record.$index, now));)+
                longest
            }

            fn failures(&self, record: &Self::Record) -> u32 {
                let mut most = 0;
                $(most = most.max(self.$index.failures(&record.$index));)+
                most
            }

            fn set_failures(&self, record: &mut Self::Record, count: u32) {
                $(self.$index.set_failures(&mut record.$index, count);)+
            }
        }
    };
}

max_of!(A 0);
max_of!(A 0, B 1);
max_of!(A 0, B 1, C 2);
max_of!(A 0, B 1, C 2, D 3);
max_of!(A 0, B 1, C 2, D 3, E 4);
max_of!(A 0, B 1, C 2, D 3, E 4, F 5);
max_of!(A 0, B 1, C 2, D 3, E 4, F 5, G 6);
max_of!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);

#[cfg(test)]
mod tests {
    //! The case named after client-go re-expresses util/workqueue/default_rate_limiters_test.go.

    use super::*;
    use crate::limiter::{Exponential, FastSlow, TokenBucket};

    const fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn max_of_rate_limiter() {
        let mut limiter = (
            FastSlow::new(millis(5), millis(3000), 3),
            Exponential::new(millis(1), millis(1000)),
        );
        let (mut one, mut two) = Default::default();
        for expected in [5, 5, 5, 3000, 3000] {
            assert_eq!(limiter.when(&mut one, Instant::EPOCH), millis(expected));
        }
        assert_eq!(limiter.failures(&one), 5);

        assert_eq!(limiter.when(&mut two, Instant::EPOCH), millis(5));
        assert_eq!(limiter.when(&mut two, Instant::EPOCH), millis(5));
        assert_eq!(limiter.failures(&two), 2);

        one = Default::default();
        assert_eq!(limiter.failures(&one), 0);
        assert_eq!(limiter.when(&mut one, Instant::EPOCH), millis(5));
    }

    #[test]
    fn the_limiter_that_loses_is_charged() {
        let slow = FastSlow::new(millis(500), millis(0), 2);
        let mut limiter = (slow, TokenBucket::new(10.0, 1));
        let mut record = Default::default();
        assert_eq!(limiter.when(&mut record, Instant::EPOCH), millis(500));
        assert_eq!(limiter.when(&mut record, Instant::EPOCH), millis(500));
        assert_eq!(limiter.when(&mut record, Instant::EPOCH), millis(200));
    }

    #[test]
    fn no_limiter_is_no_delay() {
        assert_eq!(().when(&mut (), Instant::EPOCH), Duration::ZERO);
        assert_eq!(().failures(&()), 0);
    }

    #[test]
    fn eight_limiters_and_nests_of_them() {
        let step = |base| Exponential::new(millis(base), Duration::MAX);
        let eight = (
            step(1),
            step(2),
            step(3),
            step(9),
            step(5),
            step(6),
            step(7),
            (),
        );
        let mut limiter = ((eight,), ((), TokenBucket::unlimited()));
        let mut record = Default::default();
        assert_eq!(limiter.when(&mut record, Instant::EPOCH), millis(9));
        assert_eq!(limiter.when(&mut record, Instant::EPOCH), millis(18));
        assert_eq!(limiter.failures(&record), 2);
    }
}
