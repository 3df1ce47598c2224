use std::rc::Rc;

use requeue::std::{Action, WorkQueue};

fn main() {
    let queue: WorkQueue<Rc<str>> = WorkQueue::new();
    let _ = queue.run(4, |_| Action::Success);
}
