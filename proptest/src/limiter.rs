//! A limiter that is composed at run time.
//!
//! requeue composes limiters as types. A test or a recording composes them as values, so this is
//! the one place that turns values into types: an enum over core's limiters, which only dispatches.
//! Every delay it returns is computed by core.

use std::time::Duration;

use requeue_core::Instant;
use requeue_core::limiter::{
    Exponential, FastSlow, NoLimit, RateLimiter, TokenBucket, WithMaxWait, default_controller,
    default_item_based,
};

/// What an [`AnyLimiter`] remembers of a key: how often it has failed. A queue tells by zero that the
/// key costs no room.
pub type AnyRecord = u32;

/// A limiter as a value. With the feature `serde` it is read from JSON, as recordings hold it.
///
/// # Examples
///
/// ```
/// use requeue_core::limiter::RateLimiter;
/// use requeue_core::Instant;
/// use requeue_proptest::limiter::{AnyRecord, LimiterSpec};
///
/// let inner = Box::new(LimiterSpec::Exponential { base_ns: 1, max_ns: 1000 });
/// let mut limiter = LimiterSpec::WithMaxWait { inner, max_ns: 3 }.build();
/// let mut memory = AnyRecord::default();
/// let mut when = || limiter.when(&mut memory, Instant::EPOCH).as_nanos();
/// assert_eq!([when(), when(), when()], [1, 2, 3]);
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(tag = "type", rename_all = "snake_case"))]
pub enum LimiterSpec {
    /// [`Exponential`].
    Exponential {
        /// The first delay, in nanoseconds.
        base_ns: u64,
        /// The longest delay, in nanoseconds.
        max_ns: u64,
    },
    /// [`FastSlow`].
    FastSlow {
        /// The delay of the first attempts, in nanoseconds.
        fast_ns: u64,
        /// The delay of the later ones, in nanoseconds.
        slow_ns: u64,
        /// How many attempts are fast. Go's is signed; below zero it acts as zero does.
        max_fast_attempts: i64,
    },
    /// [`TokenBucket`].
    #[cfg_attr(feature = "serde", serde(rename = "bucket"))]
    TokenBucket {
        /// Tokens per second.
        rate_bits: FloatBits,
        /// Tokens in a full bucket.
        burst: u32,
    },
    /// A tuple: the longest delay of all.
    MaxOf {
        /// The limiters to ask, in this order.
        limiters: Vec<LimiterSpec>,
    },
    /// [`WithMaxWait`].
    WithMaxWait {
        /// The limiter to ask.
        inner: Box<LimiterSpec>,
        /// The longest delay, in nanoseconds.
        max_ns: u64,
    },
    /// [`default_controller`].
    DefaultController,
    /// [`default_item_based`].
    DefaultItemBased,
}

impl LimiterSpec {
    /// Creates the limiter that this describes, in its first state.
    pub fn build(&self) -> AnyLimiter {
        match self {
            Self::Exponential { base_ns, max_ns } => {
                let (base, max) = (nanos(*base_ns), nanos(*max_ns));
                AnyLimiter::Exponential(Exponential::new(base, max))
            }
            Self::FastSlow {
                fast_ns,
                slow_ns,
                max_fast_attempts,
            } => {
                let (fast, slow) = (nanos(*fast_ns), nanos(*slow_ns));
                let attempts = u32::try_from((*max_fast_attempts).max(0)).unwrap_or(u32::MAX);
                AnyLimiter::FastSlow(FastSlow::new(fast, slow, attempts))
            }
            Self::TokenBucket { rate_bits, burst } => {
                AnyLimiter::TokenBucket(TokenBucket::new(rate_bits.0, *burst))
            }
            // A list is nested pairs that end in no limiter, which is what `()` is to a tuple.
            Self::MaxOf { limiters } => {
                let limiters = limiters.iter().map(Self::build);
                limiters.rfold(AnyLimiter::NoLimit, |rest, first| first.or_longer(rest))
            }
            Self::WithMaxWait { inner, max_ns } => {
                let limited = WithMaxWait::new(inner.build(), nanos(*max_ns));
                AnyLimiter::WithMaxWait(Box::new(limited))
            }
            Self::DefaultController => {
                let (exponential, bucket) = default_controller();
                let bucket = AnyLimiter::TokenBucket(bucket);
                AnyLimiter::Exponential(exponential).or_longer(bucket)
            }
            Self::DefaultItemBased => AnyLimiter::Exponential(default_item_based()),
        }
    }
}

/// The limiter of every queue under test, chosen at run time.
#[derive(Clone, Debug, Default)]
pub enum AnyLimiter {
    /// No delay.
    #[default]
    NoLimit,
    /// Exponential per key.
    Exponential(Exponential),
    /// Fast at first, then slow.
    FastSlow(FastSlow),
    /// A bucket for all keys.
    TokenBucket(TokenBucket),
    /// The longer delay of two.
    MaxOf(Box<(AnyLimiter, AnyLimiter)>),
    /// A delay that is cut short.
    WithMaxWait(Box<WithMaxWait<AnyLimiter>>),
}

impl AnyLimiter {
    fn or_longer(self, other: Self) -> Self {
        Self::MaxOf(Box::new((self, other)))
    }
}

impl RateLimiter for AnyLimiter {
    type Record = AnyRecord;

    fn when(&mut self, record: &mut AnyRecord, now: Instant) -> Duration {
        match self {
            Self::NoLimit => NoLimit.when(&mut (), now),
            Self::Exponential(limiter) => limiter.when(record, now),
            Self::FastSlow(limiter) => limiter.when(record, now),
            Self::TokenBucket(limiter) => limiter.when(&mut (), now),
            Self::MaxOf(limiters) => {
                let mut both = (*record, *record);
                let delay = limiters.as_mut().when(&mut both, now);
                *record = both.0.max(both.1);
                delay
            }
            Self::WithMaxWait(limiter) => limiter.as_mut().when(record, now),
        }
    }

    fn failures(&self, record: &AnyRecord) -> u32 {
        match self {
            Self::NoLimit => NoLimit.failures(&()),
            Self::Exponential(limiter) => limiter.failures(record),
            Self::FastSlow(limiter) => limiter.failures(record),
            Self::TokenBucket(limiter) => limiter.failures(&()),
            Self::MaxOf(limiters) => limiters.as_ref().failures(&(*record, *record)),
            Self::WithMaxWait(limiter) => limiter.as_ref().failures(record),
        }
    }

    fn set_failures(&self, record: &mut AnyRecord, count: u32) {
        match self {
            Self::NoLimit | Self::TokenBucket(_) => {}
            Self::Exponential(limiter) => limiter.set_failures(record, count),
            Self::FastSlow(limiter) => limiter.set_failures(record, count),
            Self::MaxOf(limiters) => {
                let mut both = (0, 0);
                limiters.as_ref().set_failures(&mut both, count);
                *record = both.0.max(both.1);
            }
            Self::WithMaxWait(limiter) => limiter.as_ref().set_failures(record, count),
        }
    }
}

/// A float. Recordings hold its bits, in 16 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "String"))]
pub struct FloatBits(pub f64);

impl TryFrom<String> for FloatBits {
    type Error = std::num::ParseIntError;

    fn try_from(digits: String) -> Result<Self, Self::Error> {
        u64::from_str_radix(&digits, 16).map(|bits| Self(f64::from_bits(bits)))
    }
}

/// A duration of a recording.
const fn nanos(nanos: u64) -> Duration {
    Duration::from_nanos(nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_memory_without_failures_is_fresh_however_nested() {
        let bucket = TokenBucket::new(f64::MAX, 1);
        let inner = AnyLimiter::TokenBucket(bucket).or_longer(AnyLimiter::NoLimit);
        let mut limiter = AnyLimiter::NoLimit.or_longer(inner);
        let mut record = AnyRecord::default();
        assert_eq!(limiter.when(&mut record, Instant::EPOCH), Duration::ZERO);
        assert_eq!(record, 0);
    }
}
