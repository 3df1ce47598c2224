use std::time::Duration;

use requeue_std::WorkQueue;

fn main() {
    let queue: WorkQueue<&str> = WorkQueue::new();
    let second = Duration::from_secs(1);
    let _ = queue.add_debounced("etc/hosts", second, second);
}
