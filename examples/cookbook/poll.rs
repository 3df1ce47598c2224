//! Polls an object that sends few events. The pauses grow while nothing changes. An event resets
//! them.
//!
//! ```text
//! runs at [0ns, 1s, 3s, 7s, 9s, 10s, 12s, 16s]
//! ```

use std::time::Duration;

use requeue::tokio::{Action, AddOptions, Merge, WorkQueue};
use tokio::time::{Instant, sleep};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() {
    let queue: WorkQueue<&str> = WorkQueue::new();
    let begin = Instant::now();
    let mut runs = Vec::new();

    let work = async {
        while let Ok(volume) = queue.get().await {
            runs.push(begin.elapsed());
            volume.finish(Action::poll(SECOND, 60 * SECOND));
        }
    };
    let events = async {
        let _ = queue.add("volume-4");
        sleep(9 * SECOND).await;
        // The current pause would end at 15 s. With `Merge::Once` the event replaces it.
        let event = AddOptions {
            merge: Merge::Once,
            ..AddOptions::new()
        };
        let _ = queue.add_with("volume-4", event);
        sleep(8 * SECOND).await;
        queue.shut_down();
    };
    tokio::join!(work, events);
    println!("runs at {runs:?}");
}
