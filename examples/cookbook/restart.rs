//! Saves the keys that a shutdown returns. The next process restores delays and failures.
//!
//! ```text
//! saved: [{"key":"node-7","left":{"secs":0,"nanos":5000000},"failures":1,"priority":0}]
//! restored: node-7 in 5ms, after 1 failure
//! ```

use requeue::Leftover;
use requeue::tokio::WorkQueue;
use tokio::time::Instant;

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let queue = WorkQueue::new();
    queue.add_rate_limited("node-7")?;
    queue.shut_down();
    let saved = serde_json::to_string(&queue.leftovers().collect::<Vec<_>>())?;
    println!("saved: {saved}");

    // The next process. It also lists all objects from their source of truth.
    let next = WorkQueue::new();
    for leftover in serde_json::from_str::<Vec<Leftover<String>>>(&saved)? {
        next.restore(leftover)
            .map_err(|refused| refused.to_string())?;
    }
    let begin = Instant::now();
    if let Ok(run) = next.get().await {
        println!(
            "restored: {} in {:?}, after {} failure",
            *run,
            begin.elapsed(),
            run.failures()
        );
        run.success();
    }
    Ok(())
}
