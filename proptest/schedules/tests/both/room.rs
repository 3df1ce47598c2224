//! Calls that wait for room, in a queue for two keys.

use requeue_schedules::{Bounded, Waits};
use requeue_std::Rejected;
use shuttle::thread::{self, JoinHandle};

both! {
    explore:
        each_of_many_places_reaches_a_call,
        a_place_that_is_taken_by_another_is_waited_for_again,
        shutting_down_hands_the_keys_back;
    explore_all:
        a_call_that_waits_for_room_has_it_when_a_run_ends;
}

fn with<B: Bounded, T: Send + 'static>(
    queue: &B,
    work: impl FnOnce(&B) -> T + Send + 'static,
) -> JoinHandle<T> {
    let queue = queue.clone();
    thread::spawn(move || work(&queue))
}

/// Threads that each add a key, from 3.
fn producers<B: Bounded>(queue: &B, count: u32) -> Vec<JoinHandle<bool>> {
    let producer = |key| with(queue, move |queue| queue.wait_and_add(key).is_ok());
    (3..3 + count).map(producer).collect()
}

fn a_call_that_waits_for_room_has_it_when_a_run_ends<Q: Waits>() {
    let queue = Q::Bounded::full();
    let producers = producers(&queue, 1);
    assert_eq!(queue.run(), 1);
    for producer in producers {
        assert!(producer.join().unwrap());
    }
    assert_eq!([queue.run(), queue.run()], [2, 3]);
    queue.is_at_rest();
}

fn each_of_many_places_reaches_a_call<Q: Waits>() {
    let queue = Q::Bounded::full();
    let producers = producers(&queue, 3);
    let worker = with(&queue, |queue| [queue.run(), queue.run()]);
    let here = [queue.run(), queue.run(), queue.run()];
    let mut keys = [&here[..], &worker.join().unwrap()].concat();
    keys.sort_unstable();
    assert_eq!(keys, [1, 2, 3, 4, 5]);
    for producer in producers {
        assert!(producer.join().unwrap());
    }
    queue.is_at_rest();
}

fn a_place_that_is_taken_by_another_is_waited_for_again<Q: Waits>() {
    let queue = Q::Bounded::full();
    let producers = producers(&queue, 2);
    let thief = with(&queue, |queue| queue.add(9));
    for _ in 0..4 {
        queue.run();
    }
    for producer in producers {
        assert!(producer.join().unwrap());
    }
    if thief.join().unwrap() {
        queue.run();
    }
    queue.is_at_rest();
}

fn shutting_down_hands_the_keys_back<Q: Waits>() {
    let queue = Q::Bounded::full();
    let producers = [3, 4].map(|key| with(&queue, move |queue| queue.wait_and_add(key)));
    queue.shut_down();
    for (key, producer) in [3, 4].into_iter().zip(producers) {
        assert_eq!(producer.join().unwrap(), Err(Rejected::Closed(key)));
    }
    assert_eq!([queue.run(), queue.run()], [1, 2]);
    queue.is_at_rest();
}
