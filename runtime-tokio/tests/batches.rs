//! Batches that are longer than a chunk: other calls come in between.

use std::time::Duration;

use requeue_test_tools::by_hand;
use requeue_tokio::WorkQueue;
use requeue_tokio::binding::{AsShared, RandomState};
use requeue_tokio::storage::{Growable, Storage};
use requeue_tokio::{Action, Finished};
use tokio::task::JoinSet;

const KEYS: usize = 1_000;
const KEYS_PER_LOCK: usize = Growable::<RandomState>::KEYS_PER_LOCK;

/// The iterator takes a key of the batch that is still added, which it could not under the lock.
#[tokio::test]
async fn keys_of_a_batch_that_is_still_added_are_handed_out() {
    let queue: WorkQueue<usize> = WorkQueue::new();
    let keys = (0..KEYS).inspect(|key| {
        if *key == KEYS_PER_LOCK {
            assert_eq!(queue.try_get().unwrap().success(), Finished::Idle);
            assert_eq!(queue.len(), KEYS_PER_LOCK - 1);
        }
    });
    assert_eq!(queue.add_many(keys).ready, KEYS);

    let batch = queue.get_many(usize::MAX).await.unwrap();
    assert!(batch.keys().copied().eq(1..KEYS));
    batch.release();
    assert_eq!(queue.stats().total, 0);
}

/// A chunk wakes a task that waits, whichever chunk it is.
#[tokio::test]
async fn tasks_that_wait_share_a_batch() {
    let queue: WorkQueue<usize> = WorkQueue::new();
    let mut workers = JoinSet::new();
    for _ in 0..3 {
        let queue = queue.clone();
        workers.spawn(async move {
            let mut count = 0;
            while let Ok(batch) = queue.get_many(KEYS_PER_LOCK + 1).await {
                count += batch.len();
                batch.success();
            }
            count
        });
    }
    // Now all of them wait.
    tokio::task::yield_now().await;
    assert!(queue.add_many(0..KEYS).rejected.is_empty());
    queue.shut_down();
    let worked: usize = workers.join_all().await.into_iter().sum();
    assert_eq!(worked, KEYS);
}

/// More than the look of a call that waits takes under one lock.
#[tokio::test]
async fn a_batch_that_was_waited_for_has_all_that_is_ready() {
    let queue: WorkQueue<usize> = WorkQueue::new();
    let mut call = by_hand(queue.get_many(KEYS));
    assert!(call.is_pending());
    assert!(queue.add_many(0..KEYS).rejected.is_empty());
    let batch = call.ready().unwrap();
    assert!(batch.keys().copied().eq(0..KEYS));
    batch.success();
}

#[tokio::test]
async fn many_keys_are_expedited_and_cancelled_in_chunks() {
    let queue: WorkQueue<usize> = WorkQueue::new();
    for key in 0..KEYS {
        let _ = queue.add_after(key, Duration::from_secs(60));
    }
    queue.expedite_all();
    assert_eq!(queue.len(), KEYS);
    assert_eq!(queue.retain(|key| key % 4 == 0), KEYS / 4 * 3);
    let batch = queue.get_many(KEYS).await.unwrap();
    assert!(batch.keys().all(|key| key % 4 == 0));
    assert_eq!(batch.len(), KEYS / 4);
    batch.success();
}

#[tokio::test]
async fn runs_end_in_chunks() {
    let queue: WorkQueue<usize> = WorkQueue::new();
    assert!(queue.add_many(0..KEYS).rejected.is_empty());
    let guards = queue.get_many(KEYS).await.unwrap().into_guards();
    let tickets: Vec<_> = guards
        .into_iter()
        .filter_map(|guard| guard.into_ticket())
        .collect();
    let tickets = tickets.into_iter().enumerate().map(|(place, ticket)| {
        assert_eq!(
            queue.stats().active,
            KEYS - place / KEYS_PER_LOCK * KEYS_PER_LOCK
        );
        ticket
    });
    queue.as_shared().finish_many(tickets, Action::Success);
    assert_eq!(queue.stats().total, 0);
}
