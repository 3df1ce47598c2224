//! Why a call that waits came back without a key.

use core::fmt;

use crate::sync::TooManyWaiters;

/// Why [`WorkQueue::get`](crate::WorkQueue::get) has no key.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use embassy_futures::block_on;
/// use requeue_embassy::core::{NoLimit, NoMetrics};
/// use requeue_embassy::raw::NoopRawMutex;
/// use requeue_embassy::{GetError, WorkQueue};
///
/// let queue: WorkQueue<NoopRawMutex, u16, 8, NoLimit> = WorkQueue::new(NoLimit);
/// let error = block_on(queue.get_timeout(Duration::ZERO)).unwrap_err();
/// assert_eq!(error, GetError::TimedOut);
/// queue.shut_down();
/// let error = block_on(queue.get()).unwrap_err();
/// assert_eq!(error, GetError::Closed);
/// assert_eq!(error.to_string(), "the queue is shutting down and nothing is ready");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum GetError {
    /// No key was ready in time. Only calls with a deadline answer this.
    TimedOut,
    /// The queue is shutting down and nothing is ready.
    Closed,
    /// No key is ready, and more calls wait already than the queue has places for.
    TooManyWaiters,
}

impl fmt::Display for GetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimedOut => f.write_str("no key was ready in time"),
            Self::Closed => f.write_str("the queue is shutting down and nothing is ready"),
            Self::TooManyWaiters => TooManyWaiters.fmt(f),
        }
    }
}

impl core::error::Error for GetError {}

impl From<TooManyWaiters> for GetError {
    fn from(_: TooManyWaiters) -> Self {
        Self::TooManyWaiters
    }
}
