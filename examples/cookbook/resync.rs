//! Checks each node every ten minutes, plus a random fifth, so that the checks spread out.
//!
//! ```text
//! node-1 after 0 s
//! node-2 after 0 s
//! node-1 after 606 s
//! node-2 after 620 s
//! node-2 after 1271 s
//! node-1 after 1292 s
//! ```

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use requeue::backoff::jitter;
use requeue::tokio::{Action, WorkQueue};
use tokio::time::{Instant, sleep};

const PERIOD: Duration = Duration::from_secs(600);

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() {
    let queue = WorkQueue::new();
    let _ = queue.add_many(["node-1", "node-2"]);

    // In a service, seed the generator from the system.
    let rng = Arc::new(Mutex::new(SmallRng::seed_from_u64(7)));
    let begin = Instant::now();
    let service = queue.run(1, move |node| {
        let rng = Arc::clone(&rng);
        async move {
            println!("{node} after {} s", begin.elapsed().as_secs());
            let mut rng = rng.lock().unwrap_or_else(PoisonError::into_inner);
            let pause = jitter(PERIOD, 0.2, &mut || rng.next_u64());
            Action::RequeueAfter(pause)
        }
    });
    let service = tokio::spawn(service);
    sleep(PERIOD * 3).await;
    queue.shut_down();
    let _leftovers = service.await;
}
