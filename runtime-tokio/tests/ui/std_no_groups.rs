use requeue::std::{GroupLimits, WorkQueue};

fn main() {
    let queue: WorkQueue<&str> = WorkQueue::new();
    queue.limit_groups(GroupLimits::new().max_active(1));
    let _ = queue.pause_group("a");
}
