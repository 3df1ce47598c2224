//! Calls that wait until nothing is left to do.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use requeue_schedules::{Scene, Waits, scenarios, with};
use requeue_std::{Action, WaitError};
use shuttle::thread;

scenarios! {
    explore:
        a_wait_for_the_drain_ends_with_it,
        a_key_that_was_dirty_is_taken_and_the_drain_ends,
        shutting_down_interrupts_a_drain;
    explore_all:
        a_drain_ends_with_the_last_active_key,
        a_drain_ends_with_a_worker_that_asks_for_the_next_key;
}

fn a_wait_for_the_drain_ends_with_it<Q: Waits>(scene: &mut Scene<Q>) {
    scene.add([1, 2]);
    let finished = Arc::new(AtomicUsize::new(0));
    for _ in 0..2 {
        let finished = Arc::clone(&finished);
        scene.worker(move |_| _ = finished.fetch_add(1, Ordering::SeqCst));
    }
    let drains = move |queue: &Q| {
        assert_eq!(queue.drain(), Ok(()));
        assert_eq!(finished.load(Ordering::SeqCst), 2);
    };
    scene.also(drains.clone());
    scene.also(drains.clone());
    drains(&scene.queue);
}

fn a_key_that_was_dirty_is_taken_and_the_drain_ends<Q: Waits>(scene: &mut Scene<Q>) {
    scene.add([1]);
    let queue = scene.queue.clone();
    let guard = queue.get().unwrap();
    scene.add([1]);
    scene.worker(drop);
    scene.worker(drop);
    let drain = with(&queue, Q::drain);
    // This thread ends a run, and takes no key.
    guard.success();
    assert_eq!(drain.join().unwrap(), Ok(()));
}

fn a_drain_ends_with_the_last_active_key<Q: Waits>(scene: &mut Scene<Q>) {
    scene.add([1]);
    let guard = scene.queue.get().unwrap();
    let drain = with(&scene.queue, Q::drain);
    guard.success();
    assert_eq!(drain.join().unwrap(), Ok(()));
}

fn a_drain_ends_with_a_worker_that_asks_for_the_next_key<Q: Waits>(scene: &mut Scene<Q>) {
    scene.add([1]);
    let queue = &scene.queue;
    let guard = queue.get().unwrap();
    queue.as_shared().shut_down();
    let drain = with(queue, Q::drain);
    assert!(queue.next(guard, Action::Success).is_err());
    assert_eq!(drain.join().unwrap(), Ok(()));
}

fn shutting_down_interrupts_a_drain<Q: Waits>(scene: &mut Scene<Q>) {
    scene.add([1]);
    let queue = &scene.queue;
    let guard = queue.get().unwrap();
    let drain = with(queue, Q::drain);
    while !queue.as_shared().is_shutting_down() {
        thread::yield_now();
    }
    queue.as_shared().shut_down();
    // The key is still active.
    assert_eq!(drain.join().unwrap(), Err(WaitError::Interrupted));
    guard.success();
}
