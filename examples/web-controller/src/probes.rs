//! `/healthz`, `/readyz`, `/metrics` and the window at `/window`, for the kubelet, for Prometheus and
//! for people.

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use metrics_exporter_prometheus::PrometheusHandle;
use requeue_inspect::Registry;
use requeue_kube::{Health, Probe};

/// Returns the router of all of them. Visitors of the window only look, because whoever reaches the
/// probes reaches the window too.
///
/// # Panics
///
/// Outside of a Tokio runtime.
pub fn router(health: Health, metrics: PrometheusHandle, queues: Registry) -> Router {
    let live = health.clone();
    Router::new()
        .route("/healthz", get(async move || answer(live.live())))
        .route("/readyz", get(async move || answer(health.ready())))
        .route("/metrics", get(async move || metrics.render()))
        .nest("/window", queues.router())
}

fn answer(probe: Probe) -> (StatusCode, String) {
    let status = if probe.passes {
        StatusCode::OK
    } else {
        StatusCode::INTERNAL_SERVER_ERROR
    };
    (status, probe.body)
}
