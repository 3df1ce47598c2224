use requeue::std::{Action, WorkQueue};

struct NoRoute;

fn main() {
    let queue: WorkQueue<u32> = WorkQueue::new();
    let _ = queue.run(4, |_| Err::<Action, _>(NoRoute));
}
