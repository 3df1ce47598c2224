use requeue::tokio::{Action, WorkQueue};

#[derive(PartialEq, Eq, Hash)]
struct Node(String);

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let queue: WorkQueue<Node> = WorkQueue::new();
    queue.run(4, |_| async { Action::Success }).await;
}
