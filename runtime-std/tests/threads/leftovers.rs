//! What a drain with a deadline leaves, and when it ends.

use std::thread;
use std::time::Duration;

use requeue_std::binding::AsShared;
use requeue_std::binding::Reporter;
use requeue_std::limiter::NoLimit;
use requeue_std::priority::Plain;
use requeue_std::storage::Growable;
use requeue_std::{Action, ManualClock, WorkQueue, Workers};
use requeue_std::{Instant, Policy, Queue};
use requeue_test_tools::in_time;

use super::SECOND;

/// Runs with one worker. The first run shuts the queue down, and then the clock moves so far, while
/// the worker waits. Returns what is left, in its order.
fn drain(policy: Policy, deadline: Duration, moves: &[Duration]) -> Vec<(u32, Duration)> {
    let mut queue: Queue<u32, Plain, NoLimit, Growable, Reporter> = Queue::growable(NoLimit).into();
    queue.at(Instant::EPOCH).set_policy(policy);
    let clock = ManualClock::new();
    let queue = WorkQueue::from_queue(queue, clock.clone());
    let moves = moves.to_vec();
    assert!(queue.add_many(1..=3).rejected.is_empty());
    in_time(move || {
        thread::scope(|scope| {
            let run = scope.spawn(|| {
                let workers = Workers::new(1).drain_timeout(deadline);
                let end = |key: &u32| {
                    assert_eq!(*key, 1, "the others get no token");
                    queue.shut_down();
                    Action::Success
                };
                queue.run(workers, end).unwrap()
            });
            for step in moves {
                let asleep = || queue.as_shared().look(|queue| queue.asleep());
                while !(queue.is_shutting_down() && asleep() == 1) {
                    thread::yield_now();
                }
                clock.advance(step);
            }
            let left = run.join().unwrap().into_iter();
            left.map(|leftover| (leftover.key, leftover.left)).collect()
        })
    })
}

#[test]
fn a_drain_ends_at_its_deadline_while_ready_keys_wait_for_a_token() {
    for rate in [0.001, 0.0] {
        let policy = Policy::new().run_rate(rate, 1);
        let left = drain(policy, 10 * SECOND, &[10 * SECOND]);
        assert_eq!(left, [(2, Duration::ZERO), (3, Duration::ZERO)]);
    }
}

/// It uses no token, starts no cool-down, and keeps its place.
#[test]
fn a_key_that_is_left_over_was_not_taken() {
    let policy = Policy::new().cool_down(60 * SECOND);
    let left = drain(policy, Duration::ZERO, &[]);
    assert_eq!(left, [(2, Duration::ZERO), (3, Duration::ZERO)]);
}
