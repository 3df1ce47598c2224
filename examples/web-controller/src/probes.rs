//! `/healthz`, `/readyz` and `/metrics`, for the kubelet and for Prometheus.

use std::io;

use metrics_exporter_prometheus::PrometheusHandle;
use requeue_kube::{Health, Probe};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

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
    loop {
        let (stream, _) = listener.accept().await?;
        let (health, metrics) = (health.clone(), metrics.clone());
        tokio::spawn(async move {
            // A prober that goes away is its own affair.
            let _ = answer(stream, &health, &metrics).await;
        });
    }
}

async fn answer(
    mut stream: TcpStream,
    health: &Health,
    metrics: &PrometheusHandle,
) -> io::Result<()> {
    let mut request = [0; 1024];
    let length = stream.read(&mut request).await?;
    let request = String::from_utf8_lossy(&request[..length]).into_owned();
    let probe = match request.split_whitespace().nth(1) {
        Some("/healthz") => health.live(),
        Some("/readyz") => health.ready(),
        Some("/metrics") => Probe {
            passes: true,
            body: metrics.render(),
        },
        _ => Probe {
            passes: false,
            body: String::from("/healthz, /readyz and /metrics are here\n"),
        },
    };
    let status = if probe.passes {
        "200 OK"
    } else {
        "500 Internal Server Error"
    };
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        probe.body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(probe.body.as_bytes()).await
}
