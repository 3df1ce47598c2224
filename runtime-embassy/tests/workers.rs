//! What `run` does with the result of a run, and when it is dropped.

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::time::Duration;

use requeue_embassy::Instant;
use requeue_embassy::limiter::Exponential;
use requeue_embassy::priority::{Levels, Plain};
use requeue_embassy::raw::NoopRawMutex;
use requeue_embassy::{
    Action, Failure, ManualClock, Queue, RunContext, RunLimits, WaitError, WorkQueue,
};
use requeue_test_tools::by_hand;

type Clock = ManualClock<NoopRawMutex>;
type Keys<'c, const WAITERS: usize = 3> =
    WorkQueue<NoopRawMutex, u32, 8, Plain, Exponential, WAITERS, ((), u8, &'c Clock)>;

const SECOND: Duration = Duration::from_secs(1);

fn queue<const WAITERS: usize>(clock: &Clock) -> Keys<'_, WAITERS> {
    let limiter = Exponential::new(SECOND, 60 * SECOND);
    WorkQueue::from_queue(Queue::new(limiter), clock)
}

#[test]
fn results_decide_when_a_key_runs_again() {
    let clock = Clock::new();
    let queue: Keys<'_> = queue(&clock);
    queue.add_many([1, 2, 3], |_| unreachable!());
    let runs = RefCell::new(Vec::new());
    let mut worker = by_hand(queue.run(async |key| {
        runs.borrow_mut().push(*key);
        match key {
            1 => Ok(Action::Success),
            2 => Ok(Action::RequeueAfter(5 * SECOND)),
            _ => Err("no answer"),
        }
    }));
    // Once for each key: other tasks run in between.
    for _ in 0..4 {
        assert!(worker.is_pending());
    }
    assert_eq!(*runs.borrow(), [1, 2, 3]);
    assert!(!queue.contains(&1));
    assert_eq!(queue.failures(&3), 1);

    clock.advance(SECOND);
    for _ in 0..2 {
        assert!(worker.is_pending());
    }
    assert_eq!(*runs.borrow(), [1, 2, 3, 3]);
    assert_eq!(queue.failures(&3), 2);
    clock.advance(4 * SECOND);
    for _ in 0..3 {
        assert!(worker.is_pending());
    }
    assert_eq!(*runs.borrow(), [1, 2, 3, 3, 3, 2]);
    drop(worker);
}

#[test]
fn two_workers_never_run_one_key_at_once() {
    let clock = Clock::new();
    let queue: Keys<'_> = queue(&clock);
    let running = Cell::new(0);
    let gate = Cell::new(false);
    let reconcile = async |_: &u32| {
        running.set(running.get() + 1);
        std::future::poll_fn(|_| match gate.get() {
            true => std::task::Poll::Ready(()),
            false => std::task::Poll::Pending,
        })
        .await;
        running.set(running.get() - 1);
        Action::Success
    };
    let mut first = by_hand(queue.run(reconcile));
    let mut second = by_hand(queue.run(reconcile));
    assert!(first.is_pending() && second.is_pending());
    queue.add(1).unwrap();
    assert!(first.is_pending());
    queue.add(1).unwrap();
    assert!(second.is_pending());
    assert_eq!(running.get(), 1);

    queue.add(2).unwrap();
    assert!(second.is_pending());
    assert_eq!(running.get(), 2, "another key may");
    gate.set(true);
    queue.shut_down();
    while first.is_pending() || running.get() > 0 {
        let _ = second.poll();
    }
    assert!(!queue.contains(&1));
}

#[test]
fn a_worker_ends_when_the_queue_is_closed_and_nothing_is_ready() {
    let clock = Clock::new();
    let queue: Keys<'_> = queue(&clock);
    queue.add_many([1, 2], |_| unreachable!());
    queue.shut_down();
    let mut seen = Vec::new();
    {
        let mut worker = by_hand(queue.run(async |key| {
            seen.push(*key);
            Action::RequeueAfter(SECOND)
        }));
        assert!(worker.is_pending() && worker.is_pending());
        assert_eq!(worker.ready(), Ok(()));
    }
    assert_eq!(seen, [1, 2]);
    let left = queue.leftovers().map(|left| (left.key, left.left));
    assert!(left.eq([(1, SECOND), (2, SECOND)]));
}

#[test]
fn one_worker_too_many_gets_an_error() {
    let clock = Clock::new();
    let queue: Keys<'_, 1> = queue(&clock);
    let idle = async |_: &u32| Action::Success;
    let mut worker = by_hand(queue.run(idle));
    assert!(worker.is_pending());
    assert_eq!(
        by_hand(queue.run(idle)).ready(),
        Err(WaitError::TooManyWaiters)
    );
    assert!(worker.is_pending());
}

#[test]
fn a_key_that_fails_too_often_is_given_up() {
    let clock = Clock::new();
    let queue: Keys<'_> = queue(&clock);
    queue.add(1).unwrap();
    let failures = RefCell::new(Vec::new());
    let fail = async |_: &u32, _: RunContext| Err::<Action, _>("no reply");
    let note = |line: String| failures.borrow_mut().push(line);
    let mut worker = by_hand(queue.run_with(
        RunLimits::new().max_retries(1),
        fail,
        |key, failure, attempt| note(format!("{key}, {attempt}: {failure}")),
        |key, failure| note(format!("gave {key} up: {failure}")),
    ));
    assert!(worker.is_pending() && worker.is_pending());
    assert_eq!(*failures.borrow(), ["1, 1: no reply"]);
    clock.advance(SECOND);
    assert!(worker.is_pending() && worker.is_pending());
    let last = ["1, 2: no reply", "gave 1 up: no reply"];
    assert_eq!(failures.borrow()[1..], last);
    assert!(!queue.contains(&1));
    assert_eq!(queue.failures(&1), 0);
}

#[test]
fn asking_for_a_retry_is_a_failure_without_an_error() {
    let clock = Clock::new();
    let queue: Keys<'_> = queue(&clock);
    queue.add_many([1, 2], |_| unreachable!());
    let failures = RefCell::new(Vec::new());
    let reconcile = async |_: &u32, run: RunContext| {
        assert_eq!((run.attempt, run.priority, run.deadline), (1, 0, None));
        Action::Retry
    };
    let is_retry = |failure: &Failure<_>| assert!(matches!(failure, Failure::Retry));
    let fail = |_: &u32, failure: &Failure<_>, _| is_retry(failure);
    let give_up = |key: &u32, failure| {
        is_retry(&failure);
        failures.borrow_mut().push((*key, true));
    };
    let mut worker =
        by_hand(queue.run_with(RunLimits::new().max_retries(0), reconcile, fail, give_up));
    while failures.borrow().len() < 2 {
        assert!(worker.is_pending());
    }
    assert_eq!(*failures.borrow(), [(1, true), (2, true)]);
    assert_eq!(queue.failures(&1), 0);
}

#[test]
fn a_reconciler_gives_its_key_up_with_an_action() {
    let clock = Clock::new();
    let queue: Keys<'_> = queue(&clock);
    queue.add_rate_limited(1).unwrap();
    clock.advance(SECOND);
    let failures = RefCell::new(Vec::new());
    let reconcile = async |_: &u32, _: RunContext| Action::GiveUp;
    let note = |line: String| failures.borrow_mut().push(line);
    let mut worker = by_hand(queue.run_with(
        RunLimits::new(),
        reconcile,
        |key, failure, attempt| note(format!("{key}, {attempt}: {failure}")),
        |key, failure| note(format!("gave {key} up: {failure}")),
    ));
    assert!(worker.is_pending() && worker.is_pending());
    let expected = [
        "1, 2: asked to be given up",
        "gave 1 up: asked to be given up",
    ];
    assert_eq!(*failures.borrow(), expected);
    assert!(!queue.contains(&1));
}

#[test]
fn a_retry_that_is_allowed_waits_for_its_backoff_and_one_that_is_put_off_counts_no_failure() {
    let clock = Clock::new();
    let queue: Keys<'_> = queue(&clock);
    queue.add_many([1, 2, 3], |_| unreachable!());
    let mut worker = by_hand(queue.run(async |key| match key {
        1 => Action::Retry,
        2 => Action::Snooze(5 * SECOND),
        _ => Action::Release,
    }));
    for _ in 0..4 {
        assert!(worker.is_pending());
    }
    let due = |key| queue.state(&key).and_then(|state| state.due);
    let after = |seconds| Some(Instant::EPOCH + seconds * SECOND);
    assert_eq!([due(1), due(2), due(3)], [after(1), after(5), None]);
    assert_eq!([1, 2, 3].map(|key| queue.failures(&key)), [1, 0, 0]);
}

#[test]
fn a_worker_runs_keys_again_at_the_priority_of_their_actions() {
    let clock = Clock::new();
    let limiter = Exponential::new(SECOND, 60 * SECOND);
    let queue: WorkQueue<NoopRawMutex, u32, 8, Levels<2>, _, 3, ((), u8, &Clock)> =
        WorkQueue::from_queue(Queue::new(limiter), &clock);
    queue.add_many([1, 2, 3], |_| unreachable!());
    let mut worker = by_hand(queue.run(async |key| match key {
        1 => Action::Retry.with_priority(1),
        2 => Action::Snooze(SECOND).with_priority(1),
        _ => Action::poll(SECOND, SECOND),
    }));
    for _ in 0..4 {
        assert!(worker.is_pending());
    }
    let level = |key| queue.state(&key).map(|state| state.priority);
    assert_eq!([1, 2, 3].map(level), [Some(1), Some(1), Some(0)]);
}

#[test]
fn a_dropped_worker_requeues_what_it_worked_on() {
    let clock = Clock::new();
    let queue: Keys<'_> = queue(&clock);
    queue.add(1).unwrap();
    let mut worker = by_hand(queue.run(async |_| {
        std::future::pending::<()>().await;
        Action::Success
    }));
    assert!(worker.is_pending());
    drop(worker);
    assert_eq!(queue.failures(&1), 1);
    clock.advance(SECOND);
    assert_eq!(queue.len(), 1);
}

#[test]
fn a_worker_that_is_dropped_between_two_keys_has_finished_the_first() {
    let clock = Clock::new();
    let queue: Keys<'_> = queue(&clock);
    queue.add_many([1, 2], |_| unreachable!());
    let mut worker = by_hand(queue.run(async |_| Action::Success));
    assert!(worker.is_pending(), "it lets others run");
    drop(worker);
    assert!(!queue.contains(&1));
    assert_eq!(queue.failures(&1), 0);
    assert_eq!(queue.len(), 1);
}

#[test]
fn a_run_that_takes_too_long_is_stopped_and_has_failed() {
    let clock = Clock::new();
    let queue: Keys<'_> = queue(&clock);
    queue.add_many([1, 2], |_| unreachable!());
    let deadlines = RefCell::new(Vec::new());
    let reconcile = async |key: &u32, run: RunContext| {
        deadlines.borrow_mut().push(run.deadline);
        if *key == 1 {
            core::future::pending::<()>().await;
        }
        Action::Success
    };
    let failures = RefCell::new(Vec::new());
    let keep = |key: &u32, failure: &Failure<Infallible>, is_given_up| {
        let is_stopped = matches!(failure, Failure::TimedOut(limit) if *limit == 2 * SECOND);
        failures.borrow_mut().push((*key, is_stopped, is_given_up));
    };
    let fail = |key: &u32, failure: &Failure<Infallible>, _| keep(key, failure, false);
    let give_up = |key: &u32, failure: Failure<Infallible>| keep(key, &failure, true);
    let limits = RunLimits::new().timeout(2 * SECOND).max_retries(1);
    let mut worker = by_hand(queue.run_with(limits, reconcile, fail, give_up));
    assert!(worker.is_pending());
    clock.advance(2 * SECOND - Duration::from_nanos(1));
    assert!(worker.poll_again().is_pending());
    assert!(failures.borrow().is_empty());
    let before = worker.wakes();
    clock.advance(Duration::from_nanos(1));
    assert_eq!(worker.wakes(), before + 1);
    assert!(worker.poll_again().is_pending());
    assert_eq!(*failures.borrow(), [(1, true, false)]);
    // The next key has a deadline of its own, and the first is retried after its backoff.
    assert!(worker.is_pending() && worker.is_pending());
    clock.advance(SECOND);
    assert!(worker.is_pending());
    clock.advance(2 * SECOND);
    assert!(worker.poll_again().is_pending());
    assert!(worker.is_pending());
    assert_eq!(failures.borrow()[1..], [(1, true, false), (1, true, true)]);
    let at = |seconds| Some(Instant::EPOCH + seconds * SECOND);
    assert_eq!(*deadlines.borrow(), [at(2), at(4), at(5)]);
    assert!(!queue.contains(&1) && !queue.contains(&2));
}

#[test]
fn a_result_that_is_there_counts_however_short_the_timeout() {
    let clock = Clock::new();
    let queue: Keys<'_> = queue(&clock);
    queue.add(1).unwrap();
    let reconcile = async |_: &u32, _: RunContext| Action::Success;
    let limits = RunLimits::new().timeout(Duration::ZERO);
    let mut worker = by_hand(queue.run_with(
        limits,
        reconcile,
        |_, _, _| unreachable!(),
        |_, _| unreachable!(),
    ));
    // It yields once between two keys.
    assert!(worker.is_pending() && worker.is_pending());
    assert!(!queue.contains(&1));
}
