//! The default limiters of client-go. Owns their numbers and nothing else.

use core::time::Duration;

use crate::limiter::{Exponential, TokenBucket};

/// The longest delay of both defaults.
const MAX: Duration = Duration::from_secs(1000);

/// The type of [`default_controller`]: exponential per key, and a bucket for all keys together. It
/// is a short name in the type of a queue:
///
/// ```
/// use requeue::limiter::{DefaultController, default_controller};
/// use requeue::priority::Plain;
/// use requeue::storage::Fixed;
/// use requeue::Queue;
///
/// type Nodes = Queue<u16, Plain, DefaultController, Fixed<64>>;
/// const NODES: Nodes = Queue::new(default_controller());
/// assert_eq!(NODES.stats().max_keys, Some(64));
/// ```
pub type DefaultController = (Exponential, TokenBucket);

/// The type of [`default_item_based`]: exponential per key. It is a short name in the type of a
/// queue:
///
/// ```
/// use requeue::limiter::{DefaultItemBased, default_item_based};
/// use requeue::priority::Plain;
/// use requeue::storage::Fixed;
/// use requeue::Queue;
///
/// type Sensors = Queue<u8, Plain, DefaultItemBased, Fixed<16>>;
/// const SENSORS: Sensors = Queue::new(default_item_based());
/// assert_eq!(SENSORS.stats().max_keys, Some(16));
/// ```
pub type DefaultItemBased = Exponential;

/// Creates client-go's `DefaultControllerRateLimiter`: 5 ms, doubling up to 1000 s, for each key,
/// and at most 10 retries per second after a burst of 100 for all keys together.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use requeue::limiter::{DefaultController, RateLimiter, default_controller};
/// use requeue::Instant;
///
/// let mut limiter: DefaultController = default_controller();
/// let mut record = Default::default();
/// assert_eq!(limiter.when(&mut record, Instant::EPOCH), Duration::from_millis(5));
/// assert_eq!(limiter.when(&mut record, Instant::EPOCH), Duration::from_millis(10));
/// ```
#[doc(alias = "DefaultControllerRateLimiter")]
#[doc(alias = "DefaultTypedControllerRateLimiter")]
pub const fn default_controller() -> DefaultController {
    (
        Exponential::new(Duration::from_millis(5), MAX),
        TokenBucket::new(10.0, 100),
    )
}

/// Creates client-go's `DefaultItemBasedRateLimiter`: 1 ms, doubling up to 1000 s, for each key.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use requeue::limiter::{RateLimiter, default_item_based};
/// use requeue::Instant;
///
/// let mut limiter = default_item_based();
/// let mut failures = 3;
/// assert_eq!(limiter.when(&mut failures, Instant::EPOCH), Duration::from_millis(8));
/// ```
#[doc(alias = "DefaultItemBasedRateLimiter")]
#[doc(alias = "DefaultTypedItemBasedRateLimiter")]
pub const fn default_item_based() -> DefaultItemBased {
    Exponential::new(Duration::from_millis(1), MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Instant;
    use crate::limiter::{FastSlow, NoLimit, RateLimiter, WithMaxWait};

    /// Every limiter can be part of a `static`.
    static _IN_A_STATIC: (
        DefaultController,
        WithMaxWait<DefaultItemBased>,
        FastSlow,
        TokenBucket,
        NoLimit,
    ) = (
        default_controller(),
        WithMaxWait::new(default_item_based(), MAX),
        FastSlow::new(Duration::ZERO, MAX, 3),
        TokenBucket::every(MAX, 1),
        NoLimit,
    );

    #[test]
    fn the_bucket_takes_over_after_its_burst() {
        let mut limiter = default_controller();
        for _ in 0..100 {
            let delay = limiter.when(&mut Default::default(), Instant::EPOCH);
            assert_eq!(delay, Duration::from_millis(5));
        }
        for expected in [100, 200] {
            let delay = limiter.when(&mut Default::default(), Instant::EPOCH);
            assert_eq!(delay, Duration::from_millis(expected));
        }
    }

    #[test]
    fn a_borrowed_limiter_limits() {
        let mut bucket = TokenBucket::new(10.0, 1);
        let mut first = (&mut bucket, default_item_based());
        let delay = first.when(&mut Default::default(), Instant::EPOCH);
        assert_eq!(delay, Duration::from_millis(1));
        let mut second = &mut bucket;
        let delay = RateLimiter::when(&mut second, &mut (), Instant::EPOCH);
        assert_eq!(delay, Duration::from_millis(100));
        let mut third = default_item_based();
        assert_eq!(RateLimiter::failures(&&mut third, &7), 7);
    }
}
