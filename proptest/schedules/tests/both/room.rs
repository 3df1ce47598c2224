//! Calls that wait for room, in a queue for two keys.

use requeue_schedules::{Waits, full, is_at_rest, run, with};
use requeue_std::binding::AsShared;
use requeue_std::{Producer, Rejected};
use shuttle::thread::JoinHandle;

both! {
    explore:
        each_of_many_places_reaches_a_call,
        a_place_that_is_taken_by_another_is_waited_for_again,
        shutting_down_hands_the_keys_back;
    explore_all:
        a_call_that_waits_for_room_has_it_when_a_run_ends;
}

/// Threads that each add a key, from 3.
fn producers<Q: Waits>(queue: &Q, count: u32) -> Vec<JoinHandle<bool>> {
    let producer = |key| with(queue, move |queue| queue.add_wait(key).is_ok());
    (3..3 + count).map(producer).collect()
}

fn a_call_that_waits_for_room_has_it_when_a_run_ends<Q: Waits>() {
    let queue = full::<Q>();
    let producers = producers(&queue, 1);
    assert_eq!(run(&queue), 1);
    for producer in producers {
        assert!(producer.join().unwrap());
    }
    assert_eq!([run(&queue), run(&queue)], [2, 3]);
    is_at_rest(&queue);
}

fn each_of_many_places_reaches_a_call<Q: Waits>() {
    let queue = full::<Q>();
    let producers = producers(&queue, 3);
    let worker = with(&queue, |queue| [run(queue), run(queue)]);
    let here = [run(&queue), run(&queue), run(&queue)];
    let mut keys = [&here[..], &worker.join().unwrap()].concat();
    keys.sort_unstable();
    assert_eq!(keys, [1, 2, 3, 4, 5]);
    for producer in producers {
        assert!(producer.join().unwrap());
    }
    is_at_rest(&queue);
}

fn a_place_that_is_taken_by_another_is_waited_for_again<Q: Waits>() {
    let queue = full::<Q>();
    let producers = producers(&queue, 2);
    let thief = with(&queue, |queue| queue.add(9).is_ok());
    for _ in 0..4 {
        run(&queue);
    }
    for producer in producers {
        assert!(producer.join().unwrap());
    }
    if thief.join().unwrap() {
        run(&queue);
    }
    is_at_rest(&queue);
}

fn shutting_down_hands_the_keys_back<Q: Waits>() {
    let queue = full::<Q>();
    let producers = [3, 4].map(|key| with(&queue, move |queue| queue.add_wait(key)));
    queue.as_shared().shut_down();
    for (key, producer) in [3, 4].into_iter().zip(producers) {
        assert_eq!(producer.join().unwrap(), Err(Rejected::Closed(key)));
    }
    assert_eq!([run(&queue), run(&queue)], [1, 2]);
    is_at_rest(&queue);
}
