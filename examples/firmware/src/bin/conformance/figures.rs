//! The figures of client-go's metrics. Lists of durations are kept as a count and a hash.

use core::time::Duration;

use requeue_embassy::metrics::{Metrics, Times};

use crate::recording::Bytes;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    pub depth: usize,
    pub adds: u32,
    pub retries: u32,
    pub unfinished: Duration,
    pub longest: Duration,
    pub reports: u32,
    pub latencies: Durations,
    pub work_durations: Durations,
}

impl Figures {
    pub fn read(bytes: &mut Bytes<'_>) -> Self {
        Self {
            depth: bytes.small() as usize,
            adds: bytes.small(),
            retries: bytes.small(),
            unfinished: bytes.duration(),
            longest: bytes.duration(),
            reports: bytes.small(),
            latencies: Durations::read(bytes),
            work_durations: Durations::read(bytes),
        }
    }
}

impl Metrics for Figures {
    type Timestamps = Times;

    fn depth(&mut self, keys: usize) {
        self.depth = keys;
    }

    fn added(&mut self) {
        self.adds += 1;
    }

    fn queue_latency(&mut self, latency: Duration) {
        self.latencies.push(latency);
    }

    fn work_duration(&mut self, duration: Duration) {
        self.work_durations.push(duration);
    }

    fn unfinished_work(&mut self, sum: Duration) {
        self.unfinished = sum;
        self.reports += 1;
    }

    fn longest_running(&mut self, longest: Duration) {
        self.longest = longest;
    }

    fn retry(&mut self) {
        self.retries += 1;
    }
}

/// How many durations there were, and a hash of all in order.
#[derive(Clone, Debug, PartialEq)]
pub struct Durations {
    count: u32,
    hash: u64,
}

impl Durations {
    fn read(bytes: &mut Bytes<'_>) -> Self {
        Self {
            count: bytes.small(),
            hash: bytes.word(),
        }
    }

    fn push(&mut self, duration: Duration) {
        let nanos = duration.as_nanos() as u64;
        self.count += 1;
        self.hash = (self.hash ^ nanos).wrapping_mul(0x100_0000_01B3);
    }
}

impl Default for Durations {
    fn default() -> Self {
        Self {
            count: 0,
            hash: 0xCBF2_9CE4_8422_2325,
        }
    }
}
