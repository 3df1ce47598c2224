//! A queue's metrics under Kubernetes' names, as Prometheus scrapes them.
//!
//! ```text
//! workqueue_adds_total{name="nodes"} 3
//! workqueue_coalesced_total{name="nodes"} 1
//! workqueue_depth_max{name="nodes"} 3
//! workqueue_longest_running_processor_seconds{name="nodes"} 2
//! ```

use std::time::Duration;

use metrics_exporter_prometheus::PrometheusBuilder;
use requeue::metrics::DURATION_BUCKETS;
use requeue::tokio::WorkQueue;
use tokio::time::sleep;

const SHOWN: [&str; 4] = ["adds", "coalesced", "depth_max", "longest"];

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Install it before the queue. The exporter's feature `http-listener` serves `/metrics`.
    let prometheus = PrometheusBuilder::new().set_buckets(&DURATION_BUCKETS)?;
    let prometheus = prometheus.install_recorder()?;
    let queue = WorkQueue::builder().metrics("nodes").build();

    let _ = queue.add_many(["node-7", "node-8", "node-9", "node-7"]);
    if let Ok(run) = queue.get().await {
        run.success();
    }
    let _present = queue.get().await;
    sleep(Duration::from_secs(2)).await;

    // The time of active runs changes on its own, so report it before each scrape.
    queue.report_running();
    let page = prometheus.render();
    let is_shown = |line: &&str| SHOWN.iter().any(|name| line[10..].starts_with(name));
    let lines = page.lines().filter(|line| line.starts_with("workqueue_"));
    let mut lines: Vec<_> = lines.filter(is_shown).collect();
    lines.sort_unstable();
    println!("{}", lines.join("\n"));
    Ok(())
}
