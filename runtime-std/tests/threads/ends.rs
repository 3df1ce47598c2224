//! How a run ends: by guard, by batch, by what was dropped.

use std::sync::Arc;
use std::thread;

use requeue_std::{Action, Finished, Producer};

use super::{Keys, SECOND, queue};

#[test]
fn a_guard_ends_its_run_only_once() {
    let (queue, _) = queue();
    queue.add(1).unwrap();
    let guard = queue.get().unwrap();
    assert_eq!(queue.release_key(&1), Finished::Idle);
    queue.add(1).unwrap();
    let second = queue.get().unwrap();
    drop(guard);
    assert!(
        queue.state(&1).unwrap().active,
        "a stale guard has no effect"
    );
    assert_eq!(second.release(), Finished::Idle);
    assert_eq!(queue.release_key(&1), Finished::Stale);
}

#[test]
fn a_guard_that_is_dropped_counts_as_failed() {
    let (queue, clock) = queue();
    queue.add(1).unwrap();
    let guard = queue.get().unwrap();
    assert!(queue.state(&1).unwrap().active);
    drop(guard);
    let state = queue.state(&1).unwrap();
    assert!(!state.active && !state.ready, "{state:?}");
    assert_eq!(queue.failures(&1), 1);
    clock.advance(SECOND);
    assert_eq!(queue.get().unwrap().attempt(), 2);
}

#[test]
fn a_question_mark_that_returns_early_retries_the_key() {
    fn work(queue: &Keys) -> Result<(), std::num::ParseIntError> {
        let guard = queue.get().unwrap();
        let _: u32 = "no number".parse()?;
        guard.success();
        Ok(())
    }

    let (queue, clock) = queue();
    queue.add(1).unwrap();
    assert!(work(&queue).is_err());
    clock.advance(SECOND);
    assert_eq!((queue.len(), queue.failures(&1)), (1, 1));
}

#[test]
fn a_batch_that_is_dropped_counts_as_failed() {
    let (queue, clock) = queue();
    assert!(queue.add_many([1, 2]).rejected.is_empty());
    drop(queue.get_many(2).unwrap());
    assert_eq!((queue.failures(&1), queue.failures(&2)), (1, 1));
    clock.advance(SECOND);
    assert_eq!(queue.len(), 2);
}

#[test]
fn a_guard_knows_its_attempts() {
    let (queue, clock) = queue();
    queue.add(1).unwrap();
    for attempt in 1..4 {
        let guard = queue.get().unwrap();
        assert_eq!((guard.attempt(), guard.failures()), (attempt, attempt - 1));
        let delay = SECOND * (1 << (attempt - 1));
        assert_eq!(guard.retry(), Finished::Delayed(delay));
        clock.advance(delay);
    }
    let guard = queue.get().unwrap();
    assert_eq!(guard.snooze(SECOND), Finished::Delayed(SECOND));
    assert_eq!(queue.failures(&1), 3, "no failure was counted");
    clock.advance(SECOND);
    queue.get().unwrap().success();
    assert_eq!(queue.failures(&1), 0);
}

#[test]
fn a_panicking_worker_gives_its_key_back() {
    let (queue, clock) = queue();
    assert!(queue.add_many([1, 2, 3]).rejected.is_empty());
    let unwound = thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let _guard = queue.get().unwrap();
            let _batch = queue.get_many(2).unwrap();
            panic!("on purpose");
        });
        worker.join()
    });
    assert!(unwound.is_err());
    assert!(queue.is_empty());
    clock.advance(SECOND);
    let batch = queue.get_many(9).unwrap();
    let mut keys: Vec<_> = batch.keys().copied().collect();
    keys.sort_unstable();
    assert_eq!(keys, [1, 2, 3]);
    assert_eq!(queue.failures(&2), 1);
    batch.success();
}

#[test]
fn a_batch_is_completed_together_or_key_by_key() {
    let (queue, _) = queue();
    assert!(queue.add_many(0..4).rejected.is_empty());
    let batch = queue.get_many(2).unwrap();
    assert_eq!((batch.len(), queue.len()), (2, 2));
    batch.release();
    let [two, three] = <[_; 2]>::try_from(queue.get_many(9).unwrap().into_guards()).unwrap();
    assert_eq!((*two, *three), (2, 3));
    assert_eq!(three.retry(), Finished::Delayed(SECOND));
    assert!(queue.state(&2).unwrap().active);
    two.success();
    assert_eq!(queue.state(&2), None);
}

#[test]
fn next_completes_a_guard_of_another_queue_there() {
    let (queue, _) = queue();
    let (other, _) = self::queue();
    other.add(9).unwrap();
    queue.add(1).unwrap();
    let guard = queue.next(other.get().unwrap(), Action::Retry).unwrap();
    assert_eq!(*guard, 1);
    assert_eq!(other.failures(&9), 1);
}

#[test]
fn handles_and_producers_that_are_dropped_close_nothing() {
    let (queue, _) = queue();
    let other = queue.clone();
    let producer: Arc<dyn Producer<u32> + Send + Sync> = Arc::new(queue.clone());
    thread::spawn(move || {
        producer.add(1).unwrap();
        other.add(2).unwrap();
    })
    .join()
    .unwrap();
    assert!(!queue.is_shutting_down());
    assert_eq!(
        [1, 2].map(|_| queue.get().unwrap().release()),
        [Finished::Idle; 2]
    );
    assert!(queue.is_settled());
}
