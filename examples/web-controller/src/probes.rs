//! `/healthz`, `/readyz` and `/metrics`, for the kubelet and for Prometheus.

use std::io;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use metrics_exporter_prometheus::PrometheusHandle;
use requeue_kube::{Health, Probe};
use tokio::net::TcpListener;

/// Serves the probes until the future is dropped.
///
/// # Errors
///
/// The address is taken.
pub(crate) async fn serve(
    address: &str,
    health: Health,
    metrics: PrometheusHandle,
) -> io::Result<()> {
    let listener = TcpListener::bind(address).await?;
    let live = health.clone();
    let router = Router::new()
        .route("/healthz", get(async move || answer(live.live())))
        .route("/readyz", get(async move || answer(health.ready())))
        .route("/metrics", get(async move || metrics.render()));
    axum::serve(listener, router).await
}

fn answer(probe: Probe) -> (StatusCode, String) {
    let status = if probe.passes {
        StatusCode::OK
    } else {
        StatusCode::INTERNAL_SERVER_ERROR
    };
    (status, probe.body)
}
