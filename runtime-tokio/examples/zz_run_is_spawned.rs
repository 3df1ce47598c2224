use requeue_tokio::{Action, Leftover, WorkQueue};

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let queue: WorkQueue<u32> = WorkQueue::new();
    queue.shut_down();
    let run = tokio::spawn(queue.run(4, async |_| Ok::<_, ()>(Action::Success)));
    let leftovers: Vec<Leftover<u32>> = run.await.unwrap();
    assert!(leftovers.is_empty());
}
