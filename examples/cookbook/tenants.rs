//! At most one worker per tenant, so that a busy tenant does not delay the others.
//!
//! ```text
//! big's job 1 begins
//! small's job 1 begins
//! big's job 2 begins
//! big's job 3 begins
//! ```

use std::time::Duration;

use requeue::GroupLimits;
use requeue::tokio::WorkQueue;
use tokio::time::sleep;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Job {
    tenant: &'static str,
    number: u32,
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() {
    let queue = WorkQueue::builder().build_with_groups(|job: &Job| job.tenant);
    queue.limit_groups(GroupLimits::new().max_active(1));
    for (tenant, number) in [("big", 1), ("big", 2), ("big", 3), ("small", 1)] {
        let _ = queue.add(Job { tenant, number });
    }
    queue.shut_down();

    let workers = queue.run(4, |job| async move {
        println!("{}'s job {} begins", job.tenant, job.number);
        sleep(Duration::from_secs(1)).await;
    });
    let _leftovers = workers.await;
}
