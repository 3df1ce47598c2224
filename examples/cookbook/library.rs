//! A library whose API takes any queue, and a service that keeps one in a struct.
//!
//! ```text
//! node-7 is down, reported 3 times, looked at once
//! ```

use std::sync::Arc;

use requeue::Producer;
use requeue::std::WorkQueue;

/// The library. An event source only adds keys, so it knows no limiter, storage or runtime.
struct Watcher {
    changed: Arc<dyn Producer<String> + Send + Sync>,
}

impl Watcher {
    fn is_down(&self, node: &str) {
        // A queue that shuts down hands the key back: it is listed again at the next start.
        let _ = self.changed.add(node.to_owned());
    }
}

/// The service. The type of the queue is short: numbers, metrics and the clock are no part of it.
struct Service {
    nodes: WorkQueue<String>,
}

fn main() -> std::io::Result<()> {
    let nodes = WorkQueue::builder().no_retry_rate().build();
    let service = Service { nodes };
    let watcher = Watcher {
        changed: service.nodes.producer(),
    };
    (0..3).for_each(|_| watcher.is_down("node-7"));

    service.nodes.shut_down();
    service.nodes.run(1, |node| {
        println!("{node} is down, reported 3 times, looked at once");
    })?;
    Ok(())
}
