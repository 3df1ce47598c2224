//! A series of changes makes one run: after 100 ms without a change, or after one second at most.
//!
//! ```text
//! 5 changes of etc/hosts: read after 300ms
//! 50 changes of var/log: read after 1s
//! ```

use std::time::Duration;

use requeue::tokio::WorkQueue;
use tokio::time::{Instant, sleep};

const QUIET: Duration = Duration::from_millis(100);
const MAX: Duration = Duration::from_secs(1);

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() {
    let queue = WorkQueue::new();

    for (file, changes) in [("etc/hosts", 5), ("var/log", 50)] {
        let begin = Instant::now();
        let events = async {
            for _ in 0..changes {
                let _ = queue.add_debounced(file, QUIET, MAX);
                sleep(QUIET / 2).await;
            }
        };
        let work = async {
            if let Ok(run) = queue.get().await {
                println!(
                    "{changes} changes of {}: read after {:?}",
                    *run,
                    begin.elapsed()
                );
                run.success();
            }
        };
        tokio::join!(work, events);
        queue.clear(); // Drops the changes after the first second.
    }
}
