//! A limiter that is composed at run time, as the recordings describe it. It only dispatches: every
//! delay has been computed by core.

use core::time::Duration;

use heapless::Vec;
use requeue_embassy::core::{
    Bucket, Instant, ItemExponentialFailure, ItemFastSlow, RateLimiter, WithMaxWait,
};

use crate::recording::Bytes;

/// Limiters of which the longest delay counts, cut short.
pub type Limiter = WithMaxWait<Longest>;

const PARTS_MAX: usize = 3;

#[derive(Debug)]
pub struct Longest(Vec<Part, PARTS_MAX>);

#[derive(Debug)]
enum Part {
    Exponential(ItemExponentialFailure),
    FastSlow(ItemFastSlow),
    Bucket(Bucket),
}

pub fn read(bytes: &mut Bytes<'_>) -> Limiter {
    let count = bytes.number();
    let parts = (0..count).map(|_| match bytes.byte() {
        0 => {
            let (base, max) = (bytes.duration(), bytes.duration());
            Part::Exponential(ItemExponentialFailure::new(base, max))
        }
        1 => {
            let (fast, slow) = (bytes.duration(), bytes.duration());
            Part::FastSlow(ItemFastSlow::new(fast, slow, bytes.small()))
        }
        _ => {
            let rate = f64::from_bits(bytes.word());
            Part::Bucket(Bucket::new(rate, bytes.small()))
        }
    });
    let longest = Longest(parts.collect());
    WithMaxWait::new(longest, bytes.duration())
}

impl RateLimiter for Longest {
    type Memory = [u32; PARTS_MAX];

    fn when(&mut self, memory: &mut Self::Memory, now: Instant) -> Duration {
        let parts = self.0.iter_mut().zip(memory);
        let delays = parts.map(|(part, failures)| match part {
            Part::Exponential(limiter) => limiter.when(failures, now),
            Part::FastSlow(limiter) => limiter.when(failures, now),
            Part::Bucket(limiter) => limiter.when(&mut (), now),
        });
        delays.max().unwrap_or_default()
    }

    fn requeues(&self, memory: &Self::Memory) -> u32 {
        let parts = self.0.iter().zip(memory);
        let counts = parts.map(|(part, failures)| match part {
            Part::Exponential(limiter) => limiter.requeues(failures),
            Part::FastSlow(limiter) => limiter.requeues(failures),
            Part::Bucket(limiter) => limiter.requeues(&()),
        });
        counts.max().unwrap_or_default()
    }
}
