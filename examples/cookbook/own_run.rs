//! `run` for a runtime that has none: a loop over `get` and `next`, for any queue whose calls are
//! futures. Start one loop per worker.
//!
//! ```text
//! node-7: no answer
//! node-7: done
//! the queue is closed: true
//! ```

use requeue::binding::{AsShared, Host, Shared, Timer};
use requeue::tokio::WorkQueue;
use requeue::{Action, IntoAction, WaitError};

/// Runs `reconcile` for each key, until the queue is shut down and no key is ready.
async fn run<H: Host<Key: Clone, Clock: Timer>, R: IntoAction>(
    queue: &Shared<H>,
    mut reconcile: impl AsyncFnMut(&H::Key) -> R,
) -> WaitError {
    let mut next = queue.get().await;
    loop {
        match next {
            Ok(guard) => {
                // An error is a failure. If `reconcile` panics, dropping the guard counts one too.
                let action = reconcile(&guard).await.into_action();
                next = queue.next(guard, action.unwrap_or(Action::Retry)).await;
            }
            Err(ended) => return ended,
        }
    }
}

// Use any executor with a `Timer`. This one is Tokio's, on virtual time.
#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() {
    let queue = WorkQueue::new();
    let _ = queue.add("node-7");
    let mut answers = false;
    let ended = run(queue.as_shared(), async |node| {
        if !std::mem::replace(&mut answers, true) {
            println!("{node}: no answer");
            return Err("no answer");
        }
        println!("{node}: done");
        queue.shut_down();
        Ok(())
    });
    println!("the queue is closed: {}", ended.await == WaitError::Closed);
}
