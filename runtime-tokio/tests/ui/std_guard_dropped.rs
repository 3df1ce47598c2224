#![deny(unused_must_use)]

use requeue::std::{Action, WorkQueue};

fn main() {
    let queue: WorkQueue<u32> = WorkQueue::new();
    queue.try_get();
    queue.get();
    queue.get_many(8);
    let guard = queue.get().unwrap();
    queue.next(guard, Action::Success);
    let guard = queue.get().unwrap();
    queue.try_next(guard, Action::Success);
}
