//! Guards and batches, as a worker uses them.

use std::time::Duration;

use crate::common::clock::Hand;
use crate::common::lock::Single;
use requeue_core::binding::*;
use requeue_core::limiter::{DefaultItemBased, default_item_based};
use requeue_core::metrics::Times;
use requeue_core::priority::Plain;
use requeue_core::storage::Growable;
use requeue_core::{Action, Batch, Finished, Guard, Instant, Workers};

struct Handed;

impl Host for Handed {
    type Key = u32;
    type Priorities = Plain;
    type Limiter = DefaultItemBased;
    type Storage = Growable;
    type Metrics = Times;
    type Waiters = GrowableWaitList;
    type Clock = Hand;
    type Lock = Single<State<Self>>;
}

type Keys = Shared<Handed>;

fn queue() -> Keys {
    let limited = Queue::builder().limiter(default_item_based());
    let state = State::new(limited.report_to(Times).build(), GrowableWaitList::new());
    Shared::new(Single::new(state), Hand::default())
}

/// Every key that is ready.
fn batch(queue: &Keys) -> Batch<Handed, &Keys> {
    Batch::take(queue, usize::MAX)
}

#[test]
fn a_guard_says_how_long_its_key_has_waited() {
    let queue = queue();
    queue.add(7).unwrap();
    queue.clock().set(1500);
    let guard = queue.try_get().unwrap();
    assert_eq!(guard.waited(), Duration::from_nanos(1500));
}

/// An early `return` or `?` must not turn a failure into a success.
#[test]
fn a_guard_that_is_dropped_unreported_has_failed() {
    let queue = queue();
    queue.add(7).unwrap();
    drop(queue.try_get().unwrap());
    assert_eq!(queue.failures(&7), 1);
    let state = queue.state(&7).unwrap();
    assert!(!state.active, "its run is over");
    assert_eq!(state.due, Some(Instant::from_nanos(1_000_000)));

    queue.clock().set(1_000_000);
    let guard = queue.try_get().unwrap();
    assert_eq!(guard.attempt(), 2);
    assert_eq!(guard.finish(Action::Success), Finished::Idle);
    assert_eq!(
        queue.stats().total,
        0,
        "a guard that was finished is not dropped"
    );
}

#[test]
fn a_guard_that_is_dropped_while_the_queue_shuts_down_is_a_leftover() {
    let queue = queue();
    queue.add(7).unwrap();
    let guard = queue.try_get().unwrap();
    queue.shut_down();
    drop(guard);
    let leftover = queue.take_delayed().unwrap();
    assert_eq!((leftover.key, leftover.failures), (7, 1));
}

#[test]
fn a_guard_whose_run_was_ended_by_its_key_does_nothing_when_it_is_dropped() {
    let queue = queue();
    queue.add(7).unwrap();
    let guard = queue.try_get().unwrap();
    assert_eq!(queue.release_key(&7), Finished::Idle);
    drop(guard);
    assert_eq!(queue.failures(&7), 0);
    assert!(!queue.contains(&7));
}

#[test]
fn a_batch_that_is_dropped_unreported_has_failed_as_a_whole() {
    let queue = queue();
    queue.add_many([1, 2, 3], |_| {});
    drop(batch(&queue));
    assert_eq!([1, 2, 3].map(|key| queue.failures(&key)), [1; 3]);
    assert_eq!((queue.stats().active, queue.stats().delayed), (0, 3));
}

/// Five ways to end a run, and what is left of a key that had failed once before.
#[test]
fn each_way_to_end_a_run_keeps_its_promise() {
    let minute = Duration::from_secs(60);
    let end = |finish: fn(Guard<Handed, &Keys>) -> Finished| {
        let queue = queue();
        queue.add_rate_limited(7).unwrap();
        queue.clock().set(1_000_000);
        let finished = finish(queue.try_get().unwrap());
        (finished, queue.failures(&7))
    };
    assert_eq!(end(|guard| guard.success()), (Finished::Idle, 0));
    let requeued = end(|guard| guard.requeue_after(Duration::from_secs(60)));
    assert_eq!(requeued, (Finished::Delayed(minute), 0));
    let retried = Finished::Delayed(Duration::from_millis(2));
    assert_eq!(end(|guard| guard.retry()), (retried, 2));
    let retried = end(|guard| guard.snooze(Duration::from_secs(60)));
    assert_eq!(retried, (Finished::Delayed(minute), 1));
    assert_eq!(end(|guard| guard.release()), (Finished::Idle, 1));
    assert_eq!(end(|guard| guard.give_up()), (Finished::Idle, 0));
    let second = Duration::from_secs(1);
    let polled = end(|guard| guard.poll(Duration::from_secs(1), Duration::from_secs(60)));
    assert_eq!(polled, (Finished::Delayed(second), 1));
    let suspended = end(|guard| guard.suspend(Duration::from_secs(60)));
    assert_eq!(suspended, (Finished::Suspended(minute), 1));
}

#[test]
fn a_run_is_told_its_priority_and_whether_a_suspension_has_timed_out() {
    let queue = queue();
    queue.add(7).unwrap();
    let guard = queue.try_get().unwrap();
    assert_eq!((guard.priority(), guard.timed_out()), (0, false));
    guard.suspend(Duration::from_nanos(5));
    queue.clock().set(5);
    assert!(queue.try_get().unwrap().timed_out());
}

#[test]
fn a_run_learns_by_its_guard_and_by_its_ticket_whether_it_was_cancelled() {
    let queue = queue();
    queue.add_many([1, 2], |_| {});
    let (one, two) = (queue.try_get().unwrap(), queue.try_get().unwrap());
    assert!(queue.cancel(&1).is_some());
    assert!(one.is_cancelled() && !two.is_cancelled());
    let [one, two] = [one, two].map(|guard| guard.into_ticket().unwrap());
    assert!(queue.is_cancelled(&one) && !queue.is_cancelled(&two));
}

#[test]
fn a_batch_says_whether_a_run_was_ended_by_its_key() {
    let queue = queue();
    queue.add_many([1, 2, 3], |_| {});
    let handed = batch(&queue);
    assert!(!handed.is_empty());
    assert_eq!(queue.release_key(&2), Finished::Idle);
    assert_eq!(handed.release(), 1);
    assert_eq!(queue.stats().active, 0, "the other runs end all the same");

    queue.add(1).unwrap();
    assert_eq!(batch(&queue).release(), 0);
    assert!(batch(&queue).is_empty());
}

#[test]
fn guards_batches_and_workers_can_be_shown() {
    let queue = queue();
    queue.add_many([1, 2, 3], |_| {});
    let guard: Guard<Handed, _> = queue.try_get().unwrap();
    assert_eq!(format!("{guard:?}"), "Guard { key: 1, failures: 0, .. }");
    assert_eq!(format!("{guard:>3}"), "  1", "as the key shows itself");
    assert_eq!(format!("{:?}", batch(&queue)), "[2, 3]");

    let workers: Workers<'_, u32, String> = Workers::new(4);
    assert!(format!("{workers:?}").starts_with("Workers { count: 4, max_retries: "));
}
