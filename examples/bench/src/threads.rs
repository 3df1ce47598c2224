//! Producers and workers on threads. Here wall time counts, since they are to work together.

use core::hash::{BuildHasher, Hash};
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use requeue_std::{Action, WorkQueue};

use crate::port::SharedPort;
use crate::workloads::Round;

/// How many keys a batch has.
const BATCH: usize = 32;

/// How many threads add keys and how many work on them.
#[derive(Clone, Copy, Debug)]
pub struct Crew {
    /// Threads that add.
    pub producers: usize,
    /// Threads that get and complete.
    pub workers: usize,
}

/// A queue that threads share.
pub trait Shared<K>: Send + Sync {
    /// Adds the keys.
    fn produce(&self, keys: Vec<K>);

    /// Gets keys and completes them until the queue is closed and empty.
    fn work(&self, on_key: &mut dyn FnMut(&K));

    /// Tells the workers that no more keys come.
    fn close(&self);
}

/// Sends `keys` through `queue`, from all producers to all workers. `on_key` makes what a worker
/// does with a key.
pub fn run<K: Send, F: FnMut(&K)>(
    queue: &impl Shared<K>,
    mut keys: Vec<K>,
    crew: Crew,
    on_key: impl Fn() -> F + Sync,
) -> Round {
    let operations = keys.len();
    let share = operations.div_ceil(crew.producers);
    let start = Barrier::new(crew.producers + crew.workers + 1);
    let begun = thread::scope(|scope| {
        let producers: Vec<_> = (0..crew.producers)
            .map(|_| {
                let keys = keys.split_off(keys.len().saturating_sub(share));
                scope.spawn(|| {
                    start.wait();
                    queue.produce(keys);
                })
            })
            .collect();
        for _ in 0..crew.workers {
            scope.spawn(|| {
                let mut on_key = on_key();
                start.wait();
                queue.work(&mut on_key);
            });
        }
        start.wait();
        let begun = Instant::now();
        for producer in producers {
            // A producer that panics is reported by the scope.
            let _ = producer.join();
        }
        queue.close();
        begun
    });
    Round {
        time: begun.elapsed(),
        operations,
    }
}

/// Our queue, one key at a time; a worker completes a key with the lock that takes the next.
#[derive(Clone, Default)]
pub struct OneByOne<K: Eq + Hash>(WorkQueue<K>);

/// Our queue, one key at a time; a worker completes a key before it asks for the next.
#[derive(Clone, Default)]
pub struct GetThenDone<K: Eq + Hash>(WorkQueue<K>);

/// Our queue, 32 keys at a time.
#[derive(Clone, Default)]
pub struct Batches<K: Eq + Hash>(WorkQueue<K>);

impl<K: Eq + Hash + Clone + Send> Shared<K> for OneByOne<K> {
    fn produce(&self, keys: Vec<K>) {
        for key in keys {
            let _ = self.0.add(key);
        }
    }

    fn work(&self, on_key: &mut dyn FnMut(&K)) {
        let mut next = self.0.get();
        while let Ok(guard) = next {
            on_key(&guard);
            next = self.0.next(guard, Action::Release);
        }
    }

    fn close(&self) {
        self.0.shut_down();
    }
}

impl<K: Eq + Hash + Clone + Send> Shared<K> for GetThenDone<K> {
    fn produce(&self, keys: Vec<K>) {
        for key in keys {
            let _ = self.0.add(key);
        }
    }

    fn work(&self, on_key: &mut dyn FnMut(&K)) {
        while let Ok(guard) = self.0.get() {
            on_key(&guard);
            guard.release();
        }
    }

    fn close(&self) {
        self.0.shut_down();
    }
}

impl<K: Eq + Hash + Clone + Send> Shared<K> for Batches<K> {
    fn produce(&self, keys: Vec<K>) {
        let mut keys = keys.into_iter().peekable();
        while keys.peek().is_some() {
            self.0.add_many(keys.by_ref().take(BATCH), drop);
        }
    }

    fn work(&self, on_key: &mut dyn FnMut(&K)) {
        while let Ok(batch) = self.0.get_many(BATCH) {
            batch.keys().for_each(&mut *on_key);
            batch.release();
        }
    }

    fn close(&self) {
        self.0.shut_down();
    }
}

impl<K: Eq + Hash + Clone + Send, H: BuildHasher + Send> Shared<K> for SharedPort<K, H> {
    fn produce(&self, keys: Vec<K>) {
        for key in keys {
            self.add(key);
        }
    }

    fn work(&self, on_key: &mut dyn FnMut(&K)) {
        while let Some(key) = self.get() {
            on_key(&key);
            self.done(&key);
        }
    }

    fn close(&self) {
        self.shut_down();
    }
}
