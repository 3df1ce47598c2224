//! What a queue costs that nobody works on: memory for every key, and none for every add. This
//! counts all that is allocated, and so stands alone.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::alloc::System;
use std::time::Duration;

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
