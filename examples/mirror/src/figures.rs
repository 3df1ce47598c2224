//! The queue's metrics.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use hdrhistogram::{CreationError, Histogram};
use requeue::metrics::{Metrics, Times};

use crate::mirror::locked;

/// The metrics of the queue. Clones share them: one is for the queue, one for the summary.
#[derive(Clone, Debug)]
pub(crate) struct Figures(Arc<Mutex<Counts>>);

#[derive(Debug)]
struct Counts {
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
        Ok(Self(Arc::new(Mutex::new(Counts {
            adds: 0,
            coalesced: 0,
            retries: 0,
            // With its bounds set beforehand, it never allocates while the queue is locked.
            latency: Histogram::new_with_max(HOUR_MICROS, DIGITS)?,
        }))))
    }

    pub(crate) fn shown(&self) -> Shown {
        let counts = locked(&self.0);
        let quantile = |q| Duration::from_micros(counts.latency.value_at_quantile(q));
        Shown {
            adds: counts.adds,
            coalesced: counts.coalesced,
            retries: counts.retries,
            latency_p50: quantile(0.5),
            latency_p99: quantile(0.99),
        }
    }
}

impl Metrics for Figures {
    type Timestamps = Times;

    fn added(&mut self) {
        locked(&self.0).adds += 1;
    }

    fn queue_latency(&mut self, latency: Duration) {
        let micros = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX);
        locked(&self.0).latency.saturating_record(micros);
    }

    fn retry(&mut self) {
        locked(&self.0).retries += 1;
    }

    fn coalesced(&mut self) {
        locked(&self.0).coalesced += 1;
    }
}

#[cfg(test)]
mod tests {
    use requeue::limiter::NoLimit;
    use requeue::priority::Plain;
    use requeue::storage::Fixed;
    use requeue::{Instant, Queue};

    use super::*;

    #[test]
    fn figures_follow_the_queue() {
        let figures = Figures::new().unwrap();
        let mut queue: Queue<u8, Plain, NoLimit, Fixed<4>, Figures> =
            Queue::with_metrics(NoLimit, figures);
        let at = |millis| Instant::EPOCH + Duration::from_millis(millis);
        for _ in 0..3 {
            let _ = queue.at(at(0)).add(1);
        }
        let _ = queue.at(at(0)).add_after(2, Duration::from_millis(5));
        let _ = queue.at(at(100)).try_get();

        let shown = queue.metrics().shown();
        assert_eq!((shown.adds, shown.coalesced, shown.retries), (2, 2, 1));
        let p50 = shown.latency_p50.as_millis();
        assert!((99..=101).contains(&p50), "{p50}");
    }
}
