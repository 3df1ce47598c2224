//! The queue's figures: for Prometheus under Kubernetes' names, and how long keys wait, for the
//! page.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hdrhistogram::Histogram;
use requeue::metrics::{Metrics, Times};
use requeue::tokio::metrics::NamedMetrics;

/// The queue's metrics. Clones share the waits.
pub(crate) struct Figures {
    named: NamedMetrics,
    waits: Arc<Waits>,
}

/// How long keys waited lately: since the last [turn](Waits::turn) but one.
#[derive(Debug)]
pub(crate) struct Waits(Mutex<Generations>);

#[derive(Debug)]
struct Generations {
    /// In microseconds, as is the older one.
    newer: Histogram<u32>,
    older: Histogram<u32>,
}

impl Figures {
    pub(crate) fn new(named: NamedMetrics, waits: &Arc<Waits>) -> Self {
        Self {
            named,
            waits: Arc::clone(waits),
        }
    }
}

impl Waits {
    pub(crate) fn new() -> Result<Self, hdrhistogram::CreationError> {
        const HOUR_MICROS: u64 = 3_600_000_000;
        const DIGITS: u8 = 2;
        // With its bounds set beforehand, it never allocates while the queue is locked.
        let newer = Histogram::new_with_max(HOUR_MICROS, DIGITS)?;
        let older = newer.clone();
        Ok(Self(Mutex::new(Generations { newer, older })))
    }

    /// Returns the 99th percentile.
    pub(crate) fn p99(&self) -> Duration {
        let generations = self.locked();
        let mut both = generations.older.clone();
        // Cannot fail: both have the same bounds.
        let _ = both.add(&generations.newer);
        Duration::from_micros(both.value_at_quantile(0.99))
    }

    /// Forgets all waits but those since the last turn.
    pub(crate) fn turn(&self) {
        let mut guard = self.locked();
        let generations = &mut *guard;
        std::mem::swap(&mut generations.newer, &mut generations.older);
        generations.newer.reset();
    }

    fn record(&self, wait: Duration) {
        let micros = u64::try_from(wait.as_micros()).unwrap_or(u64::MAX);
        self.locked().newer.saturating_record(micros);
    }

    fn locked(&self) -> MutexGuard<'_, Generations> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Metrics for Figures {
    type Timestamps = Times;

    fn depth(&mut self, keys: usize) {
        self.named.depth(keys);
    }

    fn added(&mut self) {
        self.named.added();
    }

    fn queue_latency(&mut self, latency: Duration) {
        self.waits.record(latency);
        self.named.queue_latency(latency);
    }

    fn work_duration(&mut self, duration: Duration) {
        self.named.work_duration(duration);
    }

    fn unfinished_work(&mut self, sum: Duration) {
        self.named.unfinished_work(sum);
    }

    fn longest_running(&mut self, longest: Duration) {
        self.named.longest_running(longest);
    }

    fn retry(&mut self) {
        self.named.retry();
    }

    fn coalesced(&mut self) {
        self.named.coalesced();
    }

    fn delayed(&mut self, keys: usize) {
        self.named.delayed(keys);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_forgotten_after_two_turns() {
        let waits = Waits::new().unwrap();
        assert_eq!(waits.p99(), Duration::ZERO);
        waits.record(Duration::from_secs(2));
        for is_known in [true, true, false] {
            assert_eq!(waits.p99() > Duration::from_secs(1), is_known);
            waits.turn();
        }
        waits.record(Duration::MAX);
        assert!(waits.p99() > Duration::from_secs(3599));
    }
}
