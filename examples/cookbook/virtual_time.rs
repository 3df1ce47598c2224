//! A test that covers an hour without sleeping, because it moves the clock. On threads.
//!
//! ```text
//! before: false
//! after: Some(Idle)
//! the third retry waits for 20ms
//! ```

use std::time::Duration;

use requeue::Finished;
use requeue::std::{Action, ManualClock, WorkQueue};

const HOUR: Duration = Duration::from_secs(3600);

/// The code under test: it renews a lease after an hour, and does not know about the clock.
fn lease(queue: &WorkQueue<&'static str>) {
    let _ = queue.add_after("lease-3", HOUR);
}

fn main() {
    let clock = ManualClock::new();
    let queue = WorkQueue::builder().clock(clock.clone()).build();

    lease(&queue);
    clock.advance(HOUR - Duration::from_nanos(1));
    println!("before: {}", queue.try_get().is_some());
    clock.advance(Duration::from_nanos(1));
    println!("after: {:?}", queue.try_get().map(|run| run.success()));

    // Retry delays: 5 ms, 10 ms, 20 ms.
    let _ = queue.add("lease-4");
    for _ in 0..2 {
        let _failed = queue.try_get().map(|run| run.finish(Action::Retry));
        clock.advance(HOUR);
    }
    let failed = queue.try_get().map(|run| run.retry());
    if let Some(Finished::Delayed(wait)) = failed {
        println!("the third retry waits for {wait:?}");
    }
}
