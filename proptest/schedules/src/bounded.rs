//! Queues of both runtimes with room for two keys, so that calls wait for room.

use std::convert;

use requeue_std::binding::Reporter;
use requeue_std::limiter::NoLimit;
use requeue_std::priority::Plain;
use requeue_std::storage::Fixed;
use requeue_std::{Added, Queue, Rejected};
use shuttle::future::block_on;

use crate::cast::is_at_rest;

/// A queue with room for two keys, whose calls block the thread of the schedule that makes them.
pub trait Bounded: Clone + Send + Sync + 'static {
    /// A queue that is full of keys 1 and 2, which are ready.
    fn full() -> Self;

    /// The runtime's `add_wait`.
    ///
    /// # Errors
    ///
    /// As there.
    fn wait_and_add(&self, key: u32) -> Result<Added, Rejected<u32>>;

    /// Adds a key, and does not wait.
    fn add(&self, key: u32) -> bool;

    /// Waits for a key, and ends its run.
    fn run(&self) -> u32;

    /// Shuts the queue down.
    fn shut_down(&self);

    /// As [`is_at_rest`].
    fn is_at_rest(&self);
}

/// The queue for threads.
pub(crate) type Threads = requeue_std::WorkQueue<u32, Plain, NoLimit, Fixed<2>>;

/// The queue for tasks.
pub(crate) type Tasks = requeue_tokio::WorkQueue<u32, Plain, NoLimit, Fixed<2>>;

fn queue() -> Queue<u32, Plain, NoLimit, Fixed<2>, Reporter> {
    let mut queue = Queue::with_metrics(NoLimit, Reporter::NONE);
    let _ = queue
        .at(requeue_std::Instant::EPOCH)
        .add_many([1, 2], |_| {});
    queue
}

macro_rules! bounded {
    ($($queue:ty, $wait:path;)+) => {$(
        impl Bounded for $queue {
            fn full() -> Self {
                queue().into()
            }

            fn wait_and_add(&self, key: u32) -> Result<Added, Rejected<u32>> {
                $wait(self.add_wait(key))
            }

            fn add(&self, key: u32) -> bool {
                self.add(key).is_ok()
            }

            fn run(&self) -> u32 {
                let guard = $wait(self.get()).unwrap();
                let key = *guard;
                guard.success();
                key
            }

            fn shut_down(&self) {
                self.shut_down();
            }

            fn is_at_rest(&self) {
                is_at_rest(self);
            }
        }
    )+};
}

// A call of the queue for threads has waited when it returns.
bounded! {
    Threads, convert::identity;
    Tasks, block_on;
}
