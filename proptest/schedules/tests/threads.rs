//! Threads that wait, under many schedules. That nobody sleeps for ever is checked throughout: a
//! schedule that ends with everybody asleep has failed.
//!
//! Whatever releases everybody at once, as shutting down does, would also repair a wake that was
//! lost: so a getter takes as many keys as it shall and ends by itself.
#![cfg(shuttle)]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that panics has failed"
)]

use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use requeue_schedules::{explore, explore_all};
use requeue_std::core::{Clock, ItemExponentialFailure, Lock, RateLimiter};
use requeue_std::{Completion, Drained, GetError, Queue, SystemClock, WorkQueue};
use shuttle::sync::Mutex;
use shuttle::sync::mpsc::{Receiver, Sender, channel};
use shuttle::thread::{self, JoinHandle};

type Keys = WorkQueue<u32, ItemExponentialFailure>;

const SECOND: Duration = Duration::from_secs(1);

fn queue() -> Keys {
    let limiter = ItemExponentialFailure::new(SECOND, 100 * SECOND);
    WorkQueue::from(Queue::builder().limiter(limiter).build())
}

/// A thread that takes this many keys, says which, and completes them.
fn getter(queue: &Keys, count: usize, taken: &Sender<u32>) -> JoinHandle<()> {
    let (queue, taken) = (queue.clone(), taken.clone());
    thread::spawn(move || {
        for _ in 0..count {
            let guard = queue.get().unwrap();
            let key = *guard;
            guard.forget().unwrap();
            taken.send(key).unwrap();
        }
    })
}

fn getters(queue: &Keys, getters: usize, count: usize) -> (Receiver<u32>, Vec<JoinHandle<()>>) {
    let (sender, receiver) = channel();
    let threads = (0..getters).map(|_| getter(queue, count, &sender));
    (receiver, threads.collect())
}

/// Threads that take a key each, say which, and keep it in work until the gate opens: completing it
/// would wake others as well.
fn holders(
    queue: &Keys,
    count: usize,
    gate: &Arc<Mutex<()>>,
) -> (Receiver<u32>, Vec<JoinHandle<()>>) {
    let (sender, receiver) = channel();
    let holder = |_| {
        let (taken, gate) = (sender.clone(), Arc::clone(gate));
        with(queue, move |queue| {
            let guard = queue.get().unwrap();
            taken.send(*guard).unwrap();
            drop(gate.lock().unwrap());
            guard.forget().unwrap();
        })
    };
    (receiver, (0..count).map(holder).collect())
}

fn with<T: Send + 'static>(
    queue: &Keys,
    work: impl FnOnce(&Keys) -> T + Send + 'static,
) -> JoinHandle<T> {
    let queue = queue.clone();
    thread::spawn(move || work(&queue))
}

fn join(threads: impl IntoIterator<Item = JoinHandle<()>>) {
    for thread in threads {
        thread.join().unwrap();
    }
}

fn next<const N: usize>(taken: &Receiver<u32>) -> [u32; N] {
    let mut keys = std::array::from_fn(|_| taken.recv().unwrap());
    keys.sort_unstable();
    keys
}

/// Nothing is left, and nobody counts as asleep who is not.
#[track_caller]
fn is_at_rest<K: Eq + Hash, L: RateLimiter>(queue: &WorkQueue<K, L>) {
    queue.lock().with(|state| {
        state.assert_valid();
        assert_eq!((state.held_len(), state.asleep()), (0, 0));
    });
}

#[test]
fn one_getter_and_one_producer() {
    explore_all("one getter, one producer", || {
        let queue = queue();
        let (taken, threads) = getters(&queue, 1, 1);
        queue.add(7).unwrap();
        assert_eq!(next(&taken), [7]);
        join(threads);
        is_at_rest(&queue);
    });
}

#[test]
fn two_getters_and_two_keys() {
    explore("two getters, two keys at once", || {
        let queue = queue();
        let (taken, threads) = getters(&queue, 2, 1);
        queue.add_many([1, 2], |_| unreachable!());
        assert_eq!(next(&taken), [1, 2]);
        join(threads);
        is_at_rest(&queue);
    });
}

#[test]
fn every_key_of_several_producers_is_handed_out_once() {
    explore("three getters, two producers", || {
        let queue = queue();
        let (taken, mut threads) = getters(&queue, 3, 2);
        for keys in [[1, 2, 3], [4, 5, 6]] {
            threads.push(with(&queue, move |queue| {
                for key in keys {
                    queue.add(key).unwrap();
                }
            }));
        }
        assert_eq!(next(&taken), [1, 2, 3, 4, 5, 6]);
        join(threads);
        is_at_rest(&queue);
    });
}

#[test]
fn a_getter_that_leaves_with_a_key_wakes_the_next() {
    explore("baton: three getters, two keys at once", || {
        let (queue, gate) = (queue(), Arc::default());
        let closed = Mutex::lock(&gate).unwrap();
        let (taken, threads) = holders(&queue, 3, &gate);
        queue.add_many([1, 2], |_| unreachable!());
        // Both are taken before anything else could wake anybody.
        assert_eq!(next(&taken), [1, 2]);
        queue.add(3).unwrap();
        assert_eq!(next(&taken), [3]);
        drop(closed);
        join(threads);
        is_at_rest(&queue);
    });
}

#[test]
fn the_clock_is_watched_when_its_keeper_leaves_with_a_key() {
    explore("keeper leaves with another key", || {
        let (queue, gate) = (queue(), Arc::default());
        let closed = Mutex::lock(&gate).unwrap();
        let (taken, mut threads) = holders(&queue, 2, &gate);
        threads.push(with(&queue, |queue| {
            queue.add_after(1, SECOND).unwrap();
            queue.add(2).unwrap();
        }));
        assert_eq!(next(&taken), [2]);
        SystemClock::advance(SECOND);
        assert_eq!(next(&taken), [1]);
        drop(closed);
        join(threads);
        is_at_rest(&queue);
    });
}

#[test]
fn several_deadlines_come_at_once() {
    explore("three getters, three deadlines at once", || {
        let (queue, gate) = (queue(), Arc::default());
        let closed = Mutex::lock(&gate).unwrap();
        let (taken, mut threads) = holders(&queue, 3, &gate);
        for key in 1..=2 {
            threads.push(with(&queue, move |queue| {
                queue.add_after(key, SECOND).unwrap();
            }));
        }
        queue.add_after(3, SECOND).unwrap();
        join(threads.drain(3..));
        SystemClock::advance(SECOND);
        assert_eq!(next(&taken), [1, 2, 3]);
        drop(closed);
        join(threads);
        is_at_rest(&queue);
    });
}

#[test]
fn a_deadline_that_comes_before_the_keepers_is_watched() {
    explore("deadline before the keeper's", || {
        let queue = queue();
        let (taken, mut threads) = getters(&queue, 2, 1);
        queue.add_after(1, 2 * SECOND).unwrap();
        threads.push(with(&queue, |queue| {
            queue.add_after(2, SECOND).unwrap();
        }));
        join(threads.drain(2..));
        SystemClock::advance(SECOND);
        assert_eq!(next(&taken), [2]);
        SystemClock::advance(SECOND);
        assert_eq!(next(&taken), [1]);
        join(threads);
        is_at_rest(&queue);
    });
}

#[test]
fn a_delay_that_is_shortened_is_watched() {
    explore("delay shortened", || {
        let queue = queue();
        let (taken, mut threads) = getters(&queue, 2, 1);
        queue.add_after(1, 2 * SECOND).unwrap();
        threads.push(with(&queue, |queue| {
            queue.add_after(1, SECOND).unwrap();
        }));
        join(threads.drain(2..));
        SystemClock::advance(SECOND);
        assert_eq!(next(&taken), [1]);
        queue.add(2).unwrap();
        assert_eq!(next(&taken), [2]);
        join(threads);
        is_at_rest(&queue);
    });
}

#[test]
fn the_time_moves_while_a_deadline_is_set() {
    explore("time moves while a deadline is set", || {
        let queue = queue();
        let (taken, mut threads) = getters(&queue, 2, 1);
        threads.push(with(&queue, |queue| {
            queue.add_after(1, SECOND).unwrap();
        }));
        threads.push(thread::spawn(|| SystemClock::advance(SECOND)));
        join(threads.drain(2..));
        // It may have been set after the time had moved.
        SystemClock::advance(SECOND);
        assert_eq!(next(&taken), [1]);
        queue.add(2).unwrap();
        assert_eq!(next(&taken), [2]);
        join(threads);
        is_at_rest(&queue);
    });
}

#[test]
fn a_getter_that_gives_up_does_not_take_the_wake_of_another() {
    explore("timeout while a key is added", || {
        let queue = queue();
        let (taken, mut threads) = getters(&queue, 1, 1);
        let deadline = queue.clock().now() + SECOND;
        let hasty = with(&queue, move |queue| {
            let guard = queue.get_deadline(deadline)?;
            let key = *guard;
            guard.forget().unwrap();
            Ok::<_, GetError>(key)
        });
        threads.push(with(&queue, |queue| {
            queue.add(1).unwrap();
        }));
        SystemClock::advance(SECOND);
        match hasty.join().unwrap() {
            Ok(key) => {
                assert_eq!(key, 1);
                queue.add(2).unwrap();
                assert_eq!(next(&taken), [2]);
            }
            Err(error) => {
                assert_eq!(error, GetError::TimedOut);
                assert_eq!(next(&taken), [1]);
            }
        }
        join(threads);
        is_at_rest(&queue);
    });
}

#[test]
fn a_key_that_comes_as_a_getter_gives_up_is_not_lost() {
    explore_all("one getter that gives up, one producer", || {
        let queue = queue();
        let deadline = queue.clock().now() + SECOND;
        let hasty = with(&queue, move |queue| {
            queue.get_deadline(deadline).map(|guard| *guard)
        });
        SystemClock::advance(SECOND);
        queue.add(1).unwrap();
        match hasty.join().unwrap() {
            Ok(key) => assert_eq!(key, 1),
            Err(_) => assert_eq!(*queue.try_get().unwrap(), 1),
        }
        is_at_rest(&queue);
    });
}

#[test]
fn the_clock_is_watched_when_its_keeper_gives_up() {
    explore("keeper gives up", || {
        let queue = queue();
        queue.add_after(1, 2 * SECOND).unwrap();
        let deadline = queue.clock().now() + SECOND;
        let hasty = with(&queue, move |queue| queue.get_deadline(deadline).map(drop));
        let (taken, threads) = getters(&queue, 2, 1);
        SystemClock::advance(SECOND);
        SystemClock::advance(SECOND);
        match hasty.join().unwrap() {
            Ok(()) => queue.add(1).map(drop).unwrap(),
            Err(error) => assert_eq!(error, GetError::TimedOut),
        }
        assert_eq!(next(&taken), [1]);
        queue.add(2).unwrap();
        assert_eq!(next(&taken), [2]);
        join(threads);
        is_at_rest(&queue);
    });
}

#[test]
fn whoever_waits_for_the_drain_is_told_when_it_is_over() {
    explore("three wait for the drain", || {
        let queue = queue();
        queue.add_many([1, 2], |_| unreachable!());
        let finished = Arc::new(AtomicUsize::new(0));
        let workers = (0..2).map(|_| {
            let finished = Arc::clone(&finished);
            with(&queue, move |queue| {
                while let Some(guard) = queue.get() {
                    finished.fetch_add(1, Ordering::SeqCst);
                    guard.forget().unwrap();
                }
            })
        });
        let mut threads: Vec<_> = workers.collect();
        for _ in 0..2 {
            let finished = Arc::clone(&finished);
            threads.push(with(&queue, move |queue| {
                assert_eq!(queue.shut_down_with_drain(), Drained::Complete);
                assert_eq!(finished.load(Ordering::SeqCst), 2);
            }));
        }
        assert_eq!(queue.shut_down_with_drain(), Drained::Complete);
        assert_eq!(finished.load(Ordering::SeqCst), 2);
        join(threads);
        is_at_rest(&queue);
    });
}

#[test]
fn a_drain_ends_with_the_last_key_in_work() {
    explore_all("drain while the last key is completed", || {
        let queue = queue();
        queue.add(1).unwrap();
        let guard = queue.get().unwrap();
        let drain = with(&queue, WorkQueue::shut_down_with_drain);
        guard.forget().unwrap();
        assert_eq!(drain.join().unwrap(), Drained::Complete);
        is_at_rest(&queue);
    });
}

#[test]
fn a_drain_ends_with_a_worker_that_asks_for_the_next_key() {
    explore_all("drain while the last worker asks for more", || {
        let queue = queue();
        queue.add(1).unwrap();
        let guard = queue.get().unwrap();
        queue.shut_down();
        let drain = with(&queue, WorkQueue::shut_down_with_drain);
        assert!(queue.next(guard, Completion::Succeeded).is_none());
        assert_eq!(drain.join().unwrap(), Drained::Complete);
        is_at_rest(&queue);
    });
}

#[test]
fn shutting_down_interrupts_a_drain() {
    explore("drain interrupted", || {
        let queue = queue();
        queue.add(1).unwrap();
        let guard = queue.get().unwrap();
        let drain = with(&queue, WorkQueue::shut_down_with_drain);
        while !queue.shutting_down() {
            thread::yield_now();
        }
        queue.shut_down();
        // The key is still in work.
        assert_eq!(drain.join().unwrap(), Drained::Interrupted);
        guard.forget().unwrap();
        is_at_rest(&queue);
    });
}

#[test]
fn a_key_that_is_added_while_it_is_in_work_is_worked_on_again() {
    explore("key added while it is in work", || {
        let queue = queue();
        let version = Arc::new(AtomicUsize::new(0));
        let running = Arc::new(AtomicUsize::new(0));
        let (newest, seen) = channel();
        let workers = (0..2).map(|_| {
            let (version, running) = (Arc::clone(&version), Arc::clone(&running));
            let newest = newest.clone();
            with(&queue, move |queue| {
                let mut next = queue.get();
                while let Some(guard) = next {
                    assert_eq!(running.fetch_add(1, Ordering::SeqCst), 0, "it runs once");
                    if version.load(Ordering::SeqCst) == 2 {
                        newest.send(()).unwrap();
                    }
                    thread::sleep(Duration::ZERO);
                    running.fetch_sub(1, Ordering::SeqCst);
                    next = queue.next(guard, Completion::Succeeded);
                }
            })
        });
        let workers: Vec<_> = workers.collect();
        let producers = [(); 2].map(|()| {
            let version = Arc::clone(&version);
            with(&queue, move |queue| {
                version.fetch_add(1, Ordering::SeqCst);
                queue.add(7).unwrap();
            })
        });
        seen.recv().unwrap();
        join(producers);
        assert_eq!(queue.shut_down_with_drain(), Drained::Complete);
        join(workers);
        is_at_rest(&queue);
    });
}

#[test]
fn a_worker_completes_a_key_and_takes_the_next() {
    explore("workers that complete and take in one step", || {
        let queue = queue();
        let (sender, taken) = channel();
        let workers = (0..2).map(|_| {
            let sender = sender.clone();
            with(&queue, move |queue| {
                let first = queue.get().unwrap();
                sender.send(*first).unwrap();
                let second = queue.next(first, Completion::Succeeded).unwrap();
                sender.send(*second).unwrap();
            })
        });
        let mut threads: Vec<_> = workers.collect();
        threads.push(with(&queue, |queue| {
            queue.add_many([1, 2], |_| unreachable!());
        }));
        queue.add_after(4, SECOND).unwrap();
        queue.add(3).unwrap();
        assert_eq!(next(&taken), [1, 2, 3]);
        SystemClock::advance(SECOND);
        assert_eq!(next(&taken), [4]);
        join(threads);
        is_at_rest(&queue);
    });
}

#[test]
fn a_batch_leaves_the_rest_to_the_next() {
    explore("batches", || {
        let queue = queue();
        let (sender, taken) = channel();
        let batches = [(); 2].map(|()| {
            let sender = sender.clone();
            with(&queue, move |queue| {
                let batch = queue.get_many(2).unwrap();
                let keys: Vec<u32> = batch.keys().copied().collect();
                batch.done().unwrap();
                for key in keys {
                    sender.send(key).unwrap();
                }
            })
        });
        queue.add_many([1, 2, 3], |_| unreachable!());
        assert_eq!(next(&taken), [1, 2, 3]);
        join(batches);
        is_at_rest(&queue);
    });
}

#[test]
fn a_key_that_cannot_be_copied_is_left_to_another() {
    explore("panic under the lock", || {
        let queue: WorkQueue<Fragile> = WorkQueue::new();
        let (sender, taken) = channel();
        let getters = [(); 2].map(|()| {
            let (queue, taken) = (queue.clone(), sender.clone());
            thread::spawn(move || {
                let get = || queue.get().map(|guard| guard.forget().unwrap());
                let got = catch_unwind(AssertUnwindSafe(get)).map_err(drop);
                taken.send(got.is_ok()).unwrap();
            })
        });
        queue.add(Fragile::that_breaks_at(1)).unwrap();
        let got = [(); 2].map(|()| taken.recv().unwrap());
        assert!(got.contains(&true) && got.contains(&false));
        join(getters);
        is_at_rest(&queue);
    });
}

#[test]
fn a_key_that_cannot_be_copied_again_is_left_to_another() {
    explore(
        "panic under the lock of a worker that asks for more",
        || {
            let queue: WorkQueue<Fragile> = WorkQueue::new();
            queue.add(Fragile::that_breaks_at(2)).unwrap();
            let guard = queue.get().unwrap();
            queue.add(Fragile::that_breaks_at(2)).unwrap();
            let other = {
                let queue = queue.clone();
                thread::spawn(move || queue.get().unwrap().forget().map(drop).unwrap())
            };
            let step = || queue.next(guard, Completion::Succeeded).is_some();
            let _ = catch_unwind(AssertUnwindSafe(step)).unwrap_err();
            other.join().unwrap();
            is_at_rest(&queue);
        },
    );
}

/// Panics when it is copied for a certain time.
#[derive(Debug)]
struct Fragile {
    copies: Arc<AtomicUsize>,
    last: usize,
}

impl Fragile {
    fn that_breaks_at(last: usize) -> Self {
        Self {
            copies: Arc::default(),
            last,
        }
    }
}

impl Clone for Fragile {
    fn clone(&self) -> Self {
        if self.copies.fetch_add(1, Ordering::SeqCst) + 1 == self.last {
            resume_unwind(Box::new("broken"));
        }
        Self {
            copies: Arc::clone(&self.copies),
            last: self.last,
        }
    }
}

impl PartialEq for Fragile {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Fragile {}

impl Hash for Fragile {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

// All threads of a schedule share one thread of the system: while one unwinds, the others seem to.
#[test]
fn a_worker_that_panics_leaves_its_key_to_another() {
    explore("panic with a key in work", || {
        let queue = queue();
        let unlucky = with(&queue, |queue| {
            let work = || {
                let _guard = queue.get().unwrap();
                // Without the hook, which would take it for the end of the test.
                resume_unwind(Box::new("unlucky"));
            };
            let _ = catch_unwind(AssertUnwindSafe(work)).unwrap_err();
        });
        queue.add(1).unwrap();
        unlucky.join().unwrap();
        let (taken, threads) = getters(&queue, 2, 1);
        queue.add(2).unwrap();
        assert_eq!(next(&taken), [2]);
        SystemClock::advance(SECOND);
        assert_eq!(next(&taken), [1]);
        join(threads);
        is_at_rest(&queue);
    });
}
