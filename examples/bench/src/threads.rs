//! Producers and workers on threads. Here wall time counts, since they are to work together.

use core::hash::{BuildHasher, Hash};
use std::collections::VecDeque;
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use parking_lot::{Condvar, Mutex};
use requeue_std::{Action, WorkQueue};

use crate::port::SharedPort;
use crate::workloads::Round;

/// How many keys a batch has.
pub const BATCH: usize = 32;

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
        // Before the others start: on a busy machine this thread may be the last that does.
        let begun = Instant::now();
        start.wait();
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
            let _ = self.0.add_many(keys.by_ref().take(BATCH));
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

/// Keys behind a lock of the same kind, `COUNT` at a time: no key is stored twice, found or
/// completed. What this costs is the lock, and that two threads share memory.
#[derive(Debug)]
pub struct Numbers<K, const COUNT: usize> {
    waiting: Mutex<Waiting<K>>,
    wake: Condvar,
}

#[derive(Debug)]
struct Waiting<K> {
    keys: VecDeque<K>,
    asleep: usize,
    closed: bool,
}

impl<K, const COUNT: usize> Default for Numbers<K, COUNT> {
    fn default() -> Self {
        let waiting = Waiting {
            keys: VecDeque::new(),
            asleep: 0,
            closed: false,
        };
        Self {
            waiting: Mutex::new(waiting),
            wake: Condvar::new(),
        }
    }
}

impl<K, const COUNT: usize> Numbers<K, COUNT> {
    /// Adds keys under one lock, and wakes a worker if one sleeps.
    pub fn add(&self, keys: impl Iterator<Item = K>) {
        let mut waiting = self.waiting.lock();
        waiting.keys.extend(keys);
        let is_awaited = waiting.asleep > 0;
        drop(waiting);
        if is_awaited {
            self.wake.notify_one();
        }
    }

    /// Takes up to `COUNT` keys, after waiting for one. Returns whether there were any.
    pub fn take(&self, taken: &mut Vec<K>) -> bool {
        let mut waiting = self.waiting.lock();
        while waiting.keys.is_empty() {
            if waiting.closed {
                return false;
            }
            waiting.asleep += 1;
            self.wake.wait(&mut waiting);
            waiting.asleep -= 1;
        }
        let count = waiting.keys.len().min(COUNT);
        taken.extend(waiting.keys.drain(..count));
        true
    }
}

impl<K: Send, const COUNT: usize> Shared<K> for Numbers<K, COUNT> {
    fn produce(&self, keys: Vec<K>) {
        let mut keys = keys.into_iter().peekable();
        while keys.peek().is_some() {
            self.add(keys.by_ref().take(COUNT));
        }
    }

    fn work(&self, on_key: &mut dyn FnMut(&K)) {
        let mut taken = Vec::with_capacity(COUNT);
        while self.take(&mut taken) {
            taken.drain(..).for_each(|key| on_key(&key));
        }
    }

    fn close(&self) {
        self.waiting.lock().closed = true;
        self.wake.notify_all();
    }
}
