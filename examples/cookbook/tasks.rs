//! A failing key is retried with growing delays, and other keys do not wait for it. On Tokio.
//!
//! ```text
//! 0ns default/web, attempt 1
//! 0ns default/db, attempt 1
//! 5ms default/web, attempt 2
//! 15ms default/web, attempt 3
//! ```

use requeue::tokio::{Action, RunContext, WorkQueue};
use tokio::time::Instant;

// `start_paused` skips time while every task waits, for examples and tests.
#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() {
    let queue = WorkQueue::new();
    let _ = queue.add_many(["default/web", "default/db"]);

    let begin = Instant::now();
    let service = queue.run_with(1, move |key, run: RunContext| async move {
        println!("{:?} {key}, attempt {}", begin.elapsed(), run.attempt);
        if key == "default/web" && run.attempt < 3 {
            return Err("no answer");
        }
        Ok(Action::Success)
    });
    let service = tokio::spawn(service);

    // Waits until no key is ready, active, delayed or suspended.
    queue.wait_settled().await;
    queue.shut_down();
    let _leftovers = service.await;
}
