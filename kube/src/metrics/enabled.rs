//! Metrics through the facade `metrics`.

use std::time::Duration;

use kube::Resource;
use metrics::{
    Counter, Gauge, Histogram, Unit, counter, describe_counter, describe_gauge, describe_histogram,
    gauge, histogram,
};
use requeue::tokio::Workers;

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
        Self(status)
    }

    pub(crate) fn leads(&self, leads: bool) {
        self.0.set(u8::from(leads));
    }
}

/// Objects that wait for their own writes.
pub(crate) struct WriteMetrics(Option<WriteFigures>);

struct WriteFigures {
    skips: Counter,
    stale: Counter,
    waits: Histogram,
}

impl WriteMetrics {
    pub(crate) fn new(name: Option<&str>) -> Self {
        Self(name.map(|name| {
            describe_counter!(
                "requeue_stale_sync_skips_total",
                "Runs that were put off until the object's own writes came back"
            );
            describe_counter!(
                "requeue_stale_runs_total",
                "Runs that began although an own write had not come back in time"
            );
            describe_histogram!(
                "requeue_own_writes_seconds",
                Unit::Seconds,
                "How long objects waited for their own writes after the run"
            );
            let name = || name.to_owned();
            WriteFigures {
                skips: counter!("requeue_stale_sync_skips_total", "controller" => name()),
                stale: counter!("requeue_stale_runs_total", "controller" => name()),
                waits: histogram!("requeue_own_writes_seconds", "controller" => name()),
            }
        }))
    }

    /// An object waits.
    pub(crate) fn began(&self) {
        if let Some(figures) = &self.0 {
            figures.skips.increment(1);
        }
    }

    pub(crate) fn came_back(&self, waited: Duration) {
        if let Some(figures) = &self.0 {
            figures.waits.record(waited.as_secs_f64());
        }
    }

    pub(crate) fn gave_up(&self, waited: Duration) {
        if let Some(figures) = &self.0 {
            figures.waits.record(waited.as_secs_f64());
            figures.stale.increment(1);
        }
    }
}

/// Reports the metrics of a queue under the name of its controller, if that has one.
pub(crate) fn attach<K: Resource>(builder: KeysBuilder<K>, name: Option<&str>) -> KeysBuilder<K> {
    match name {
        Some(name) => builder.metrics(name.to_owned()),
        None => builder,
    }
}

/// Whether the controller reports how long runs have lasted.
pub(crate) fn reports(name: Option<&str>) -> bool {
    name.is_some()
}

/// Counts the runs of a controller, if it has a name.
pub(crate) fn observe<'w, K, E>(
    workers: Workers<'w, K, E>,
    name: Option<&str>,
) -> Workers<'w, K, E> {
    match name {
        Some(name) => workers.metrics(name.to_owned()),
        None => workers,
    }
}
