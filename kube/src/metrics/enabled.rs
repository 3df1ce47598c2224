//! Metrics through the facade `metrics`.

use std::sync::Arc;

use metrics::{
    Counter, Gauge, Histogram, SharedString, Unit, counter, describe_counter, describe_gauge,
    describe_histogram, gauge, histogram,
};
use requeue::tokio::Action;
use tokio::time::Instant;

use crate::keys::KeysBuilder;

/// The upper bounds, in seconds, of `controller_runtime_reconcile_time_seconds` in
/// controller-runtime, for an exporter that turns histograms into summaries by default.
pub const RECONCILE_BUCKETS: [f64; 40] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9,
    1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0,
    25.0, 30.0, 40.0, 50.0, 60.0,
];

/// Whether this replica is the leader.
pub(crate) struct LeaderMetrics(Gauge);

impl LeaderMetrics {
    pub(crate) fn new(lease: &str) -> Self {
        describe_gauge!(
            "leader_election_master_status",
            "Whether this replica holds the lease"
        );
        let status = gauge!("leader_election_master_status", "name" => lease.to_owned());
        status.set(0);
        Self(status)
    }

    pub(crate) fn leads(&self, leads: bool) {
        self.0.set(u8::from(leads));
    }
}

/// What is counted of the runs of a controller, if it has a name.
#[derive(Clone)]
pub(crate) struct RunMetrics(Option<Arc<Counts>>);

struct Counts {
    success: Counter,
    error: Counter,
    requeue: Counter,
    requeue_after: Counter,
    errors: Counter,
    panics: Counter,
    time: Histogram,
    active: Gauge,
}

/// A run that is counted as active until it is dropped.
pub(crate) struct Run {
    counts: Option<Arc<Counts>>,
    began: Instant,
}

impl RunMetrics {
    pub(crate) fn new(controller: Option<&str>, workers: usize) -> Self {
        let Some(name) = controller else {
            return Self(None);
        };
        describe();
        let name: SharedString = name.to_owned().into();
        let name = || name.clone();
        let total = |result: &'static str| {
            let runs = "controller_runtime_reconcile_total";
            counter!(runs, "controller" => name(), "result" => result)
        };
        gauge!("controller_runtime_max_concurrent_reconciles", "controller" => name())
            .set(workers as f64);
        Self(Some(Arc::new(Counts {
            success: total("success"),
            error: total("error"),
            requeue: total("requeue"),
            requeue_after: total("requeue_after"),
            errors: counter!("controller_runtime_reconcile_errors_total", "controller" => name()),
            panics: counter!("controller_runtime_reconcile_panics_total", "controller" => name()),
            time: histogram!("controller_runtime_reconcile_time_seconds", "controller" => name()),
            active: gauge!("controller_runtime_active_workers", "controller" => name()),
        })))
    }

    pub(crate) fn begin(&self) -> Run {
        if let Some(counts) = &self.0 {
            counts.active.increment(1);
        }
        Run {
            counts: self.0.clone(),
            began: Instant::now(),
        }
    }
}

impl Run {
    pub(crate) fn end<E>(self, result: &Result<Action, E>) {
        let Some(counts) = &self.counts else {
            return;
        };
        match result {
            Ok(Action::RequeueAfter(_)) => counts.requeue_after.increment(1),
            Ok(Action::Retry | Action::RetryAfter(_)) => counts.requeue.increment(1),
            Ok(_) => counts.success.increment(1),
            Err(_) => {
                counts.error.increment(1);
                counts.errors.increment(1);
            }
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let Some(counts) = &self.counts else {
            return;
        };
        counts.active.decrement(1);
        counts.time.record(self.began.elapsed());
        if std::thread::panicking() {
            counts.panics.increment(1);
            counts.error.increment(1);
            counts.errors.increment(1);
        }
    }
}

/// Reports the metrics of a queue under the name of its controller, if that has one.
pub(crate) fn attach(builder: KeysBuilder, name: Option<&str>) -> KeysBuilder {
    match name {
        Some(name) => builder.metrics(name.to_owned()),
        None => builder,
    }
}

/// Whether ages of runs are reported.
pub(crate) fn reports(name: Option<&str>) -> bool {
    name.is_some()
}

fn describe() {
    describe_counter!(
        "controller_runtime_reconcile_total",
        "Reconciliations, by their result"
    );
    describe_counter!(
        "controller_runtime_reconcile_errors_total",
        "Reconciliations that returned an error or panicked"
    );
    describe_counter!(
        "controller_runtime_reconcile_panics_total",
        "Reconciliations that panicked"
    );
    describe_histogram!(
        "controller_runtime_reconcile_time_seconds",
        Unit::Seconds,
        "How long a reconciliation took"
    );
    describe_gauge!(
        "controller_runtime_max_concurrent_reconciles",
        "The number of workers"
    );
    describe_gauge!(
        "controller_runtime_active_workers",
        "Workers that are reconciling"
    );
}
