//! No limit at all.

use core::time::Duration;

use crate::{Instant, RateLimiter};

/// A retry does not wait, and nothing is remembered of a key.
///
/// For queues that retry at their own pace or not at all: a slot then has no room for a memory.
/// client-go has no such limiter; its queue without a limit is a type of its own.
///
/// # Cost
///
/// None: no instruction, no byte.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use requeue_core::{Instant, NoLimit, RateLimiter};
///
/// assert_eq!(NoLimit.when(&mut (), Instant::EPOCH), Duration::ZERO);
/// assert_eq!(NoLimit.requeues(&()), 0);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct NoLimit;

impl RateLimiter for NoLimit {
    type Record = ();

    fn when(&mut self, (): &mut (), _now: Instant) -> Duration {
        Duration::ZERO
    }

    fn requeues(&self, (): &()) -> u32 {
        0
    }
}
