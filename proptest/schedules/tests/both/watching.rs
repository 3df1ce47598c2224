//! Calls that wait until the queue, or a key, has no more work.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use requeue_schedules::{SECOND, Scene, Waits, run, scenarios, with};
use requeue_std::Action;

scenarios! {
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

fn the_last_run_ends_while_a_call_begins_to_wait_for_it<Q: Waits>(scene: &mut Scene<Q>) {
    scene.add([1]);
    let queue = scene.queue.clone();
    let guard = queue.get().unwrap();
    scene.also(Q::wait_idle);
    guard.success();
}

fn a_worker_that_asks_for_more_leaves_the_queue_idle<Q: Waits>(scene: &mut Scene<Q>) {
    scene.add([1, 2]);
    let waits = with(&scene.queue, Q::wait_idle);
    scene.also(|queue| {
        let mut guard = queue.get();
        while let Ok(active) = guard {
            guard = queue.next(active, Action::Success);
        }
    });
    waits.join().unwrap();
    scene.queue.as_shared().shut_down();
}

fn every_call_that_waits_is_woken_and_no_getter_is_forgotten<Q: Waits>(scene: &mut Scene<Q>) {
    scene.add([1]);
    let queue = scene.queue.clone();
    let guard = queue.get().unwrap();
    let ended = Arc::new(AtomicUsize::new(0));
    for _ in 0..2 {
        let ended = Arc::clone(&ended);
        scene.also(move |queue| {
            queue.wait_idle();
            assert!(ended.load(Ordering::SeqCst) > 0);
        });
    }
    scene.getters(2, 1);
    ended.fetch_add(1, Ordering::SeqCst);
    guard.success();
    scene.others_end();
    scene.add([2, 3]);
    scene.takes([2, 3]);
}

fn the_last_delay_is_cancelled_while_a_call_waits_for_it<Q: Waits>(scene: &mut Scene<Q>) {
    scene.queue.add_after(1, SECOND).unwrap();
    scene.also(Q::wait_settled);
    scene.queue.as_shared().cancel_delay(&1).unwrap();
}

fn a_run_ends_while_a_call_begins_to_wait_for_it<Q: Waits>(scene: &mut Scene<Q>) {
    scene.add([1, 2]);
    let queue = scene.queue.clone();
    let guard = queue.get().unwrap();
    scene.also(|queue| queue.flush(1));
    guard.success();
    scene.others_end();
    run(&queue);
}

fn a_key_is_flushed_while_it_is_added_again_and_again<Q: Waits>(scene: &mut Scene<Q>) {
    let runs = Arc::new(AtomicUsize::new(0));
    scene.add([1]);
    let flush = with(&scene.queue, {
        let runs = Arc::clone(&runs);
        move |queue| {
            queue.flush(1);
            assert!(runs.load(Ordering::SeqCst) > 0);
        }
    });
    scene.producer([1]);
    let queue = scene.queue.clone();
    let guard = queue.get().unwrap();
    runs.fetch_add(1, Ordering::SeqCst);
    guard.success();
    scene.others_end();
    if queue.as_shared().contains(&1) {
        run(&queue);
    }
    flush.join().unwrap();
}

fn a_cancel_waits_for_the_run_and_for_nothing_else<Q: Waits>(scene: &mut Scene<Q>) {
    scene.add([1]);
    let queue = scene.queue.clone();
    let guard = queue.get().unwrap();
    let cancel = with(&queue, |queue| queue.cancel_and_wait(1));
    scene.producer([1]);
    let was_cancelled = guard.is_cancelled();
    guard.success();
    let was = cancel.join().unwrap();
    assert!(!was_cancelled || was.is_some_and(|was| was.active));
    scene.others_end();
    queue.as_shared().cancel(&1);
}
