use requeue::std::WorkQueue;

fn main() {
    let queue: WorkQueue<u32> = WorkQueue::new();
    let _ = queue.run(4, |key| *key);
}
