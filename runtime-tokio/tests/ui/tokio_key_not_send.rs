use std::rc::Rc;

use requeue::tokio::{Action, WorkQueue};

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let queue: WorkQueue<Rc<str>> = WorkQueue::new();
    queue.run(4, |_| async { Action::Success }).await;
}
