//! Calls that wait for room, in a queue for two keys.

use requeue_schedules::{Scene, Waits, full, run, scenarios, with};
use requeue_std::binding::AsShared;
use requeue_std::{Producer, Rejected};
use shuttle::thread::JoinHandle;

scenarios! {
    explore:
        each_of_many_places_reaches_a_call,
        a_place_that_is_taken_by_another_is_waited_for_again,
        shutting_down_hands_the_keys_back;
    explore_all:
        a_call_that_waits_for_room_has_it_when_a_run_ends;
}

/// A queue that is full, and threads that each add a key, from 3.
fn producers<Q: Waits>(count: u32) -> (Q::Bounded, Vec<JoinHandle<bool>>) {
    let queue = full::<Q>();
    let producer = |key| with(&queue, move |queue| queue.add_wait(key).is_ok());
    let producers = (3..3 + count).map(producer).collect();
    (queue, producers)
}

fn all_have_added<Q: Waits>(queue: Q, producers: Vec<JoinHandle<bool>>) {
    for producer in producers {
        assert!(producer.join().unwrap());
    }
    Scene::new(queue).end();
}

fn a_call_that_waits_for_room_has_it_when_a_run_ends<Q: Waits>(_: &mut Scene<Q>) {
    let (queue, producers) = producers::<Q>(1);
    assert_eq!(run(&queue), 1);
    for producer in producers {
        assert!(producer.join().unwrap());
    }
    assert_eq!([run(&queue), run(&queue)], [2, 3]);
    Scene::new(queue).end();
}

fn each_of_many_places_reaches_a_call<Q: Waits>(_: &mut Scene<Q>) {
    let (queue, producers) = producers::<Q>(3);
    let worker = with(&queue, |queue| [run(queue), run(queue)]);
    let here = [run(&queue), run(&queue), run(&queue)];
    let mut keys = [&here[..], &worker.join().unwrap()].concat();
    keys.sort_unstable();
    assert_eq!(keys, [1, 2, 3, 4, 5]);
    all_have_added(queue, producers);
}

fn a_place_that_is_taken_by_another_is_waited_for_again<Q: Waits>(_: &mut Scene<Q>) {
    let (queue, producers) = producers::<Q>(2);
    let thief = with(&queue, |queue| queue.add(9).is_ok());
    for _ in 0..4 {
        run(&queue);
    }
    if thief.join().unwrap() {
        run(&queue);
    }
    all_have_added(queue, producers);
}

fn shutting_down_hands_the_keys_back<Q: Waits>(_: &mut Scene<Q>) {
    let queue = full::<Q>();
    let producers = [3, 4].map(|key| with(&queue, move |queue| queue.add_wait(key)));
    queue.as_shared().shut_down();
    for (key, producer) in [3, 4].into_iter().zip(producers) {
        assert_eq!(producer.join().unwrap(), Err(Rejected::Closed(key)));
    }
    assert_eq!([run(&queue), run(&queue)], [1, 2]);
    Scene::new(queue).end();
}
