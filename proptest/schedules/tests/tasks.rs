//! Tasks that wait, under many schedules. shuttle polls them: each is a thread of its schedules,
//! and may be aborted between any two polls. That nobody sleeps for ever is checked throughout, and
//! as with threads a getter takes as many keys as it shall and ends by itself.
//!
//! Where time matters Tokio's own timers run, on a clock that stands still.
#![cfg(shuttle)]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that panics has failed"
)]

use std::future::{pending, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use futures_core::Stream;
use requeue_schedules::{explore, explore_all};
use requeue_tokio::core::{ItemExponentialFailure, Lock};
use requeue_tokio::{Completion, Drained, GetError, Guard, Queue, WorkQueue};
use shuttle::future::{JoinHandle, block_on, spawn_local};
use shuttle::sync::Mutex;
use shuttle::sync::mpsc::{Receiver, Sender, channel};
use shuttle::thread;
use tokio::runtime::{Builder, Runtime};

type Keys = WorkQueue<u32, ItemExponentialFailure>;

const SECOND: Duration = Duration::from_secs(1);

fn queue() -> Keys {
    let limiter = ItemExponentialFailure::new(SECOND, 100 * SECOND);
    WorkQueue::from(Queue::builder().limiter(limiter).build())
}

/// A task, which awaits nothing but the queue. Its waker takes the queue's lock: so whoever wakes
/// it must not hold that, and may be interrupted before, as before shuttle's own operations.
fn task<T: 'static>(queue: &Keys, work: impl AsyncFnOnce(&Keys) -> T + 'static) -> JoinHandle<T> {
    let (queue, waking) = (queue.clone(), queue.clone());
    let mut work = Box::pin(async move { work(&queue).await });
    spawn_local(poll_fn(move |context| {
        let (queue, task) = (waking.clone(), context.waker().clone());
        let waker = Waker::from(Arc::new(Curious { queue, task }));
        work.as_mut().poll(&mut Context::from_waker(&waker))
    }))
}

struct Curious {
    queue: Keys,
    task: Waker,
}

impl Wake for Curious {
    fn wake(self: Arc<Self>) {
        self.queue.lock().with(|state| state.asleep());
        self.task.wake_by_ref();
    }
}

/// Lets another come first.
fn interrupt() {
    thread::sleep(Duration::ZERO);
}

fn getter(queue: &Keys, count: usize, taken: &Sender<u32>) -> JoinHandle<()> {
    let taken = taken.clone();
    task(queue, async move |queue| {
        for _ in 0..count {
            if let Some(guard) = queue.get().await {
                taken.send(finish(guard)).unwrap();
            }
        }
    })
}

fn getters(queue: &Keys, getters: usize, count: usize) -> (Receiver<u32>, Vec<JoinHandle<()>>) {
    let (sender, receiver) = channel();
    let tasks = (0..getters).map(|_| getter(queue, count, &sender));
    (receiver, tasks.collect())
}

/// Tasks that take a key each, say which, and keep it in work until the gate opens: completing it
/// would wake others as well.
fn holders(
    queue: &Keys,
    count: usize,
    gate: &Arc<Mutex<()>>,
) -> (Receiver<u32>, Vec<JoinHandle<()>>) {
    let (sender, receiver) = channel();
    let holder = |_| {
        let (taken, gate) = (sender.clone(), Arc::clone(gate));
        task(queue, async move |queue| {
            let guard = queue.get().await.unwrap();
            taken.send(*guard).unwrap();
            drop(gate.lock().unwrap());
            finish(guard);
        })
    };
    (receiver, (0..count).map(holder).collect())
}

fn finish(guard: Guard<u32, ItemExponentialFailure>) -> u32 {
    let key = *guard;
    guard.forget().unwrap();
    key
}

/// A producer is a thread: adding a key never waits.
fn with(queue: &Keys, work: impl FnOnce(&Keys) + Send + 'static) -> thread::JoinHandle<()> {
    let queue = queue.clone();
    thread::spawn(move || work(&queue))
}

fn join<T>(tasks: impl IntoIterator<Item = JoinHandle<T>>) {
    for task in tasks {
        block_on(task).unwrap();
    }
}

fn next<const N: usize>(taken: &Receiver<u32>) -> [u32; N] {
    let mut keys = std::array::from_fn(|_| taken.recv().unwrap());
    keys.sort_unstable();
    keys
}

/// Nothing is left, and nobody counts as asleep who is not.
#[track_caller]
fn is_at_rest(queue: &Keys) {
    queue.lock().with(|state| {
        state.assert_valid();
        assert_eq!((state.held_len(), state.asleep()), (0, 0));
    });
}

/// Where timers run. All threads of a schedule share one thread of the system, and so this.
fn stopped_clock() -> Runtime {
    let mut builder = Builder::new_current_thread();
    builder.enable_time().start_paused(true).build().unwrap()
}

fn advance(runtime: &Runtime, by: Duration) {
    interrupt();
    runtime.block_on(tokio::time::advance(by));
}

#[test]
fn one_getter_and_one_producer() {
    explore_all("one task, one producer", || {
        let queue = queue();
        let (taken, tasks) = getters(&queue, 1, 1);
        queue.add(7).unwrap();
        assert_eq!(next(&taken), [7]);
        join(tasks);
        is_at_rest(&queue);
    });
}

#[test]
fn every_key_of_several_producers_is_handed_out_once() {
    explore("three tasks, two producers", || {
        let queue = queue();
        let (taken, tasks) = getters(&queue, 3, 2);
        let producers = [[1, 2, 3], [4, 5, 6]].map(|keys| {
            with(&queue, move |queue| {
                for key in keys {
                    queue.add(key).unwrap();
                }
            })
        });
        assert_eq!(next(&taken), [1, 2, 3, 4, 5, 6]);
        join(tasks);
        for producer in producers {
            producer.join().unwrap();
        }
        is_at_rest(&queue);
    });
}

#[test]
fn a_getter_that_leaves_with_a_key_wakes_the_next() {
    explore("baton: three tasks, two keys at once", || {
        let (queue, gate) = (queue(), Arc::default());
        let closed = Mutex::lock(&gate).unwrap();
        let (taken, tasks) = holders(&queue, 3, &gate);
        queue.add_many([1, 2], |_| unreachable!());
        // Both are taken before anything else could wake anybody.
        assert_eq!(next(&taken), [1, 2]);
        queue.add(3).unwrap();
        assert_eq!(next(&taken), [3]);
        drop(closed);
        join(tasks);
        is_at_rest(&queue);
    });
}

#[test]
fn a_getter_that_is_dropped_passes_its_wake_on() {
    explore("task aborted while a key is added", || {
        let queue = queue();
        let (taken, mut tasks) = getters(&queue, 2, 1);
        let aborted = tasks.pop().unwrap();
        let producer = with(&queue, |queue| {
            queue.add(1).unwrap();
        });
        aborted.abort();
        assert_eq!(next(&taken), [1]);
        // Whichever of the two is left ends by itself.
        if block_on(aborted).is_ok() {
            queue.add(2).unwrap();
            assert_eq!(next(&taken), [2]);
        }
        join(tasks);
        producer.join().unwrap();
        is_at_rest(&queue);
    });
}

#[test]
fn a_key_that_comes_as_a_getter_is_dropped_is_not_lost() {
    explore_all("one task aborted while a key is added", || {
        let queue = queue();
        let aborted = task(&queue, async |queue| queue.get().await.map(finish));
        let producer = with(&queue, |queue| {
            queue.add(1).unwrap();
        });
        aborted.abort();
        producer.join().unwrap();
        match block_on(aborted) {
            Ok(key) => assert_eq!(key, Some(1)),
            Err(_) => assert_eq!(queue.try_get().map(finish), Some(1)),
        }
        is_at_rest(&queue);
    });
}

#[test]
fn getters_that_are_dropped_pass_all_their_wakes_on() {
    explore("two of four tasks aborted, two keys at once", || {
        let queue = queue();
        let (taken, mut tasks) = getters(&queue, 4, 1);
        let aborted = tasks.split_off(2);
        let producer = with(&queue, |queue| {
            queue.add_many([1, 2], |_| unreachable!());
        });
        for task in &aborted {
            task.abort();
        }
        assert_eq!(next(&taken), [1, 2]);
        producer.join().unwrap();
        for task in aborted {
            let _ = block_on(task);
        }
        // Of the getters that are left, some have had nothing.
        queue.shut_down();
        join(tasks);
        is_at_rest(&queue);
    });
}

#[test]
fn a_stream_that_is_dropped_passes_its_wake_on() {
    explore("stream aborted while a key is added", || {
        let queue = queue();
        let (sender, taken) = channel();
        let first = getter(&queue, 1, &sender);
        let stream = task(&queue, async move |queue| {
            let mut guards = queue.guards();
            let next = poll_fn(|context| Pin::new(&mut guards).poll_next(context));
            sender.send(finish(next.await.unwrap())).unwrap();
        });
        let producer = with(&queue, |queue| {
            queue.add(1).unwrap();
        });
        stream.abort();
        assert_eq!(next(&taken), [1]);
        if block_on(stream).is_ok() {
            queue.add(2).unwrap();
            assert_eq!(next(&taken), [2]);
        }
        join([first]);
        producer.join().unwrap();
        is_at_rest(&queue);
    });
}

#[test]
fn a_getter_that_moves_to_another_task_is_woken_there() {
    explore("future moved to another task while a key is added", || {
        let queue = queue();
        let producer = with(&queue, |queue| {
            queue.add(1).unwrap();
        });
        let mut get = Box::pin({
            let queue = queue.clone();
            async move { queue.get().await.map(finish) }
        });
        // Polled once here, and this waker stands in line.
        let early = block_on(poll_fn(|context| Poll::Ready(get.as_mut().poll(context))));
        let moved = task(&queue, async move |_| match early {
            Poll::Ready(key) => key,
            Poll::Pending => get.await,
        });
        assert_eq!(block_on(moved).unwrap(), Some(1));
        producer.join().unwrap();
        is_at_rest(&queue);
    });
}

#[test]
fn a_getter_that_is_polled_for_nothing_keeps_its_place() {
    explore("task polled for nothing while keys are added", || {
        let queue = queue();
        let (sender, taken) = channel();
        let first = getter(&queue, 1, &sender);
        let polled = task(&queue, async move |queue| {
            let mut get = pin!(queue.get());
            let mut polls = 0;
            let guard = poll_fn(|context| {
                polls += 1;
                if polls < 3 {
                    context.waker().wake_by_ref();
                }
                get.as_mut().poll(context)
            });
            sender.send(finish(guard.await.unwrap())).unwrap();
        });
        queue.add(1).unwrap();
        queue.add(2).unwrap();
        assert_eq!(next(&taken), [1, 2]);
        join([first, polled]);
        is_at_rest(&queue);
    });
}

#[test]
fn a_key_whose_next_is_dropped_is_completed() {
    explore("next dropped while its key is added", || {
        for polls in 0..=1 {
            let queue = queue();
            queue.add(1).unwrap();
            let guard = queue.try_get().unwrap();
            let (taken, tasks) = getters(&queue, 1, 1);
            let producer = with(&queue, |queue| {
                queue.add(1).unwrap();
            });
            let mut next_key = Box::pin(queue.next(guard, Completion::Succeeded));
            for _ in 0..polls {
                let once = poll_fn(|context| Poll::Ready(next_key.as_mut().poll(context)));
                if let Poll::Ready(guard) = block_on(once) {
                    finish(guard.unwrap());
                    queue.add(1).unwrap();
                }
            }
            interrupt();
            drop(next_key);
            assert_eq!(next(&taken), [1]);
            producer.join().unwrap();
            join(tasks);
            is_at_rest(&queue);
        }
    });
}

#[test]
fn the_clock_is_watched_when_its_keeper_leaves_with_a_key() {
    explore("keeper task leaves with another key", || {
        let runtime = stopped_clock();
        let _entered = runtime.enter();
        let (queue, gate) = (queue(), Arc::default());
        let closed = Mutex::lock(&gate).unwrap();
        let (taken, tasks) = holders(&queue, 2, &gate);
        let producer = with(&queue, |queue| {
            queue.add_after(1, SECOND).unwrap();
            queue.add(2).unwrap();
        });
        assert_eq!(next(&taken), [2]);
        producer.join().unwrap();
        advance(&runtime, SECOND);
        assert_eq!(next(&taken), [1]);
        drop(closed);
        join(tasks);
        is_at_rest(&queue);
    });
}

#[test]
fn the_clock_is_watched_when_its_keeper_is_dropped() {
    explore("keeper task aborted", || {
        let runtime = stopped_clock();
        let _entered = runtime.enter();
        let queue = queue();
        let (taken, mut tasks) = getters(&queue, 3, 1);
        let producer = with(&queue, |queue| {
            queue.add_after(1, SECOND).unwrap();
        });
        let aborted = tasks.split_off(1);
        for task in &aborted {
            task.abort();
        }
        producer.join().unwrap();
        advance(&runtime, SECOND);
        assert_eq!(next(&taken), [1]);
        queue.shut_down();
        join(tasks);
        for task in aborted {
            let _ = block_on(task);
        }
        is_at_rest(&queue);
    });
}

#[test]
fn a_deadline_that_comes_before_the_keepers_is_watched() {
    explore("deadline before the keeper task's", || {
        let runtime = stopped_clock();
        let _entered = runtime.enter();
        let queue = queue();
        let (taken, tasks) = getters(&queue, 2, 1);
        queue.add_after(1, 2 * SECOND).unwrap();
        let producer = with(&queue, |queue| {
            queue.add_after(2, SECOND).unwrap();
        });
        producer.join().unwrap();
        advance(&runtime, SECOND);
        assert_eq!(next(&taken), [2]);
        advance(&runtime, SECOND);
        assert_eq!(next(&taken), [1]);
        join(tasks);
        is_at_rest(&queue);
    });
}

#[test]
fn a_getter_that_gives_up_does_not_take_the_wake_of_another() {
    explore("timeout of a task while a key is added", || {
        let runtime = stopped_clock();
        let _entered = runtime.enter();
        let queue = queue();
        let deadline = tokio::time::Instant::now() + SECOND;
        let hasty = task(&queue, async move |queue| {
            queue.get_deadline(deadline).await.map(finish)
        });
        let (taken, tasks) = getters(&queue, 1, 1);
        let producer = with(&queue, |queue| {
            queue.add(1).unwrap();
        });
        advance(&runtime, SECOND);
        match block_on(hasty).unwrap() {
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
        join(tasks);
        producer.join().unwrap();
        is_at_rest(&queue);
    });
}

#[test]
fn a_key_whose_task_is_aborted_runs_again() {
    explore("task aborted with a key in work", || {
        let runtime = stopped_clock();
        let _entered = runtime.enter();
        let queue = queue();
        let stuck = task(&queue, async |queue| {
            let _guard = queue.get().await.unwrap();
            pending::<()>().await;
        });
        let producer = with(&queue, |queue| {
            queue.add(1).unwrap();
        });
        stuck.abort();
        let (taken, tasks) = getters(&queue, 2, 1);
        producer.join().unwrap();
        assert!(block_on(stuck).is_err());
        queue.add(2).unwrap();
        // It was aborted with the key, which has failed, or before it had it.
        let first = taken.recv().unwrap();
        advance(&runtime, SECOND);
        let second = taken.recv().unwrap();
        assert_eq!(first + second, 3);
        join(tasks);
        is_at_rest(&queue);
    });
}

#[test]
fn whoever_waits_for_the_drain_is_told_when_it_is_over() {
    explore("four tasks wait for the drain, one is aborted", || {
        let queue = queue();
        queue.add_many([1, 2], |_| unreachable!());
        let finished = Arc::new(AtomicUsize::new(0));
        let workers = [(); 2].map(|()| {
            let finished = Arc::clone(&finished);
            task(&queue, async move |queue| {
                while let Some(guard) = queue.get().await {
                    finished.fetch_add(1, Ordering::SeqCst);
                    finish(guard);
                }
            })
        });
        let aborted = task(&queue, async |queue| queue.drained().await);
        let drains = [(); 2].map(|()| {
            let finished = Arc::clone(&finished);
            task(&queue, async move |queue| {
                assert_eq!(queue.shut_down_with_drain().await, Drained::Complete);
                assert_eq!(finished.load(Ordering::SeqCst), 2);
            })
        });
        aborted.abort();
        block_on(queue.drained());
        assert_eq!(finished.load(Ordering::SeqCst), 2);
        join(workers);
        join(drains);
        let _ = block_on(aborted);
        is_at_rest(&queue);
    });
}

#[test]
fn a_drain_ends_with_a_worker_that_asks_for_the_next_key() {
    explore_all("drain while the last task asks for more", || {
        let queue = queue();
        queue.add(1).unwrap();
        let guard = queue.try_get().unwrap();
        queue.shut_down();
        let drain = task(&queue, async |queue| queue.shut_down_with_drain().await);
        assert!(block_on(queue.next(guard, Completion::Succeeded)).is_none());
        assert_eq!(block_on(drain).unwrap(), Drained::Complete);
        is_at_rest(&queue);
    });
}

#[test]
fn shutting_down_interrupts_a_drain() {
    explore("drain of a task interrupted", || {
        let queue = queue();
        queue.add(1).unwrap();
        let guard = queue.try_get().unwrap();
        let drain = task(&queue, async |queue| queue.shut_down_with_drain().await);
        while !queue.shutting_down() {
            thread::yield_now();
        }
        queue.shut_down();
        // The key is still in work.
        assert_eq!(block_on(drain).unwrap(), Drained::Interrupted);
        finish(guard);
        is_at_rest(&queue);
    });
}
