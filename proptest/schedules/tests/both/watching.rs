//! Calls that wait until the queue, or a key, has no more work.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use requeue_schedules::{SECOND, Waits, finish, is_at_rest, join, with};
use requeue_std::Action;

both! {
    explore:
        a_worker_that_asks_for_more_leaves_the_queue_idle,
        every_call_that_waits_is_woken_and_no_getter_is_forgotten,
        a_key_is_flushed_while_it_is_added_again_and_again,
        a_cancel_waits_for_the_run_and_for_nothing_else;
    explore_all:
        the_last_run_ends_while_a_call_begins_to_wait_for_it,
        the_last_delay_is_cancelled_while_a_call_waits_for_it,
        a_run_ends_while_a_call_begins_to_wait_for_it;
}

fn the_last_run_ends_while_a_call_begins_to_wait_for_it<Q: Waits>() {
    let queue = Q::new();
    queue.add(1).unwrap();
    let guard = queue.get().unwrap();
    let waits = with(&queue, Q::wait_idle);
    guard.success();
    waits.join().unwrap();
    is_at_rest(&queue);
}

fn a_worker_that_asks_for_more_leaves_the_queue_idle<Q: Waits>() {
    let queue = Q::new();
    queue.as_shared().add_many([1, 2], |_| unreachable!());
    let waits = with(&queue, Q::wait_idle);
    let worker = with(&queue, |queue| {
        let mut guard = queue.get();
        while let Ok(active) = guard {
            guard = queue.next(active, Action::Success);
        }
    });
    waits.join().unwrap();
    queue.as_shared().shut_down();
    worker.join().unwrap();
    is_at_rest(&queue);
}

fn every_call_that_waits_is_woken_and_no_getter_is_forgotten<Q: Waits>() {
    let queue = Q::new();
    queue.add(1).unwrap();
    let guard = queue.get().unwrap();
    let ended = Arc::new(AtomicUsize::new(0));
    let watchers = [(); 2].map(|()| {
        let ended = Arc::clone(&ended);
        with(&queue, move |queue| {
            queue.wait_idle();
            assert!(ended.load(Ordering::SeqCst) > 0);
        })
    });
    let getters = [(); 2].map(|()| with(&queue, |queue| finish::<Q>(queue.get().unwrap())));
    ended.fetch_add(1, Ordering::SeqCst);
    guard.success();
    join(watchers);
    queue.as_shared().add_many([2, 3], |_| unreachable!());
    let mut keys = getters.map(|getter| getter.join().unwrap());
    keys.sort_unstable();
    assert_eq!(keys, [2, 3]);
    is_at_rest(&queue);
}

fn the_last_delay_is_cancelled_while_a_call_waits_for_it<Q: Waits>() {
    let queue = Q::new();
    queue.add_after(1, SECOND).unwrap();
    let waits = with(&queue, Q::wait_settled);
    queue.as_shared().cancel_delay(&1).unwrap();
    waits.join().unwrap();
    is_at_rest(&queue);
}

fn a_run_ends_while_a_call_begins_to_wait_for_it<Q: Waits>() {
    let queue = Q::new();
    queue.as_shared().add_many([1, 2], |_| unreachable!());
    let guard = queue.get().unwrap();
    let flush = with(&queue, |queue| queue.flush(1));
    guard.success();
    flush.join().unwrap();
    finish::<Q>(queue.get().unwrap());
    is_at_rest(&queue);
}

fn a_key_is_flushed_while_it_is_added_again_and_again<Q: Waits>() {
    let queue = Q::new();
    let runs = Arc::new(AtomicUsize::new(0));
    queue.add(1).unwrap();
    let flush = with(&queue, {
        let runs = Arc::clone(&runs);
        move |queue| {
            queue.flush(1);
            assert!(runs.load(Ordering::SeqCst) > 0);
        }
    });
    let producer = with(&queue, |queue| {
        queue.add(1).unwrap();
    });
    let guard = queue.get().unwrap();
    runs.fetch_add(1, Ordering::SeqCst);
    guard.success();
    producer.join().unwrap();
    if queue.as_shared().contains(&1) {
        finish::<Q>(queue.get().unwrap());
    }
    flush.join().unwrap();
    is_at_rest(&queue);
}

fn a_cancel_waits_for_the_run_and_for_nothing_else<Q: Waits>() {
    let queue = Q::new();
    queue.add(1).unwrap();
    let guard = queue.get().unwrap();
    let cancel = with(&queue, |queue| queue.cancel_and_wait(1));
    let producer = with(&queue, |queue| {
        queue.add(1).unwrap();
    });
    let was_cancelled = guard.is_cancelled();
    guard.success();
    let was = cancel.join().unwrap();
    assert!(!was_cancelled || was.is_some_and(|was| was.active));
    producer.join().unwrap();
    queue.as_shared().cancel(&1);
    is_at_rest(&queue);
}
