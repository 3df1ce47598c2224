//! What a growable queue remembers of keys that have nothing but failures.
#![cfg(feature = "alloc")]
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::time::Duration;

use requeue_core::{Completion, Growable, Instant, ItemExponentialFailure, Queue};

/// A queue that remembers one failure of each of these keys, the first the longest.
fn remembering(keys: std::ops::Range<u8>) -> Queue<u8, Growable, ItemExponentialFailure> {
    let now = Instant::EPOCH;
    let limiter = ItemExponentialFailure::new(Duration::ZERO, Duration::ZERO);
    let mut queue = Queue::growable(limiter);
    for key in keys {
        for completion in [Completion::Retry, Completion::Done] {
            let _ = queue.add(key, now);
            let work = queue.try_get(now).value.unwrap();
            queue.complete(work.ticket, completion, now).value.unwrap();
        }
    }
    queue.assert_valid();
    queue
}

#[test]
fn a_limit_forgets_the_oldest_that_are_too_many() {
    for limit in [0, 1, 3, 4, 5, usize::MAX] {
        let mut queue = remembering(0..4);
        assert_eq!(queue.held_len(), 4);
        queue.limit_memories(limit);
        queue.assert_valid();
        let left = limit.min(4);
        assert_eq!(queue.held_len(), left, "{limit}");
        let remembered = (0..4).filter(|key| queue.num_requeues(key) == 1);
        assert!(remembered.eq(4 - left as u8..4), "the youngest {left}");
    }
}
