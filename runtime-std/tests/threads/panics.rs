//! Keys whose code panics, and completions that do.

use std::cell::Cell;
use std::thread;
use std::time::Duration;

use requeue_std::{Action, ManualClock, WorkQueue};

use super::until_asleep;

/// A key whose clone or drop panics when its thread says so.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Brittle(u32);

thread_local! {
    static CLONE_PANICS_AT: Cell<Option<u32>> = const { Cell::new(None) };
    static DROP_PANICS_AT: Cell<Option<u32>> = const { Cell::new(None) };
}

impl Clone for Brittle {
    fn clone(&self) -> Self {
        assert_ne!(CLONE_PANICS_AT.get(), Some(self.0), "on purpose");
        Self(self.0)
    }
}

impl Drop for Brittle {
    fn drop(&mut self) {
        if !thread::panicking() {
            assert_ne!(DROP_PANICS_AT.get(), Some(self.0), "on purpose");
        }
    }
}

#[test]
fn keys_taken_before_one_whose_clone_panics_are_given_back() {
    let queue = WorkQueue::new();
    assert!(
        queue
            .add_many([Brittle(1), Brittle(2), Brittle(3)])
            .rejected
            .is_empty()
    );
    let unwound = thread::scope(|scope| {
        let worker = scope.spawn(|| {
            CLONE_PANICS_AT.set(Some(3));
            drop(queue.get_many(9));
        });
        worker.join()
    });
    assert!(unwound.is_err());
    assert_eq!(queue.failures(&Brittle(2)), 1);
    let guard = queue.get().unwrap();
    assert_eq!(guard.0, 3, "it was not taken");
}

#[test]
fn a_panic_in_the_completion_of_a_batch_leaves_no_active_key() {
    for is_dropped in [false, true] {
        // Keys that failed do not become ready, however long the panic takes.
        let queue = WorkQueue::builder().clock(ManualClock::new()).build();
        assert!(
            queue
                .add_many([Brittle(1), Brittle(2), Brittle(3)])
                .rejected
                .is_empty()
        );
        let unwound = thread::scope(|scope| {
            let worker = scope.spawn(|| {
                let batch = queue.get_many(9).unwrap();
                DROP_PANICS_AT.set(Some(1));
                if is_dropped {
                    drop(batch);
                } else {
                    batch.release();
                }
            });
            worker.join()
        });
        assert!(unwound.is_err());
        assert_eq!(queue.drain_timeout(Duration::ZERO), Ok(()));
    }
}

#[test]
fn a_guard_whose_key_panics_when_it_is_dropped_leaves_no_active_key() {
    let queue = WorkQueue::new();
    queue.add(Brittle(1)).unwrap();
    let unwound = thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let guard = queue.get().unwrap();
            DROP_PANICS_AT.set(Some(1));
            drop(queue.next(guard, Action::Release));
        });
        worker.join()
    });
    assert!(unwound.is_err());
    let state = queue.state(&Brittle(1)).unwrap();
    assert!(!state.active && state.failures == 1, "{state:?}");
}

#[test]
fn a_panic_in_the_completion_that_ends_a_drain_is_no_lost_wake() {
    let queue = WorkQueue::new();
    queue.add(Brittle(1)).unwrap();
    let guard = queue.get().unwrap();
    thread::scope(|scope| {
        let drain = scope.spawn(|| queue.drain());
        let worker = scope.spawn(|| {
            while !queue.is_shutting_down() {
                thread::yield_now();
            }
            DROP_PANICS_AT.set(Some(1));
            guard.release();
        });
        assert!(worker.join().is_err());
        assert_eq!(drain.join().unwrap(), Ok(()));
    });
}

#[test]
fn a_panic_in_the_clone_of_the_next_key_wakes_another_thread() {
    let queue = WorkQueue::new();
    queue.add(Brittle(1)).unwrap();
    let guard = queue.get().unwrap();
    thread::scope(|scope| {
        let other = scope.spawn(|| queue.get().map(|guard| guard.0));
        until_asleep(&queue, 1);
        let worker = scope.spawn(|| {
            CLONE_PANICS_AT.set(Some(1));
            queue.add(Brittle(1)).unwrap();
            drop(queue.next(guard, Action::Release));
        });
        assert!(worker.join().is_err());
        assert_eq!(other.join().unwrap(), Ok(1));
    });
}
