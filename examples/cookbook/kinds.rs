//! A pod and a node with the same number never run at the same time, even if a worker is free.
//!
//! ```text
//! 0ns: Pod(7) begins
//! 0ns: Node(2) begins
//! 2s: Node(2) ends
//! 7s: Pod(7) ends
//! 7s: Node(7) begins
//! 14s: Node(7) ends
//! ```

use std::time::Duration;

use requeue::GroupLimits;
use requeue::tokio::WorkQueue;
use tokio::time::{Instant, sleep};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Object {
    Pod(u64),
    Node(u64),
}

impl Object {
    fn number(&self) -> u64 {
        let (Self::Pod(number) | Self::Node(number)) = *self;
        number
    }
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() {
    // Without the limit, Node(7) would begin after two seconds, while Pod(7) runs.
    let queue = WorkQueue::builder().build_with_groups(Object::number);
    queue.limit_groups(GroupLimits::new().max_active(1));
    let _ = queue.add_many([Object::Pod(7), Object::Node(7), Object::Node(2)]);
    queue.shut_down();

    let start = Instant::now();
    let workers = queue.run(2, move |object| async move {
        println!("{:?}: {object:?} begins", start.elapsed());
        sleep(Duration::from_secs(object.number())).await;
        println!("{:?}: {object:?} ends", start.elapsed());
    });
    let _leftovers = workers.await;
}
