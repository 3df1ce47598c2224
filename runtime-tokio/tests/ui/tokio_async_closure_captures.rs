use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use requeue::tokio::{Action, WorkQueue};

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let queue: WorkQueue<u32> = WorkQueue::new();
    let total = Arc::new(AtomicU32::new(0));
    let reconcile = async move |key| {
        total.fetch_add(key, Ordering::Relaxed);
        Action::Success
    };
    queue.run(4, reconcile).await;
}
