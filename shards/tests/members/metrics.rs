//! The metrics of a member, as Prometheus scrapes them.

use std::convert::Infallible;
use std::time::Duration;

use metrics_exporter_prometheus::PrometheusBuilder;
use requeue_shards::{Memory, Shards};
use requeue_tokio::{Action, CancellationToken, WorkQueue};
use tokio::time::sleep;

#[test]
fn a_member_reports_what_it_owns_and_has_done() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let figures = recorder.handle();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    metrics::with_local_recorder(&recorder, || {
        let shows = |figure: &str, value| {
            let line = format!("{figure}{{set=\"webhooks\"}} {value}");
            let shown = figures.render();
            assert!(
                shown.lines().any(|shown| shown == line),
                "{line} is not in\n{shown}"
            );
        };
        runtime.block_on(async {
            // A program that joins again continues to count.
            for lives in 1..=2 {
                live(lives, shows).await;
            }
        });
    });
}

/// One membership after others, each of which owned all shards.
async fn live(lives: u64, shows: impl Fn(&str, u64)) {
    let shards = Shards::builder(Memory::new(), "webhooks").count(8).build();
    let queue = WorkQueue::new();
    let relist = |_| async { Ok::<_, Infallible>([String::from("a")]) };
    let member = shards.join(&queue, relist).await.unwrap();
    let stop = CancellationToken::new();
    let reconcile = |_, _| async { Action::Success };
    let run = member.run(1, stop.clone(), reconcile);
    let look = async {
        sleep(Duration::from_secs(1)).await;
        shows("requeue_shards_owned", 8);
        shows("requeue_shards_taken_total", 8 * lives);
        shows("requeue_shards_relists_total", 8 * lives);
        stop.cancel();
    };
    let (ended, ()) = tokio::join!(run, look);
    ended.unwrap();
    shows("requeue_shards_owned", 0);
    shows("requeue_shards_released_total", 8 * lives);
    shows("requeue_shards_lost_total", 0);
}
