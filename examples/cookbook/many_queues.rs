//! A queue, a limiter and workers for each kind of object, and one token that stops them all.
//!
//! ```text
//! pod web-1
//! node node-7
//! pod pod of node-7
//! left: 0 pods, 1 nodes
//! ```

use std::time::Duration;

use requeue::tokio::{Action, CancellationToken, WorkQueue};
use tokio::time::sleep;

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() {
    let pods = WorkQueue::new();
    let (base, max) = (Duration::from_secs(1), Duration::from_secs(60));
    let nodes = WorkQueue::builder().backoff(base, max).build();
    let _ = nodes.add("node-7");

    let stop = CancellationToken::new();
    let pod_workers = pods.run(16, |pod| async move {
        println!("pod {pod}");
    });
    // A run may add keys to another queue. If runs of two queues wait for each other, all hang.
    let node_workers = nodes.run(2, {
        let pods = pods.clone();
        move |node| {
            println!("node {node}");
            let _ = pods.add(format!("pod of {node}"));
            async { Action::RequeueAfter(Duration::from_secs(600)) }
        }
    });
    let _ = pods.add(String::from("web-1"));
    let (pods, nodes, ()) = tokio::join!(
        pod_workers.shut_down_on(stop.clone()),
        node_workers.shut_down_on(stop.clone()),
        async {
            sleep(Duration::from_secs(60)).await;
            stop.cancel();
        },
    );
    println!("left: {} pods, {} nodes", pods.len(), nodes.len());
}
