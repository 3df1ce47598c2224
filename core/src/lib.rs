//! The state machine of requeue.
#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(test)]
extern crate std;

mod backoff;
mod limiter;
mod time;

pub use backoff::{
    Attempt, Attempts, Backoff, BackoffManager, BackoffUntil, DelayWithReset,
    ExponentialBackoffManager, NoJitter, jitter,
};
pub use limiter::{
    Bucket, DefaultController, DefaultItemBased, ItemExponentialFailure, ItemFastSlow, NoLimit,
    RateLimiter, WithMaxWait, default_controller, default_item_based,
};
pub use time::{Clock, Instant};
