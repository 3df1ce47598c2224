//! A test of what happens in an hour, without a sleep: the test moves the clock. On threads.
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

/// What is tested: a lease is renewed an hour after it was given. It does not know of the clock.
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

    // Retries: 5 ms, 10 ms, 20 ms.
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
