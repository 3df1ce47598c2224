//! What a queue reports to its metrics, written down.

use std::collections::BTreeMap;
use std::time::Duration;

use requeue_core::metrics::{Metrics, Times};

#[cfg(any(feature = "std", feature = "tokio"))]
mod shared;

#[cfg(any(feature = "std", feature = "tokio"))]
pub(crate) use shared::SharedFigures;

/// client-go's seven figures and those of successes, with every observation of the histograms in
/// order.
///
/// # Examples
///
/// ```
/// use requeue_core::limiter::NoLimit;
/// use requeue_core::priority::Plain;
/// use requeue_core::storage::Fixed;
/// use requeue_core::{Instant, Queue};
/// use requeue_proptest::Figures;
///
/// let mut queue: Queue<u8, Plain, NoLimit, Fixed<4>, Figures> =
///     Queue::with_metrics(NoLimit, Figures::default());
/// let _ = queue.at(Instant::EPOCH).add(1);
/// assert_eq!((queue.metrics().adds, queue.metrics().depth), (1, 1));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// How many keys are ready or dirty. Signed, since client-go's can go wrong.
    pub depth: i64,
    /// How many keys have become ready or dirty.
    pub adds: u64,
    /// How many times a key was asked to come back later.
    pub retries: u64,
    /// How long each key that was handed out had waited.
    pub latencies: Vec<Duration>,
    /// How long each run lasted.
    pub work_durations: Vec<Duration>,
    /// How long each success took, from the first add of its key.
    pub times_to_success: Vec<Duration>,
    /// Which attempt each of them was, from 1.
    pub attempts_at_success: Vec<u32>,
    /// How long all active keys had been so, when that was last reported.
    pub unfinished: Duration,
    /// How long the longest run had lasted, when that was last reported.
    pub longest: Duration,
    /// How many times the last two were reported.
    pub reports: u64,
    /// How many keys of each priority level are ready or dirty, where that is any. Empty for a
    /// queue without levels.
    pub depths: BTreeMap<u8, usize>,
}

impl Metrics for Figures {
    type Timestamps = Times;

    fn depth(&mut self, keys: usize) {
        self.depth = i64::try_from(keys).unwrap_or(i64::MAX);
    }

    fn depth_at(&mut self, priority: u8, keys: usize) {
        if keys == 0 {
            self.depths.remove(&priority);
        } else {
            self.depths.insert(priority, keys);
        }
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

    fn time_to_success(&mut self, time: Duration) {
        self.times_to_success.push(time);
    }

    fn attempts_at_success(&mut self, attempts: u32) {
        self.attempts_at_success.push(attempts);
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
