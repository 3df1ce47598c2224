//! The state machine of requeue.
#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(test)]
extern crate std;

mod limiter;
mod time;

pub use limiter::RateLimiter;
pub use time::{Clock, Instant};
