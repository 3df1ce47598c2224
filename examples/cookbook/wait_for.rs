//! A key waits for another key's event. Meanwhile it occupies no worker and counts no failure.
//!
//! ```text
//! 0ns web: there is no database yet
//! 3s database: ready
//! 3s web: served
//! ```

use std::time::Duration;

use requeue::tokio::{Action, RunContext, WorkQueue};
use tokio::time::{Instant, sleep};

const MINUTE: Duration = Duration::from_secs(60);

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() {
    let queue = WorkQueue::new();
    let _ = queue.add_many(["web", "database"]);

    let (begin, waking) = (Instant::now(), queue.clone());
    let service = queue.run_with(2, move |key, run: RunContext| {
        let queue = waking.clone();
        async move {
            let is_ready = begin.elapsed() >= Duration::from_secs(3);
            if key == "database" {
                sleep(Duration::from_secs(3)).await;
                println!("{:?} {key}: ready", begin.elapsed());
                queue.resume("web");
            } else if is_ready || run.timed_out {
                println!("{:?} {key}: served", begin.elapsed());
            } else {
                println!("{:?} {key}: there is no database yet", begin.elapsed());
                // Without an event it runs again after a minute, and `timed_out` is true.
                return Action::Suspend(MINUTE);
            }
            Action::Success
        }
    });
    let service = tokio::spawn(service);
    queue.wait_settled().await;
    queue.shut_down();
    let _leftovers = service.await;
}
