//! No limit at all.

use core::time::Duration;

use crate::Instant;
use crate::limiter::RateLimiter;

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
/// use requeue_core::limiter::{NoLimit, RateLimiter};
/// use requeue_core::Instant;
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
