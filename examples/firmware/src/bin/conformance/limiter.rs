//! A limiter that is composed at run time, as the recordings describe it. It only dispatches: core
//! computes every delay.

use core::time::Duration;

use heapless::Vec;
use requeue_embassy::Instant;
use requeue_embassy::limiter::{Exponential, FastSlow, RateLimiter, TokenBucket, WithMaxWait};

use crate::judge::Judge;
use crate::recording::Bytes;

/// Limiters with a longest delay each. The longest of their delays counts.
#[derive(Debug)]
pub struct Limiter(Vec<WithMaxWait<Part>, PARTS_MAX>);

const PARTS_MAX: usize = 6;

#[derive(Debug)]
enum Part {
    Exponential(Exponential),
    FastSlow(FastSlow),
    TokenBucket(TokenBucket),
}

impl Limiter {
    /// A limiter with one part.
    pub fn exponential(base: Duration, max: Duration) -> Self {
        let part = Part::Exponential(Exponential::new(base, max));
        Self(core::iter::once(WithMaxWait::new(part, Duration::MAX)).collect())
    }
}

/// `build/limiter.rs` is the other end of this.
pub fn read(bytes: &mut Bytes<'_>) -> Limiter {
    let count = bytes.number();
    let parts = (0..count).map(|_| {
        let longest = match bytes.number().checked_sub(1) {
            None => Duration::MAX,
            Some(nanos) => Duration::from_nanos(nanos),
        };
        let part = match bytes.byte() {
            0 => {
                let (base, max) = (bytes.duration(), bytes.duration());
                Part::Exponential(Exponential::new(base, max))
            }
            1 => {
                let (fast, slow) = (bytes.duration(), bytes.duration());
                Part::FastSlow(FastSlow::new(fast, slow, bytes.small()))
            }
            _ => {
                let rate = f64::from_bits(bytes.word());
                Part::TokenBucket(TokenBucket::new(rate, bytes.small()))
            }
        };
        WithMaxWait::new(part, longest)
    });
    Limiter(parts.collect())
}

/// Replays the next recording of a limiter alone.
pub fn replay(bytes: &mut Bytes<'_>, judge: &mut Judge) {
    let mut limiter = read(bytes);
    let mut records = [[0; PARTS_MAX]; 16];
    let mut now = Instant::EPOCH;
    let steps = bytes.number();
    for _ in 0..steps {
        judge.steps += 1;
        let first = bytes.byte();
        let record = &mut records[usize::from(first & 0xF)];
        match first >> 4 {
            // Go leaves the delay open.
            0 => drop(limiter.when(record, now)),
            1 => {
                let delay = limiter.when(record, now);
                judge.expect(now, "when", delay, bytes.duration());
            }
            2 => *record = Default::default(),
            3 => judge.expect(now, "num_requeues", limiter.failures(record), bytes.small()),
            _ => now = now + bytes.duration(),
        }
    }
}

impl RateLimiter for Limiter {
    type Record = [u32; PARTS_MAX];

    fn when(&mut self, record: &mut Self::Record, now: Instant) -> Duration {
        let parts = self.0.iter_mut().zip(record);
        let delays = parts.map(|(part, failures)| part.when(failures, now));
        delays.max().unwrap_or_default()
    }

    fn failures(&self, record: &Self::Record) -> u32 {
        let parts = self.0.iter().zip(record);
        let counts = parts.map(|(part, failures)| part.failures(failures));
        counts.max().unwrap_or_default()
    }

    fn set_failures(&self, record: &mut Self::Record, count: u32) {
        for (failures, part) in record.iter_mut().zip(&self.0) {
            part.set_failures(failures, count);
        }
    }
}

impl RateLimiter for Part {
    type Record = u32;

    fn when(&mut self, failures: &mut u32, now: Instant) -> Duration {
        match self {
            Self::Exponential(limiter) => limiter.when(failures, now),
            Self::FastSlow(limiter) => limiter.when(failures, now),
            Self::TokenBucket(limiter) => limiter.when(&mut (), now),
        }
    }

    fn failures(&self, failures: &u32) -> u32 {
        match self {
            Self::Exponential(limiter) => limiter.failures(failures),
            Self::FastSlow(limiter) => limiter.failures(failures),
            Self::TokenBucket(limiter) => limiter.failures(&()),
        }
    }

    fn set_failures(&self, failures: &mut u32, count: u32) {
        match self {
            Self::Exponential(limiter) => limiter.set_failures(failures, count),
            Self::FastSlow(limiter) => limiter.set_failures(failures, count),
            Self::TokenBucket(limiter) => limiter.set_failures(&mut (), count),
        }
    }
}
