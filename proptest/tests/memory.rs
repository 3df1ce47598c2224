//! What a queue takes from the allocator: memory for every key, none for every add, and none for a
//! key that there was room for. This counts all that is allocated, and so is one test.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::alloc::System;
use std::time::Duration;

use requeue_core::{Growable, Instant, NoLimit, Queue};
use requeue_std::WorkQueue;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

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
            let refused = queue.add_many([key], |_| {}).rejected;
            assert_eq!(refused, 0);
        }
    }
}

#[test]
fn adds_take_no_memory_but_that_of_new_keys() {
    a_million_adds_of_a_thousand_keys_take_the_memory_of_a_thousand();
    what_was_reserved_is_not_taken_again();
}

fn a_million_adds_of_a_thousand_keys_take_the_memory_of_a_thousand() {
    let queue = WorkQueue::new();
    let all = Region::new(ALLOCATOR);
    // Each key once in every way, so that each is held, delayed and remembered.
    (0..4 * KEYS).for_each(|number| add(&queue, number));
    let held = all.change();
    let held = held.bytes_allocated - held.bytes_deallocated;
    println!("{held} bytes for {KEYS} keys");

    let more = Region::new(ALLOCATOR);
    (0..ADDS).for_each(|number| add(&queue, number));
    let more = more.change();
    assert_eq!(more.reallocations, 0, "nothing grows");
    assert_eq!(more.bytes_allocated, more.bytes_deallocated, "{more:?}");
    assert_eq!(queue.len(), KEYS as usize);
}

fn what_was_reserved_is_not_taken_again() {
    let now = Instant::EPOCH;
    let mut queues: [Queue<u32, Growable, NoLimit>; 3] = [
        Queue::with_capacity(NoLimit, KEYS as usize),
        Queue::growable(NoLimit),
        Queue::growable(NoLimit),
    ];
    queues[1].reserve(KEYS as usize);
    // Where there are keys already, room for so many more.
    let _ = queues[2].at(now).add_many(KEYS..2 * KEYS, |_| {});
    queues[2].reserve(KEYS as usize);

    for queue in &mut queues {
        let before = Region::new(ALLOCATOR);
        let added = queue.at(now).add_many(0..KEYS, |_| {});
        let taken = before.change();
        assert_eq!(added.rejected, 0);
        assert_eq!(
            (taken.allocations, taken.reallocations),
            (0, 0),
            "{taken:?}"
        );
    }
}
