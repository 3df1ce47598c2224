//! A run that takes longer than five seconds is stopped and counts as failed.
//!
//! ```text
//! node-7, attempt 1: asking
//! node-7: took longer than 5s
//! node-7, attempt 2: asking
//! node-7, attempt 2: answered
//! ```

use std::time::Duration;

use requeue::tokio::{RunContext, WorkQueue, Workers};
use tokio::time::sleep;

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() {
    let queue = WorkQueue::new();
    let _ = queue.add("node-7");

    let workers = Workers::new(4)
        .timeout(Duration::from_secs(5))
        .on_error(|node, failure, _attempt| println!("{node}: {failure}"));
    let service = queue.run_with(workers, |node, run: RunContext| async move {
        println!("{node}, attempt {}: asking", run.attempt);
        // The first answer takes a minute.
        sleep(Duration::from_secs(if run.attempt == 1 { 60 } else { 1 })).await;
        println!("{node}, attempt {}: answered", run.attempt);
    });
    let service = tokio::spawn(service);
    queue.wait_settled().await;
    queue.shut_down();
    let _leftovers = service.await;
}
