use std::time::Duration;

use requeue::std::WorkQueue;

fn main() {
    let queue: WorkQueue<&str> = WorkQueue::new();
    queue.age_after(Duration::from_secs(60));
}
