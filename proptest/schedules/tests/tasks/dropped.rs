//! Futures that are dropped while they wait, polled for nothing, or moved to another task.

use std::future::{pending, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use futures_core::Stream;
use requeue_schedules::{SECOND, Tasks, Waits, full, interrupt, run, scenarios, with};
use requeue_tokio::Action;
use shuttle::future::{JoinHandle, block_on, spawn_local};

use crate::{Scene, finish, getters, join, task};

scenarios! {
    tasks, Tasks,
    explore:
        a_getter_that_is_dropped_passes_its_wake_on,
        getters_that_are_dropped_pass_all_their_wakes_on,
        a_stream_that_is_dropped_passes_its_wake_on,
        a_getter_that_moves_to_another_task_is_woken_there,
        a_getter_that_is_polled_for_nothing_keeps_its_place,
        a_key_whose_next_is_dropped_is_completed,
        the_clock_is_watched_when_its_owner_is_dropped,
        a_key_whose_task_is_aborted_runs_again,
        a_wait_for_the_drain_ends_though_another_is_dropped,
        a_wait_for_room_that_is_dropped_passes_the_place_on,
        waits_for_a_state_that_are_dropped_harm_no_other;
    explore_all:
        a_key_that_comes_as_a_getter_is_dropped_is_not_lost;
}

/// The first key is taken. If the dropped task took it, the other takes the next one.
fn other_takes_the_next(scene: &Scene, dropped: JoinHandle<()>) {
    if block_on(dropped).is_ok() {
        scene.add([2]);
        scene.takes([2]);
    }
}

fn a_getter_that_is_dropped_passes_its_wake_on(scene: &mut Scene) {
    let mut tasks = getters(scene, 2);
    let aborted = tasks.pop().unwrap();
    scene.producer([1]);
    aborted.abort();
    scene.takes([1]);
    other_takes_the_next(scene, aborted);
    join(tasks);
}

fn a_key_that_comes_as_a_getter_is_dropped_is_not_lost(scene: &mut Scene) {
    let aborted = task(scene, async |queue| queue.get().await.map(finish));
    scene.producer([1]);
    aborted.abort();
    scene.others_end();
    match block_on(aborted) {
        Ok(key) => assert_eq!(key, Ok(1)),
        Err(_) => assert_eq!(scene.queue.try_get().map(finish), Some(1)),
    }
}

fn getters_that_are_dropped_pass_all_their_wakes_on(scene: &mut Scene) {
    let mut tasks = getters(scene, 4);
    let aborted = tasks.split_off(2);
    scene.also(|queue| assert!(queue.add_many([1, 2]).rejected.is_empty()));
    for task in &aborted {
        task.abort();
    }
    scene.takes([1, 2]);
    scene.others_end();
    for task in aborted {
        let _ = block_on(task);
    }
    // Of the getters that are left, some have had nothing.
    scene.queue.shut_down();
    join(tasks);
}

fn a_stream_that_is_dropped_passes_its_wake_on(scene: &mut Scene) {
    let first = getters(scene, 1);
    let taken = scene.teller();
    let stream = task(scene, async move |queue| {
        let mut guards = queue.guards();
        let next = poll_fn(|context| Pin::new(&mut guards).poll_next(context));
        taken.send(finish(next.await.unwrap())).unwrap();
    });
    scene.producer([1]);
    stream.abort();
    scene.takes([1]);
    other_takes_the_next(scene, stream);
    join(first);
}

fn a_getter_that_moves_to_another_task_is_woken_there(scene: &mut Scene) {
    scene.producer([1]);
    let queue = scene.queue.clone();
    let mut get = Box::pin(async move { queue.get().await.map(finish) });
    // Polled once here, and this waker stands in line.
    let early = block_on(poll_fn(|context| Poll::Ready(get.as_mut().poll(context))));
    let moved = task(scene, async move |_| match early {
        Poll::Ready(key) => key,
        Poll::Pending => get.await,
    });
    assert_eq!(block_on(moved).unwrap(), Ok(1));
}

fn a_getter_that_is_polled_for_nothing_keeps_its_place(scene: &mut Scene) {
    let first = getters(scene, 1);
    let taken = scene.teller();
    let polled = task(scene, async move |queue| {
        let mut get = pin!(queue.get());
        let mut polls = 0;
        let guard = poll_fn(|context| {
            polls += 1;
            if polls < 3 {
                context.waker().wake_by_ref();
            }
            get.as_mut().poll(context)
        });
        taken.send(finish(guard.await.unwrap())).unwrap();
    });
    scene.add([1]);
    scene.add([2]);
    scene.takes([1, 2]);
    join(first);
    join([polled]);
}

fn a_key_whose_next_is_dropped_is_completed(scene: &mut Scene) {
    let queue = scene.queue.clone();
    for polls in 0..=1 {
        scene.add([1]);
        let guard = queue.try_get().unwrap();
        let tasks = getters(scene, 1);
        scene.producer([1]);
        let mut next_key = Box::pin(queue.next(guard, Action::Success));
        for _ in 0..polls {
            let once = poll_fn(|context| Poll::Ready(next_key.as_mut().poll(context)));
            if let Poll::Ready(guard) = block_on(once) {
                finish(guard.unwrap());
                scene.add([1]);
            }
        }
        interrupt();
        drop(next_key);
        scene.takes([1]);
        scene.others_end();
        join(tasks);
    }
}

fn the_clock_is_watched_when_its_owner_is_dropped(scene: &mut Scene) {
    let mut tasks = getters(scene, 3);
    scene.also(|queue| _ = queue.add_after(1, SECOND).unwrap());
    let aborted = tasks.split_off(1);
    for task in &aborted {
        task.abort();
    }
    scene.others_end();
    Tasks::advance(SECOND);
    scene.takes([1]);
    scene.queue.shut_down();
    join(tasks);
    for task in aborted {
        let _ = block_on(task);
    }
}

fn a_key_whose_task_is_aborted_runs_again(scene: &mut Scene) {
    let stuck = task(scene, async |queue| {
        let _guard = queue.get().await.unwrap();
        pending::<()>().await;
    });
    scene.producer([1]);
    stuck.abort();
    let tasks = getters(scene, 2);
    scene.others_end();
    assert!(block_on(stuck).is_err());
    scene.add([2]);
    // It was aborted with the key, which has failed, or before it had it.
    let [first] = scene.taken();
    Tasks::advance(SECOND);
    let [second] = scene.taken();
    assert_eq!(first + second, 3);
    join(tasks);
}

fn a_wait_for_the_drain_ends_though_another_is_dropped(scene: &mut Scene) {
    scene.add([1, 2]);
    let finished = Arc::new(AtomicUsize::new(0));
    let workers = [(); 2].map(|()| {
        let finished = Arc::clone(&finished);
        task(scene, async move |queue| {
            while let Ok(guard) = queue.get().await {
                finished.fetch_add(1, Ordering::SeqCst);
                finish(guard);
            }
        })
    });
    let aborted = task(scene, async |queue| queue.wait_drained().await);
    let drains = [(); 2].map(|()| {
        let finished = Arc::clone(&finished);
        task(scene, async move |queue| {
            assert_eq!(queue.drain().await, Ok(()));
            assert_eq!(finished.load(Ordering::SeqCst), 2);
        })
    });
    aborted.abort();
    block_on(scene.queue.wait_drained());
    assert_eq!(finished.load(Ordering::SeqCst), 2);
    join(workers);
    join(drains);
    let _ = block_on(aborted);
}

fn a_wait_for_room_that_is_dropped_passes_the_place_on(_: &mut Scene) {
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
    Scene::new(queue).end();
}

fn waits_for_a_state_that_are_dropped_harm_no_other(scene: &mut Scene) {
    scene.add([1]);
    let guard = scene.queue.try_get().unwrap();
    let wait = || task(scene, async |queue| queue.wait_idle().await);
    let [aborted, patient] = [wait(), wait()];
    scene.also(move |_| _ = guard.success());
    aborted.abort();
    block_on(patient).unwrap();
    let _ = block_on(aborted);
}
