//! The failure records of a growable queue: keys that are held for their failures alone.

use std::time::Duration;

use requeue_core::binding::*;
use requeue_core::limiter::Exponential;
use requeue_core::priority::Plain;
use requeue_core::storage::Growable;
use requeue_core::{Action, Finished, Instant};

/// A queue with one failure of each of these keys on record, the oldest first.
fn with_records(keys: std::ops::Range<u8>) -> Queue<u8, Plain, Exponential, Growable> {
    let now = Instant::EPOCH;
    let limiter = Exponential::new(Duration::ZERO, Duration::ZERO);
    let mut queue = Queue::growable(limiter);
    for key in keys {
        for action in [Action::Retry, Action::Release] {
            let _ = queue.at(now).add(key);
            let work = queue.at(now).try_get().unwrap();
            let finished = queue.at(now).finish(work.ticket, action);
            assert_ne!(finished, Finished::Stale);
        }
    }
    queue.assert_valid();
    queue
}

#[test]
fn a_limit_discards_the_oldest_records() {
    for limit in [0, 1, 3, 4, 5, usize::MAX] {
        let mut queue = with_records(0..4);
        assert_eq!(queue.stats().total, 4);
        queue.limit_failure_records(limit);
        queue.assert_valid();
        let left = limit.min(4);
        assert_eq!(queue.stats().total, left, "{limit}");
        let on_record = (0..4).filter(|key| queue.failures(key) == 1);
        assert!(on_record.eq(4 - left as u8..4), "the youngest {left}");
    }
}
