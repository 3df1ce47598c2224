//! Why does a key not run? The queue tells you, here for every key.
//!
//! ```text
//! node-1: running since 0ns, and runs again
//! node-2: ready, waits for a worker
//! node-3: backs off until 90.005s, after 1 failure
//! ```

use std::time::Duration;

use requeue::metrics::Times;
use requeue::std::{ManualClock, WorkQueue};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let clock = ManualClock::new();
    // `Times` records when runs start, and needs no feature. Other metrics do so too.
    let builder = WorkQueue::builder().clock(clock.clone());
    let queue = builder.report_to(Times).build();
    let _ = queue.add_many(["node-1", "node-2"]);
    let _present = queue.get();
    queue.add("node-1")?;
    clock.advance(Duration::from_secs(90));
    queue.add_rate_limited("node-3")?;

    // This visits 32 keys under each lock. `take` limits the output.
    let entries = queue.snapshot().take(1000);
    let mut keys: Vec<_> = entries.map(|(key, _)| key).collect();
    keys.sort_unstable();
    for key in keys {
        println!("{key}: {}", queue.why(key));
    }
    Ok(())
}
