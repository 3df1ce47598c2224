//! A worker alone with its queue, on each runtime: what a key costs through the lock, the guard and
//! the layers of the adapter. Some key is always ready, so the worker never waits.

use requeue_core::binding::Reporter;
use requeue_core::limiter::{Exponential, default_item_based};
use requeue_core::priority::Plain;
use requeue_core::storage::Growable;
use requeue_core::{Action, Instant, Queue};

use crate::keys::Random;
use crate::tasks::current_thread;

/// Seeds nothing: each run counts the same.
type Fold = foldhash::fast::FixedState;
/// The queue that a runtime is given.
pub type Ready = Queue<u64, Plain, Exponential, Growable<Fold>, Reporter>;

/// How a worker goes from one key to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// `get`, then `success`: two locks.
    Get,
    /// `next`: one lock.
    Next,
}

/// Adds each of `keys`, then takes and completes one, on a thread. Some key is ready before.
pub fn on_a_thread(by: By, ready: Ready, keys: &[u64]) {
    let clock = requeue_std::ManualClock::new();
    let queue = requeue_std::WorkQueue::from_queue(ready, clock);
    let mut held = queue.get();
    for &key in keys {
        let _ = queue.add(key);
        held = held.and_then(|guard| match by {
            By::Next => queue.next(guard, Action::Success),
            By::Get => {
                guard.success();
                queue.get()
            }
        });
    }
}

/// The same in a task on Tokio's runtime of one thread, within its budget.
pub fn in_a_task(by: By, ready: Ready, keys: &[u64]) {
    let Ok(runtime) = current_thread() else {
        return;
    };
    let queue = requeue_tokio::WorkQueue::from_queue(ready, requeue_tokio::QueueClock::new());
    runtime.block_on(async {
        let mut held = queue.get().await;
        for &key in keys {
            let _ = queue.add(key);
            let Ok(guard) = held else {
                return;
            };
            held = match by {
                By::Next => queue.next(guard, Action::Success).await,
                By::Get => {
                    guard.success();
                    queue.get().await
                }
            };
        }
    });
}

/// A queue with so many keys ready.
#[must_use]
pub fn ready(waiting: usize, random: &mut Random) -> Ready {
    let hasher = Fold::default();
    let mut queue = Queue::from_parts(default_item_based(), Reporter::default(), hasher, 0);
    for key in random.keys::<u64>(waiting) {
        let _ = queue.at(Instant::EPOCH).add(key);
    }
    queue
}
