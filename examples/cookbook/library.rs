//! A library whose API takes any queue, and a service that keeps one in a struct.
//!
//! ```text
//! node-7 is down: 3 reports, 1 run
//! ```

use std::sync::Arc;

use requeue::Producer;
use requeue::std::WorkQueue;

/// The library. It only adds keys, so its types name no limiter, storage or runtime.
struct Watcher {
    changed: Arc<dyn Producer<String> + Send + Sync>,
}

impl Watcher {
    fn is_down(&self, node: &str) {
        // After shutdown the queue returns the key. The next start lists it again.
        let _ = self.changed.add(node.to_owned());
    }
}

/// The service. The queue's type is short: it names no limits, metrics or clock.
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
        println!("{node} is down: 3 reports, 1 run");
    })?;
    Ok(())
}
