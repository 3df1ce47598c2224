//! Rates of runs: a token bucket in integers, for [`run_rate`] and for the rates of groups. Owns
//! when the next run may start; never looks at a key.
//!
//! The limiter [`TokenBucket`] counts in floats, because client-go does. The arithmetic of floats
//! takes 2 KB of flash on a board without a floating-point unit.
//!
//! [`run_rate`]: crate::Policy::run_rate
//! [`TokenBucket`]: crate::limiter::TokenBucket

use crate::Instant;
use crate::array::ConstDefault;

/// A token every `period`, and room for `burst` of them. A period is a number of units. There are
/// `2^shift` units in a nanosecond, so many that rounding errors do not add up.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct RateLimit {
    /// As it was set, to show it.
    pub(crate) per_second: f64,
    period: u64,
    pub(crate) burst: u32,
    shift: u8,
}

/// The `shift` of a rate that earns no tokens.
const NONE_EARNED: u8 = u8::MAX;
/// More units would not make a rate more exact than its float.
const SHIFT_MAX: i32 = 62;

impl RateLimit {
    /// Divides a second by the rate, bit by bit, so that no arithmetic of floats is linked. At most
    /// 1,200 steps.
    pub(crate) const fn new(per_second: f64, burst: u32) -> Self {
        let mut limit = Self {
            per_second,
            period: 1,
            burst,
            shift: NONE_EARNED,
        };
        // The bits of positive numbers are in the order of the numbers. Those of negative ones are
        // larger, and so are those of a NaN.
        let bits = per_second.to_bits();
        let exponent = (bits >> 52) as i32;
        if bits == f64::INFINITY.to_bits() || bits == f64::MAX.to_bits() {
            limit.period = 0;
            limit.shift = 0;
            return limit;
        }
        if bits > f64::INFINITY.to_bits() || exponent == 0 || burst == 0 {
            return limit;
        }
        // The rate is `divisor * 2^(exponent - 1075)`.
        let divisor = bits & ((1 << 52) - 1) | 1 << 52;
        let mut shift = exponent - 1075;
        let mut rest: u64 = 1_000_000_000;
        let mut period: u64 = 0;
        // A full bucket has less than 2^63 units.
        let precise = 1 << (30 + burst.leading_zeros());
        while shift < SHIFT_MAX && (shift < 0 || period < precise) {
            if period >= 1 << 61 {
                // A token takes longer than 146 years.
                return limit;
            }
            (rest, period, shift) = (rest << 1, period << 1, shift + 1);
            if rest >= divisor {
                (rest, period) = (rest - divisor, period + 1);
            }
        }
        let burst_max = 1_u64 << (period.leading_zeros() - 1);
        if burst as u64 > burst_max {
            limit.burst = burst_max as u32;
        }
        limit.period = period;
        limit.shift = if shift < SHIFT_MAX { shift } else { SHIFT_MAX } as u8;
        limit
    }

    pub(crate) const fn is(&self, other: &Self) -> bool {
        self.per_second.to_bits() == other.per_second.to_bits() && self.burst == other.burst
    }

    /// Whether the rate is a positive number, and there is room for a token.
    pub(crate) const fn is_positive(&self) -> bool {
        let bits = self.per_second.to_bits();
        bits > 0 && bits <= f64::INFINITY.to_bits() && self.burst > 0
    }

    /// The units of half a nanosecond.
    const fn half(&self) -> u64 {
        match self.shift {
            0 | NONE_EARNED => 0,
            shift => 1 << (shift - 1),
        }
    }

    /// The whole nanoseconds of so many units.
    const fn nanos(&self, units: u64) -> u64 {
        match self.shift {
            NONE_EARNED if units > 0 => u64::MAX,
            NONE_EARNED => 0,
            shift => units >> shift,
        }
    }

    /// Whether it ever lets a run wait.
    pub(crate) const fn is_limited(&self) -> bool {
        self.period > 0
    }
}

/// A rate, and how much of it is used.
#[doc(hidden)]
#[derive(Clone, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Rate {
    pub(crate) limit: RateLimit,
    /// How many units the bucket lacked at `since` to be full, and half a nanosecond.
    debt: u64,
    since: Instant,
}

impl Rate {
    pub(crate) const fn full(limit: RateLimit) -> Self {
        // A bucket without room lacks a token for ever.
        let is_closed = limit.burst == 0 && limit.is_limited();
        Self {
            limit,
            debt: if is_closed { 1 } else { limit.half() },
            since: Instant::EPOCH,
        }
    }

    /// A run that waits for its token may start up to half a nanosecond late, because clocks show
    /// whole ones. The bucket is then full for so long, and must not lose that time.
    fn debt_at(&self, now: Instant) -> u64 {
        let limit = &self.limit;
        let elapsed = now.as_nanos().saturating_sub(self.since.as_nanos());
        let earned = match limit.shift {
            NONE_EARNED => 0,
            shift if elapsed.leading_zeros() < shift.into() => u64::MAX,
            shift => elapsed << shift,
        };
        self.debt.checked_sub(earned).unwrap_or(limit.half())
    }

    /// Whether the bucket is full.
    pub(crate) fn is_earned(&self, now: Instant) -> bool {
        self.limit.nanos(self.debt_at(now)) == 0
    }

    /// Takes a token.
    pub(crate) fn charge(&mut self, now: Instant) {
        self.debt = self.debt_at(now).saturating_add(self.limit.period);
        self.since = now;
    }

    /// When the bucket has a token: the next run is not allowed before. [`Instant::EPOCH`] if it had
    /// one after the last charge, [`Instant::NEVER`] if it gets none.
    pub(crate) fn rest_until(&self) -> Instant {
        let others = u64::from(self.limit.burst).saturating_sub(1);
        let rest = self.debt.saturating_sub(others * self.limit.period);
        match self.limit.nanos(rest) {
            0 => Instant::EPOCH,
            nanos => Instant::from_nanos(self.since.as_nanos().saturating_add(nanos)),
        }
    }
}

impl ConstDefault for Rate {
    const DEFAULT: Self = Self::full(RateLimit::new(f64::MAX, 0));
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// The waits, in nanoseconds, of runs that start as early as they may, one after the other.
    fn waits<const N: usize>(per_second: f64, burst: u32) -> [u64; N] {
        let mut rate = Rate::full(RateLimit::new(per_second, burst));
        let mut now = Instant::EPOCH;
        [(); N].map(|()| {
            let next = rate.rest_until().max(now);
            let wait = next.as_nanos() - now.as_nanos();
            now = next;
            rate.charge(now);
            wait
        })
    }

    /// When the last of `runs` runs starts, each as early as it may.
    fn end_of(runs: u32, per_second: f64) -> u64 {
        let mut rate = Rate::full(RateLimit::new(per_second, 1));
        let mut now = Instant::EPOCH;
        for _ in 1..runs {
            rate.charge(now);
            now = now.max(rate.rest_until());
        }
        now.as_nanos()
    }

    #[test]
    fn a_full_bucket_is_a_burst_and_then_the_rate() {
        assert_eq!(waits(1000.0, 3), [0, 0, 0, 1_000_000, 1_000_000]);
        assert_eq!(waits(0.25, 1), [0, 4 * SECOND, 4 * SECOND]);
        assert_eq!(waits(1.0 / 3600.0, 2), [0, 0, 3600 * SECOND]);
        assert_eq!(waits(1e9 / 7.0, 1), [0, 7, 7, 7]);
    }

    #[test]
    fn a_rate_is_exact_over_time() {
        assert_eq!(waits(3.0, 1), [0, 333_333_333, 333_333_334, 333_333_333]);
        for (runs, per_second, end) in [
            (3_000_001, 3.0, 1_000_000 * SECOND),
            (700_001, 7e5, SECOND),
            (3_000_001, 3e9, 1_000_000),
            (1_000_001, 0.3, 3_333_333_333_333_333),
        ] {
            assert_eq!(end_of(runs, per_second), end, "{per_second}");
        }
    }

    #[test]
    fn without_a_positive_rate_there_is_the_burst_and_nothing_else() {
        for rate in [0.0, -0.0, -7.0, f64::NEG_INFINITY, f64::NAN, 1e-300, 1e-10] {
            assert_eq!(waits(rate, 2), [0, 0, u64::MAX, 0], "{rate}");
        }
        assert_eq!(waits(1000.0, 0), [u64::MAX, 0]);
        assert_eq!(waits(1e300, 0), [u64::MAX, 0]);
    }

    #[test]
    fn an_unlimited_rate_ignores_the_burst() {
        for rate in [f64::MAX, f64::INFINITY] {
            for burst in [0, 1, u32::MAX] {
                assert!(!RateLimit::new(rate, burst).is_limited());
                assert_eq!(waits(rate, burst), [0, 0, 0]);
            }
        }
        assert_eq!(waits(1e300, 1), [0, 0, 0]);
    }

    /// The bucket fills in more nanoseconds than there are.
    #[test]
    fn a_burst_is_cut_rather_than_a_rate() {
        let limit = RateLimit::new(1.0 / 3600.0, u32::MAX);
        assert_eq!(limit.burst, 1 << 21);
        let mut rate = Rate::full(limit);
        for _ in 0..limit.burst {
            assert_eq!(rate.rest_until(), Instant::EPOCH);
            rate.charge(Instant::EPOCH);
        }
        assert_eq!(rate.rest_until().as_nanos(), 3600 * SECOND);
    }

    #[test]
    fn the_longest_idle_time_fills_the_bucket_and_no_more() {
        for per_second in [1e-9, 1.0, 1e9, 1e18] {
            let mut rate = Rate::full(RateLimit::new(per_second, 1));
            rate.charge(Instant::EPOCH);
            assert!(rate.is_earned(Instant::NEVER), "{per_second}");
        }
    }
}
