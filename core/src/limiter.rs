//! How long a failed key waits: arithmetic over a small record per key.

mod defaults;
mod exponential;
mod fast_slow;
mod jitter;
mod max_of;
mod max_wait;
mod token_bucket;

use core::time::Duration;

use crate::Instant;

pub use crate::keyed::KeyedLimiter;
pub use defaults::{DefaultController, DefaultItemBased, default_controller, default_item_based};
pub use exponential::Exponential;
pub use fast_slow::FastSlow;
pub use jitter::WithJitter;
pub use max_wait::WithMaxWait;
pub use token_bucket::TokenBucket;

/// Decides how long a key waits before its next run.
///
/// The limiter itself has what all keys share (its parameters, a bucket's tokens). What it knows
/// about a single key is the key's [`Record`](RateLimiter::Record), which the queue keeps in the
/// key's slot. A key is forgotten by resetting its record to the default, so a limiter cannot leak
/// keys. A limiter only computes a delay: what else a key has to wait for is the queue's
/// [`Policy`](crate::Policy).
///
/// # Contract
///
/// - `when` MUST be bounded in time and MUST NOT panic on any record that it has produced itself.
/// - The other methods MUST be bounded in time and MUST NOT panic, too.
/// - A default record MUST mean "has not failed".
/// - `now` is the time of the queue's clock. Limiters that do not need it ignore it.
///
/// # Composition
///
/// A tuple of up to eight limiters is a limiter: it asks and charges all of them, and returns the
/// longest delay and the largest number of failures. That is client-go's `MaxOfRateLimiter`. The
/// record is the tuple of their records, the empty tuple has no delay, and tuples nest.
///
/// ```
/// use core::time::Duration;
/// use requeue::limiter::{TokenBucket, Exponential, RateLimiter};
/// use requeue::Instant;
///
/// let per_key = Exponential::new(Duration::from_millis(5), Duration::from_secs(1));
/// let overall = TokenBucket::new(100.0, 1);
/// let mut limiter = (per_key, overall);
///
/// let (mut one, mut two) = ((0, ()), (0, ()));
/// assert_eq!(limiter.when(&mut one, Instant::EPOCH), Duration::from_millis(5));
/// assert_eq!(limiter.when(&mut two, Instant::EPOCH), Duration::from_millis(10));
/// assert_eq!(limiter.when(&mut one, Instant::EPOCH), Duration::from_millis(20));
/// ```
///
/// # Examples
///
/// A custom limiter, whose delay is linear in the number of failures:
///
/// ```
/// use core::time::Duration;
/// use requeue::limiter::RateLimiter;
/// use requeue::Instant;
///
/// struct Linear(Duration);
///
/// impl RateLimiter for Linear {
///     type Record = u32;
///
///     fn when(&mut self, failures: &mut u32, _now: Instant) -> Duration {
///         *failures = failures.saturating_add(1);
///         self.0.saturating_mul(*failures)
///     }
///
///     fn failures(&self, failures: &u32) -> u32 {
///         *failures
///     }
///
///     fn set_failures(&self, failures: &mut u32, count: u32) {
///         *failures = count;
///     }
/// }
///
/// let mut limiter = Linear(Duration::from_millis(10));
/// let mut failures = 0;
/// assert_eq!(limiter.when(&mut failures, Instant::EPOCH), Duration::from_millis(10));
/// assert_eq!(limiter.when(&mut failures, Instant::EPOCH), Duration::from_millis(20));
/// ```
#[doc(alias = "TypedRateLimiter")]
#[doc(alias = "MaxOfRateLimiter")]
#[doc(alias = "TypedMaxOfRateLimiter")]
pub trait RateLimiter {
    /// What the limiter keeps for one key: its failure record.
    ///
    /// The default means that the key has not failed. The queue does not keep a key for a record
    /// that equals the default.
    type Record: Default + PartialEq;

    /// Counts a failure of the key, and returns how long the key has to wait.
    ///
    /// [`Duration::MAX`] means never: the key then waits until it is added again. The
    /// [trait](Self) has examples.
    fn when(&mut self, record: &mut Self::Record, now: Instant) -> Duration;

    /// Returns how many failures are on record: client-go's `NumRequeues`.
    #[doc(alias = "NumRequeues")]
    fn failures(&self, record: &Self::Record) -> u32;

    /// Sets how many failures are on record, for [`Queue::restore`](crate::Session::restore).
    /// Charges nothing, and leaves what else is on record as it is.
    ///
    /// Zero failures MUST leave a default record as it is. A limiter that keeps more than a count,
    /// such as the time of the first failure, sets what delays the next retry by as much as is
    /// known to be right. A limiter that keeps nothing of a key does nothing.
    fn set_failures(&self, record: &mut Self::Record, count: u32);
}

impl<L: RateLimiter + ?Sized> RateLimiter for &mut L {
    type Record = L::Record;

    fn when(&mut self, record: &mut L::Record, now: Instant) -> Duration {
        (**self).when(record, now)
    }

    fn failures(&self, record: &L::Record) -> u32 {
        (**self).failures(record)
    }

    fn set_failures(&self, record: &mut L::Record, count: u32) {
        (**self).set_failures(record, count);
    }
}

/// No delay before a retry, and no failure records.
///
/// For queues whose workers set the delays themselves, or that retry nothing: a slot then has no
/// record. client-go has no such limiter; its queue without a limiter is a type of its own.
///
/// # Cost
///
/// None: no instruction, no byte.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use requeue::limiter::{NoLimit, RateLimiter};
/// use requeue::Instant;
///
/// assert_eq!(NoLimit.when(&mut (), Instant::EPOCH), Duration::ZERO);
/// assert_eq!(NoLimit.failures(&()), 0);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct NoLimit;

impl RateLimiter for NoLimit {
    type Record = ();

    fn when(&mut self, (): &mut (), _now: Instant) -> Duration {
        Duration::ZERO
    }

    fn failures(&self, (): &()) -> u32 {
        0
    }

    fn set_failures(&self, (): &mut (), _: u32) {}
}
