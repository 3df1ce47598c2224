//! Why does a key not run? A snapshot says what the queue knows of each key that it holds.
//!
//! ```text
//! node-1: has been running for 90s, and will run once more
//! node-2: is ready: the workers are busy, or the queue is paused
//! node-3: runs in 5ms, failures: 1
//! ```

use std::time::Duration;

use requeue::std::{ManualClock, WorkQueue};
use requeue::{Entry, Instant, Timed};

fn why(entry: &Entry<&str>, now: Instant) -> String {
    let (state, failures) = (entry.state, entry.state.failures);
    // Known if the queue has metrics, or `Timed`, which only keeps times.
    let since = entry.active_since.unwrap_or(now);
    let running = format!("has been running for {:?}", now.saturating_since(since));
    match state.due.map(|due| due.saturating_since(now)) {
        _ if state.dirty => running + ", and will run once more",
        _ if state.active => running,
        _ if state.ready => "is ready: the workers are busy, or the queue is paused".into(),
        Some(left) => format!("runs in {left:?}, failures: {failures}"),
        None => format!("is not to run, failures: {failures}"),
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let clock = ManualClock::new();
    let builder = WorkQueue::builder().clock(clock.clone());
    let queue = builder.report_to(Timed).build();
    queue.add_many(["node-1", "node-2"], |_| {});
    let _present = queue.get();
    queue.add("node-1")?;
    clock.advance(Duration::from_secs(90));
    queue.add_rate_limited("node-3")?;

    // It looks at 32 keys under each lock, and `take` limits how many.
    let mut shown: Vec<_> = queue.snapshot().take(1000).collect();
    shown.sort_by_key(|entry| entry.key);
    for entry in shown {
        println!("{}: {}", entry.key, why(&entry, queue.now()));
    }
    Ok(())
}
