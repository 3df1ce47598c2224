//! What `run` says of failures, and what it tells a reconciler. Failed keys are retried at once, so
//! that no test waits.

use std::panic::resume_unwind;
use std::sync::Mutex;
use std::time::Duration;

use requeue_std::binding::ClientGo;
use requeue_std::binding::Reporter;
use requeue_std::binding::Threads;
use requeue_std::metrics::{Metrics, Times};
use requeue_std::priority::Plain;
use requeue_std::{Action, AddOptions, Builder, ManualClock, RunContext, WorkQueue, Workers};

const SECOND: Duration = Duration::from_secs(1);

struct Timed;

impl Metrics for Timed {
    type Timestamps = Times;
}

fn at_once<K: Eq + std::hash::Hash>() -> Builder<K, Plain, ClientGo<true>, Threads, Reporter> {
    WorkQueue::builder()
        .backoff(Duration::ZERO, Duration::ZERO)
        .no_retry_rate()
}

/// Fails with an error, by asking for a retry, or by a panic without a message on the screen.
fn fail(key: &u32) -> Result<Action, &'static str> {
    match key {
        1 => Err("no route"),
        2 => Ok(Action::Retry),
        _ => resume_unwind(Box::new("index 3")),
    }
}

#[test]
fn every_failure_is_reported_with_its_attempt_and_a_retry_that_was_asked_for_is_one() {
    let queue = at_once().build();
    assert!(queue.add_many([1, 2, 3]).rejected.is_empty());
    let calls = Mutex::new(Vec::new());
    let call = |key: &u32, what: String| calls.lock().unwrap().push((*key, what));
    let workers = Workers::new(1)
        .max_retries(1)
        .on_error(|key, failure, attempt| call(key, format!("{failure}, attempt {attempt}")))
        .on_give_up(|key, failure| {
            call(key, format!("{failure}, given up"));
            if *key == 3 {
                queue.shut_down();
            }
        });
    let leftovers = queue.run(workers, fail).unwrap();

    let calls = calls.into_inner().unwrap();
    let of = |key| {
        let calls = calls.iter().filter(move |(other, _)| *other == key);
        calls.map(|(_, what)| what.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(
        of(1),
        [
            "no route, attempt 1",
            "no route, attempt 2",
            "no route, given up"
        ]
    );
    assert_eq!(
        of(2),
        [
            "asked for a retry, attempt 1",
            "asked for a retry, attempt 2",
            "asked for a retry, given up"
        ]
    );
    assert_eq!(
        of(3),
        [
            "panicked: index 3, attempt 1",
            "panicked: index 3, attempt 2",
            "panicked: index 3, given up"
        ]
    );
    assert_eq!(leftovers, []);
    assert_eq!([1, 2, 3].map(|key| queue.failures(&key)), [0; 3]);
}

#[test]
fn a_hook_that_panics_ends_no_worker_and_no_retry() {
    let queue = at_once().build();
    queue.add(1).unwrap();
    let attempts = Mutex::new(Vec::new());
    let workers = Workers::new(1).on_error(|_, _: &requeue_std::Failure<()>, attempt| {
        attempts.lock().unwrap().push(attempt);
        resume_unwind(Box::new("on purpose"));
    });
    queue
        .run_with(workers, |_, run| {
            if run.attempt < 3 {
                return Err(());
            }
            queue.shut_down();
            Ok(Action::Success)
        })
        .unwrap();
    assert_eq!(attempts.into_inner().unwrap(), [1, 2]);
}

#[test]
fn a_reconciler_learns_its_attempt_its_wait_and_its_priority() {
    let clock = ManualClock::new();
    let queue = at_once()
        .levels::<2>()
        .clock(clock.clone())
        .report_to(Timed)
        .build();
    let urgent = AddOptions {
        priority: Some(1),
        ..AddOptions::new()
    };
    queue.add_with(1, urgent).unwrap();
    clock.advance(3 * SECOND);
    let seen = Mutex::new(Vec::new());
    queue
        .run_with(1, |_, run: RunContext| {
            let mut seen = seen.lock().unwrap();
            seen.push((run.attempt, run.waited, run.priority));
            match seen.len() {
                1 => Err("fails once"),
                _ => {
                    queue.shut_down();
                    Ok(Action::Success)
                }
            }
        })
        .unwrap();
    let seen = seen.into_inner().unwrap();
    assert_eq!(seen, [(1, 3 * SECOND, 1), (2, Duration::ZERO, 1)]);
}

/// Each run waits for all the others, so that they end only if all are under way at once.
#[test]
fn without_a_bound_no_key_waits_for_a_worker() {
    let queue = at_once().build();
    assert!(queue.add_many(0..16).rejected.is_empty());
    queue.shut_down();
    let (all, met) = (std::sync::Barrier::new(16), Mutex::new(0));
    let left = queue.run(Workers::unbounded(), |_: &u32| {
        all.wait();
        *met.lock().unwrap() += 1;
        Ok::<_, &str>(())
    });
    assert!(left.unwrap().is_empty());
    assert_eq!(*met.lock().unwrap(), 16);
}
