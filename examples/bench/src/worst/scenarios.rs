//! What is done to a queue that may make one operation slow.

use core::time::Duration;

use crate::keys::{Key, Random};
use crate::subject::Subject;
use crate::workloads::shuffle_slots;

use super::Watch;

/// When all deadlines come.
const DUE: u64 = 1_000_000_000;

/// A queue whose leftovers can be taken.
pub trait Ends<K>: Subject<K> {
    /// Shuts down.
    fn shut_down(&mut self, now: u64);
    /// Takes a delayed key.
    fn take_delayed(&mut self, now: u64) -> Option<K>;
    /// Takes a ready key.
    fn take_ready(&mut self) -> Option<K>;
}

/// What reports how long keys have been active.
pub trait Reports<K> {
    /// A key becomes active, at time zero.
    fn begin(&mut self, key: K);
    /// Returns the sum and the maximum.
    fn report_running(&mut self, now: u64) -> (Duration, Duration);
}

/// Adds as many new keys to an empty queue that has reserved nothing, then gets and completes each.
pub fn fill<K: Key, Q: Subject<K>>(mut queue: Q, keys: usize, seed: u64, watch: &mut Watch) {
    let mut random = Random::new(seed);
    for _ in 0..keys {
        let key = K::from_number(random.next());
        watch.operation("add", || queue.add(key, 0));
    }
    take(&mut queue, keys, 0, watch);
}

/// Adds as many new keys with random deadlines to an empty queue that has reserved nothing.
pub fn delays<K: Key, Q: Subject<K>>(mut queue: Q, keys: usize, seed: u64, watch: &mut Watch) {
    let mut random = Random::new(seed);
    for _ in 0..keys {
        let key = K::from_number(random.next());
        let due = 1 + random.next() % DUE;
        watch.operation("add with a deadline", || queue.add_at(key, due, 0));
    }
}

/// All deadlines come at once, and a producer adds new keys.
pub fn produce<K: Key, Q: Subject<K>>(queue: Q, keys: usize, seed: u64, watch: &mut Watch) {
    let (mut queue, mut random) = all_due(queue, keys, seed);
    for _ in 0..others(keys) {
        let key = K::from_number(random.next());
        watch.operation("add", || queue.add(key, DUE));
    }
}

/// All deadlines come at once, and a worker gets and completes every key.
pub fn work<K: Key, Q: Subject<K>>(queue: Q, keys: usize, seed: u64, watch: &mut Watch) {
    let (mut queue, _) = all_due(queue, keys, seed);
    take(&mut queue, keys, DUE, watch);
}

/// All deadlines come at once, and a producer and a worker take turns.
pub fn produce_and_work<K: Key, Q: Subject<K>>(
    queue: Q,
    keys: usize,
    seed: u64,
    watch: &mut Watch,
) {
    let (mut queue, mut random) = all_due(queue, keys, seed);
    for _ in 0..others(keys) {
        let key = K::from_number(random.next());
        watch.operation("add", || queue.add(key, DUE));
        take(&mut queue, 1, DUE, watch);
    }
}

/// Reports how long as many active keys have been so, ten times.
pub fn report_running<K: Key, Q: Reports<K>>(
    mut queue: Q,
    keys: usize,
    seed: u64,
    watch: &mut Watch,
) {
    let mut random = Random::new(seed);
    for _ in 0..keys {
        queue.begin(K::from_number(random.next()));
    }
    for now in 1..=10 {
        let (sum, longest) = watch.operation("report_running", || queue.report_running(now));
        assert_eq!(longest, Duration::from_nanos(now));
        assert_eq!(sum, Duration::from_nanos(now * keys as u64));
    }
}

/// Shuts down before the deadlines have come, and takes the delayed keys.
pub fn take_delayed<K: Key, Q: Ends<K>>(queue: Q, keys: usize, seed: u64, watch: &mut Watch) {
    let (mut queue, _) = all_due(queue, keys, seed);
    watch.operation("shut_down", || queue.shut_down(0));
    for _ in 0..keys {
        let key = watch.operation("take_delayed", || queue.take_delayed(0));
        assert!(key.is_some(), "every key is left over");
    }
}

/// Shuts down as all deadlines come, and takes what is left.
pub fn shut_down_due<K: Key, Q: Ends<K>>(queue: Q, keys: usize, seed: u64, watch: &mut Watch) {
    let (mut queue, _) = all_due(queue, keys, seed);
    watch.operation("shut_down", || queue.shut_down(DUE));
    let mut left = 0;
    while watch
        .operation("take_ready", || queue.take_ready())
        .is_some()
    {
        left += 1;
    }
    while watch
        .operation("take_delayed", || queue.take_delayed(DUE))
        .is_some()
    {
        left += 1;
    }
    assert_eq!(left, keys, "every key is left over");
}

/// Drops a queue of as many ready keys, and one of as many delayed keys.
pub fn end<K: Key, Q: Subject<K>>(new: impl Fn() -> Q, keys: usize, seed: u64, watch: &mut Watch) {
    let (delayed, mut random) = all_due::<K, Q>(new(), keys, seed);
    watch.operation("drop, keys delayed", || drop(delayed));
    let mut ready = new();
    for _ in 0..keys {
        ready.add(K::from_number(random.next()), 0);
    }
    watch.operation("drop, keys ready", || drop(ready));
}

/// A queue with as many keys that are due at one time. It has grown before, and has room for the
/// keys that a producer adds.
fn all_due<K: Key, Q: Subject<K>>(mut queue: Q, keys: usize, seed: u64) -> (Q, Random) {
    let mut random = Random::new(seed);
    shuffle_slots::<K, Q>(&mut queue, keys + others(keys), &mut random);
    for _ in 0..keys {
        queue.add_at(K::from_number(random.next()), DUE, 0);
    }
    (queue, random)
}

/// How many keys a producer adds.
fn others(keys: usize) -> usize {
    (keys / 10).max(10)
}

fn take<K: Key, Q: Subject<K>>(queue: &mut Q, keys: usize, now: u64, watch: &mut Watch) {
    for _ in 0..keys {
        let handed = watch.operation("get", || queue.get(now));
        if let Some((key, run)) = handed {
            watch.operation("complete", || queue.done(&key, run, now));
        }
    }
}
