//! Calls that wait until nothing is left to do.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use requeue_schedules::{Waits, is_at_rest, join, with};
use requeue_std::{Action, WaitError};
use shuttle::thread;

both! {
    explore:
        a_wait_for_the_drain_ends_with_it,
        a_key_that_was_dirty_is_taken_and_the_drain_ends,
        shutting_down_interrupts_a_drain;
    explore_all:
        a_drain_ends_with_the_last_active_key,
        a_drain_ends_with_a_worker_that_asks_for_the_next_key;
}

fn a_wait_for_the_drain_ends_with_it<Q: Waits>() {
    let queue = Q::new();
    queue.as_shared().add_many([1, 2], |_| unreachable!());
    let finished = Arc::new(AtomicUsize::new(0));
    let workers = (0..2).map(|_| {
        let finished = Arc::clone(&finished);
        with(&queue, move |queue| {
            while let Ok(guard) = queue.get() {
                finished.fetch_add(1, Ordering::SeqCst);
                guard.success();
            }
        })
    });
    let mut threads: Vec<_> = workers.collect();
    for _ in 0..2 {
        let finished = Arc::clone(&finished);
        threads.push(with(&queue, move |queue| {
            assert_eq!(queue.drain(), Ok(()));
            assert_eq!(finished.load(Ordering::SeqCst), 2);
        }));
    }
    assert_eq!(queue.drain(), Ok(()));
    assert_eq!(finished.load(Ordering::SeqCst), 2);
    join(threads);
    is_at_rest(&queue);
}

fn a_key_that_was_dirty_is_taken_and_the_drain_ends<Q: Waits>() {
    let queue = Q::new();
    queue.add(1).unwrap();
    let guard = queue.get().unwrap();
    queue.add(1).unwrap();
    let getter = |queue: &Q| {
        while let Ok(guard) = queue.get() {
            guard.success();
        }
    };
    let getters = [with(&queue, getter), with(&queue, getter)];
    let drain = with(&queue, Q::drain);
    // This thread ends a run, and takes no key.
    guard.success();
    assert_eq!(drain.join().unwrap(), Ok(()));
    join(getters);
    is_at_rest(&queue);
}

fn a_drain_ends_with_the_last_active_key<Q: Waits>() {
    let queue = Q::new();
    queue.add(1).unwrap();
    let guard = queue.get().unwrap();
    let drain = with(&queue, Q::drain);
    guard.success();
    assert_eq!(drain.join().unwrap(), Ok(()));
    is_at_rest(&queue);
}

fn a_drain_ends_with_a_worker_that_asks_for_the_next_key<Q: Waits>() {
    let queue = Q::new();
    queue.add(1).unwrap();
    let guard = queue.get().unwrap();
    queue.as_shared().shut_down();
    let drain = with(&queue, Q::drain);
    assert!(queue.next(guard, Action::Success).is_err());
    assert_eq!(drain.join().unwrap(), Ok(()));
    is_at_rest(&queue);
}

fn shutting_down_interrupts_a_drain<Q: Waits>() {
    let queue = Q::new();
    queue.add(1).unwrap();
    let guard = queue.get().unwrap();
    let drain = with(&queue, Q::drain);
    while !queue.as_shared().is_shutting_down() {
        thread::yield_now();
    }
    queue.as_shared().shut_down();
    // The key is still active.
    assert_eq!(drain.join().unwrap(), Err(WaitError::Interrupted));
    guard.success();
    is_at_rest(&queue);
}
