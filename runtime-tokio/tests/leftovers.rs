//! What a drain with a deadline leaves, and when it ends. The clock jumps to the next deadline when
//! all wait.

use std::time::Duration;

use requeue_tokio::binding::Reporter;
use requeue_tokio::limiter::NoLimit;
use requeue_tokio::priority::Plain;
use requeue_tokio::storage::Growable;
use requeue_tokio::{Action, WorkQueue, Workers};
use requeue_tokio::{Policy, Queue};
use tokio::time::{Instant, timeout};

const SECOND: Duration = Duration::from_secs(1);

/// Runs with one worker, and the first run shuts the queue down. Returns what is left, in its
/// order, and how long that took.
async fn drain(policy: Policy, deadline: Duration) -> (Vec<(u32, Duration)>, Duration) {
    let mut queue: Queue<u32, Plain, NoLimit, Growable, Reporter> = Queue::growable(NoLimit).into();
    queue.at(requeue_tokio::Instant::EPOCH).set_policy(policy);
    let queue = WorkQueue::from(queue);
    assert!(queue.add_many(1..=3).rejected.is_empty());
    let workers = Workers::new(1).drain_timeout(deadline);
    let own = queue.clone();
    let run = queue.run(workers, move |key| {
        assert_eq!(key, 1, "the others get no token");
        own.shut_down();
        async { Action::Success }
    });
    let start = Instant::now();
    let left = timeout(10_000 * SECOND, run).await.unwrap().into_iter();
    let left = left.map(|leftover| (leftover.key, leftover.left));
    (left.collect(), start.elapsed())
}

#[tokio::test(start_paused = true)]
async fn a_drain_ends_at_its_deadline_while_ready_keys_wait_for_a_token() {
    for rate in [0.001, 0.0] {
        let policy = Policy::new().run_rate(rate, 1);
        let (left, took) = drain(policy, 10 * SECOND).await;
        assert_eq!(left, [(2, Duration::ZERO), (3, Duration::ZERO)]);
        assert_eq!(took, 10 * SECOND);
    }
}

/// It uses no token, starts no cool-down, and keeps its place.
#[tokio::test(start_paused = true)]
async fn a_key_that_is_left_over_was_not_taken() {
    let policy = Policy::new().cool_down(60 * SECOND);
    let (left, took) = drain(policy, Duration::ZERO).await;
    assert_eq!(left, [(2, Duration::ZERO), (3, Duration::ZERO)]);
    assert_eq!(took, Duration::ZERO);
}
