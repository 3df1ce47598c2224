//! What a queue takes from the allocator: memory for every key, none for every add, and none for a
//! key that there was room for. Only what the thread of a test allocates is counted.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::time::Duration;

use allocation_counter::measure;
use requeue_core::limiter::NoLimit;
use requeue_core::priority::Plain;
use requeue_core::storage::Growable;
use requeue_core::{Instant, Queue};
use requeue_std::WorkQueue;

const KEYS: u32 = 1000;
const ADDS: u32 = 1_000_000;
const HOUR: Duration = Duration::from_secs(60 * 60);

/// Adds a key of so many, in every way in turn.
fn add(queue: &WorkQueue<String>, number: u32) {
    let key = format!("namespace/pod-{}", number % KEYS);
    match number / KEYS % 4 {
        0 => queue.add(key).map(drop).unwrap(),
        1 => queue.add_after(key, HOUR).map(drop).unwrap(),
        2 => queue.add_rate_limited(key).map(drop).unwrap(),
        _ => {
            let refused = queue.add_many([key]).rejected;
            assert!(refused.is_empty());
        }
    }
}

#[test]
fn a_million_adds_of_a_thousand_keys_take_the_memory_of_a_thousand() {
    let queue = WorkQueue::new();
    // Each key once in every way, so that each is held, delayed and remembered.
    let held = measure(|| (0..4 * KEYS).for_each(|number| add(&queue, number)));
    println!("{} bytes for {KEYS} keys", held.bytes_current);

    let more = measure(|| (0..ADDS).for_each(|number| add(&queue, number)));
    assert_eq!(
        more.count_total,
        u64::from(ADDS),
        "one for the key of each add"
    );
    assert_eq!(more.bytes_current, 0, "{more:?}");
    assert_eq!(queue.len(), KEYS as usize);
}

#[test]
fn what_was_reserved_is_not_taken_again() {
    let now = Instant::EPOCH;
    let mut queues: [Queue<u32, Plain, NoLimit, Growable>; 3] = [
        Queue::with_capacity(NoLimit, KEYS as usize),
        Queue::growable(NoLimit),
        Queue::growable(NoLimit),
    ];
    queues[1].at(now).reserve(KEYS as usize);
    // Where there are keys already, room for so many more.
    let _ = queues[2].at(now).add_many(KEYS..2 * KEYS, |_| {});
    queues[2].at(now).reserve(KEYS as usize);

    for queue in &mut queues {
        let taken = measure(|| {
            let added = queue.at(now).add_many(0..KEYS, |_| {});
            assert_eq!(added.rejected, 0);
        });
        assert_eq!(taken.count_total, 0, "{taken:?}");
    }
}
