//! Threads that wait, on a clock that the test moves. No test sleeps: a test waits until the queue
//! says how many threads are asleep.

mod backoff;
mod ends;
mod hooks;
mod leftovers;
mod panics;
mod run;
mod waiting;

use std::hash::Hash;
use std::thread;
use std::time::Duration;

use requeue_std::binding::AsShared;
use requeue_std::limiter::RateLimiter;
use requeue_std::priority::Plain;
use requeue_std::{ManualClock, WorkQueue};

type Keys = WorkQueue<u32>;

const SECOND: Duration = Duration::from_secs(1);

fn queue() -> (Keys, ManualClock) {
    let clock = ManualClock::new();
    let queue = WorkQueue::builder()
        .backoff(SECOND, 100 * SECOND)
        .no_retry_rate()
        .clock(clock.clone())
        .build();
    (queue, clock)
}

/// Waits until nothing is ready and this many threads sleep in `get`.
fn until_asleep<K: Eq + Hash, L: RateLimiter>(queue: &WorkQueue<K, Plain, L>, threads: usize) {
    while queue
        .as_shared()
        .with(|session| (session.len(), session.asleep()))
        != (0, threads)
    {
        thread::yield_now();
    }
}

fn is_send_and_sync<T: Send + Sync>(_: &T) {}

#[test]
fn the_queue_and_its_guards_cross_threads() {
    let (queue, _) = queue();
    is_send_and_sync(&queue);
    queue.add(1).unwrap();
    let guard = queue.get().unwrap();
    is_send_and_sync(&guard);
    thread::scope(|scope| {
        scope.spawn(move || guard.release());
    });
    assert_eq!(queue.state(&1), None);
}

/// Leaves a token for the next sleep of this thread, as other code in a program may.
fn unpark_this_thread() {
    thread::current().unpark();
}
