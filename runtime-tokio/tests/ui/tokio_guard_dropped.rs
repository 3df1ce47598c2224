#![deny(unused_must_use)]

use requeue::tokio::WorkQueue;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let queue: WorkQueue<u32> = WorkQueue::new();
    queue.try_get();
    queue.get().await;
    queue.get_many(8).await;
}
