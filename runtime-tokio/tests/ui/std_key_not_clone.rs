use requeue::std::{Action, WorkQueue};

#[derive(PartialEq, Eq, Hash)]
struct Node(String);

fn main() {
    let queue: WorkQueue<Node> = WorkQueue::new();
    let _ = queue.get();
    let _ = queue.run(4, |_| Action::Success);
}
