//! The queue's own figures.

use std::time::Duration;

use hdrhistogram::{CreationError, Histogram};
use requeue::{Metrics, Times};

/// What the queue tells of itself. It lives inside the queue, which calls it under its lock, so it
/// needs no lock or atomics of its own.
#[derive(Debug)]
pub(crate) struct Figures {
    adds: u64,
    coalesced: u64,
    retries: u64,
    /// In microseconds.
    latency: Histogram<u64>,
}

/// The figures as the summary shows them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Shown {
    pub(crate) adds: u64,
    pub(crate) coalesced: u64,
    pub(crate) retries: u64,
    pub(crate) latency_p50: Duration,
    pub(crate) latency_p99: Duration,
}

impl Figures {
    pub(crate) fn new() -> Result<Self, CreationError> {
        const HOUR_MICROS: u64 = 3_600_000_000;
        const DIGITS: u8 = 3;
        Ok(Self {
            adds: 0,
            coalesced: 0,
            retries: 0,
            // With its bounds set beforehand, it never allocates while the queue is locked.
            latency: Histogram::new_with_max(HOUR_MICROS, DIGITS)?,
        })
    }

    pub(crate) fn shown(&self) -> Shown {
        let quantile = |q| Duration::from_micros(self.latency.value_at_quantile(q));
        Shown {
            adds: self.adds,
            coalesced: self.coalesced,
            retries: self.retries,
            latency_p50: quantile(0.5),
            latency_p99: quantile(0.99),
        }
    }
}

impl Metrics for Figures {
    type Stamps = Times;

    fn add(&mut self) {
        self.adds += 1;
    }

    fn queue_latency(&mut self, latency: Duration) {
        let micros = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX);
        self.latency.saturating_record(micros);
    }

    fn retry(&mut self) {
        self.retries += 1;
    }

    fn coalesced(&mut self) {
        self.coalesced += 1;
    }
}

#[cfg(test)]
mod tests {
    use requeue::{Fixed, Instant, NoLimit, Queue};

    use super::*;

    #[test]
    fn figures_follow_the_queue() {
        let figures = Figures::new().unwrap();
        let mut queue: Queue<u8, Fixed<4>, NoLimit, Figures> =
            Queue::with_metrics(NoLimit, figures);
        let at = |millis| Instant::EPOCH + Duration::from_millis(millis);
        for _ in 0..3 {
            let _ = queue.add(1, at(0));
        }
        let _ = queue.add_after(2, Duration::from_millis(5), at(0));
        let _ = queue.try_get(at(100));

        let shown = queue.metrics().shown();
        assert_eq!((shown.adds, shown.coalesced, shown.retries), (2, 2, 1));
        let p50 = shown.latency_p50.as_millis();
        assert!((99..=101).contains(&p50), "{p50}");
    }
}
