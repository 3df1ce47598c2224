//! Batches that are longer than a chunk: other calls come in between.

use std::thread;

use requeue_std::WorkQueue;
use requeue_std::binding::{AsShared, RandomState};
use requeue_std::storage::{Growable, Storage};
use requeue_std::{Action, Finished};

const KEYS: usize = 1_000;
const KEYS_PER_LOCK: usize = Growable::<RandomState>::KEYS_PER_LOCK;

/// Another thread works on the first keys before the last ones are added: the iterator waits for
/// it, which it could not under the lock.
#[test]
fn another_thread_gets_keys_of_a_batch_that_is_still_added() {
    let queue: WorkQueue<usize> = WorkQueue::new();
    let keys = (0..KEYS).inspect(|key| {
        if *key == KEYS_PER_LOCK {
            let taken = thread::scope(|scope| {
                let worker = scope.spawn(|| queue.get().map(|guard| guard.success()));
                worker.join().unwrap()
            });
            assert_eq!(taken, Ok(Finished::Idle));
            assert_eq!(queue.len(), KEYS_PER_LOCK - 1);
        }
    });
    assert_eq!(queue.add_many(keys).ready, KEYS);

    let batch = queue.get_many(usize::MAX).unwrap();
    assert!(batch.keys().copied().eq(1..KEYS));
    batch.release();
    assert_eq!(queue.stats().total, 0);
}

/// A chunk wakes a thread that waits, whichever chunk it is.
#[test]
fn threads_that_wait_share_a_batch() {
    let queue: WorkQueue<usize> = WorkQueue::new();
    let worked: usize = thread::scope(|scope| {
        let workers = [(); 3].map(|()| {
            scope.spawn(|| {
                let mut count = 0;
                while let Ok(batch) = queue.get_many(KEYS_PER_LOCK + 1) {
                    count += batch.len();
                    batch.success();
                }
                count
            })
        });
        assert!(queue.add_many(0..KEYS).rejected.is_empty());
        queue.shut_down();
        workers.map(|worker| worker.join().unwrap()).iter().sum()
    });
    assert_eq!(worked, KEYS);
}

#[test]
fn another_thread_sees_the_runs_that_have_ended() {
    let queue: WorkQueue<usize> = WorkQueue::new();
    assert!(queue.add_many(0..KEYS).rejected.is_empty());
    let guards = queue.get_many(KEYS).unwrap().into_guards();
    let tickets: Vec<_> = guards
        .into_iter()
        .filter_map(|guard| guard.into_ticket())
        .collect();
    let tickets = tickets.into_iter().enumerate().map(|(place, ticket)| {
        let active = thread::scope(|scope| scope.spawn(|| queue.stats().active).join().unwrap());
        assert_eq!(active, KEYS - place / KEYS_PER_LOCK * KEYS_PER_LOCK);
        ticket
    });
    queue.as_shared().finish_many(tickets, Action::Success);
    assert_eq!(queue.stats().total, 0);
}
