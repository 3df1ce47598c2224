//! Futures that are dropped while they wait, polled for nothing, or moved to another task.

use std::future::{pending, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use futures_core::Stream;
use requeue_schedules::{
    SECOND, Tasks, Waits, explore, explore_all, full, interrupt, is_at_rest, next, run, with,
};
use requeue_tokio::Action;
use shuttle::future::{block_on, spawn_local};
use shuttle::sync::mpsc::channel;

use crate::{finish, getter, getters, join, task};

#[test]
fn a_getter_that_is_dropped_passes_its_wake_on() {
    explore::<Tasks>("task aborted while a key is added", || {
        let queue = Tasks::new();
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
    explore_all::<Tasks>("one task aborted while a key is added", || {
        let queue = Tasks::new();
        let aborted = task(&queue, async |queue| queue.get().await.map(finish));
        let producer = with(&queue, |queue| {
            queue.add(1).unwrap();
        });
        aborted.abort();
        producer.join().unwrap();
        match block_on(aborted) {
            Ok(key) => assert_eq!(key, Ok(1)),
            Err(_) => assert_eq!(queue.try_get().map(finish), Some(1)),
        }
        is_at_rest(&queue);
    });
}

#[test]
fn getters_that_are_dropped_pass_all_their_wakes_on() {
    explore::<Tasks>("two of four tasks aborted, two keys at once", || {
        let queue = Tasks::new();
        let (taken, mut tasks) = getters(&queue, 4, 1);
        let aborted = tasks.split_off(2);
        let producer = with(&queue, |queue| {
            assert!(queue.add_many([1, 2]).rejected.is_empty());
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
    explore::<Tasks>("stream aborted while a key is added", || {
        let queue = Tasks::new();
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
    explore::<Tasks>("future moved to another task while a key is added", || {
        let queue = Tasks::new();
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
        assert_eq!(block_on(moved).unwrap(), Ok(1));
        producer.join().unwrap();
        is_at_rest(&queue);
    });
}

#[test]
fn a_getter_that_is_polled_for_nothing_keeps_its_place() {
    explore::<Tasks>("task polled for nothing while keys are added", || {
        let queue = Tasks::new();
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
    explore::<Tasks>("next dropped while its key is added", || {
        for polls in 0..=1 {
            let queue = Tasks::new();
            queue.add(1).unwrap();
            let guard = queue.try_get().unwrap();
            let (taken, tasks) = getters(&queue, 1, 1);
            let producer = with(&queue, |queue| {
                queue.add(1).unwrap();
            });
            let mut next_key = Box::pin(queue.next(guard, Action::Success));
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
fn the_clock_is_watched_when_its_owner_is_dropped() {
    explore::<Tasks>("timer owner aborted", || {
        let queue = Tasks::new();
        let (taken, mut tasks) = getters(&queue, 3, 1);
        let producer = with(&queue, |queue| {
            queue.add_after(1, SECOND).unwrap();
        });
        let aborted = tasks.split_off(1);
        for task in &aborted {
            task.abort();
        }
        producer.join().unwrap();
        Tasks::advance(SECOND);
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
fn a_key_whose_task_is_aborted_runs_again() {
    explore::<Tasks>("task aborted with an active key", || {
        let queue = Tasks::new();
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
        Tasks::advance(SECOND);
        let second = taken.recv().unwrap();
        assert_eq!(first + second, 3);
        join(tasks);
        is_at_rest(&queue);
    });
}

#[test]
fn a_wait_for_the_drain_ends_though_another_is_dropped() {
    explore::<Tasks>("four tasks wait for the drain, one is aborted", || {
        let queue = Tasks::new();
        assert!(queue.add_many([1, 2]).rejected.is_empty());
        let finished = Arc::new(AtomicUsize::new(0));
        let workers = [(); 2].map(|()| {
            let finished = Arc::clone(&finished);
            task(&queue, async move |queue| {
                while let Ok(guard) = queue.get().await {
                    finished.fetch_add(1, Ordering::SeqCst);
                    finish(guard);
                }
            })
        });
        let aborted = task(&queue, async |queue| queue.wait_drained().await);
        let drains = [(); 2].map(|()| {
            let finished = Arc::clone(&finished);
            task(&queue, async move |queue| {
                assert_eq!(queue.drain().await, Ok(()));
                assert_eq!(finished.load(Ordering::SeqCst), 2);
            })
        });
        aborted.abort();
        block_on(queue.wait_drained());
        assert_eq!(finished.load(Ordering::SeqCst), 2);
        join(workers);
        join(drains);
        let _ = block_on(aborted);
        is_at_rest(&queue);
    });
}

#[test]
fn a_wait_for_room_that_is_dropped_passes_the_place_on() {
    explore::<Tasks>(
        "one of two tasks that wait for room aborted as a run ends",
        || {
            let queue = full::<Tasks>();
            let [aborted, patient] = [3, 4].map(|key| {
                let queue = queue.clone();
                spawn_local(async move { queue.add_wait(key).await.is_ok() })
            });
            let worker = with(&queue, run);
            aborted.abort();
            // Nothing else makes room before the second has it, unless the first was served.
            worker.join().unwrap();
            if block_on(aborted).is_ok() {
                run(&queue);
            }
            assert!(block_on(patient).unwrap());
            queue.clear();
            is_at_rest(&queue);
        },
    );
}

#[test]
fn waits_for_a_state_that_are_dropped_harm_no_other() {
    explore::<Tasks>("one of two tasks that wait until idle aborted", || {
        let queue = Tasks::new();
        queue.add(1).unwrap();
        let guard = queue.try_get().unwrap();
        let [aborted, patient] =
            [(); 2].map(|()| task(&queue, async |queue| queue.wait_idle().await));
        let worker = with(&queue, move |_| guard.success());
        aborted.abort();
        block_on(patient).unwrap();
        let _ = block_on(aborted);
        worker.join().unwrap();
        is_at_rest(&queue);
    });
}
