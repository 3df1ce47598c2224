//! Getters that wait for a key.
//!
//! Whatever releases all of them at once, as shutting down does, would also repair a wake that was
//! lost: so a getter takes a fixed number of keys and ends by itself.

use std::sync::Arc;

use requeue_schedules::{SECOND, Waits, finish, getters, holders, is_at_rest, join, next, with};
use requeue_std::WaitError;
use shuttle::sync::Mutex;

both! {
    explore:
        two_getters_and_two_keys,
        every_key_of_several_producers_is_handed_out_once,
        a_getter_that_leaves_with_a_key_wakes_the_next,
        a_getter_that_gives_up_does_not_take_the_wake_of_another;
    explore_all:
        one_getter_and_one_producer,
        a_key_that_comes_as_a_getter_gives_up_is_not_lost;
}

fn one_getter_and_one_producer<Q: Waits>() {
    let queue = Q::new();
    let (taken, threads) = getters(&queue, 1, 1);
    queue.add(7).unwrap();
    assert_eq!(next(&taken), [7]);
    join(threads);
    is_at_rest(&queue);
}

fn two_getters_and_two_keys<Q: Waits>() {
    let queue = Q::new();
    let (taken, threads) = getters(&queue, 2, 1);
    queue.as_shared().add_many([1, 2], |_| unreachable!());
    assert_eq!(next(&taken), [1, 2]);
    join(threads);
    is_at_rest(&queue);
}

fn every_key_of_several_producers_is_handed_out_once<Q: Waits>() {
    let queue = Q::new();
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
}

fn a_getter_that_leaves_with_a_key_wakes_the_next<Q: Waits>() {
    let (queue, gate) = (Q::new(), Arc::default());
    let closed = Mutex::lock(&gate).unwrap();
    let (taken, threads) = holders(&queue, 3, &gate);
    queue.as_shared().add_many([1, 2], |_| unreachable!());
    // Both are taken before anything else could wake a getter.
    assert_eq!(next(&taken), [1, 2]);
    queue.add(3).unwrap();
    assert_eq!(next(&taken), [3]);
    drop(closed);
    join(threads);
    is_at_rest(&queue);
}

fn a_getter_that_gives_up_does_not_take_the_wake_of_another<Q: Waits>() {
    let queue = Q::new();
    let (taken, mut threads) = getters(&queue, 1, 1);
    let deadline = queue.as_shared().now() + SECOND;
    let hasty = with(&queue, move |queue| {
        queue.get_deadline(deadline).map(finish::<Q>)
    });
    threads.push(with(&queue, |queue| {
        queue.add(1).unwrap();
    }));
    Q::advance(SECOND);
    match hasty.join().unwrap() {
        Ok(key) => {
            assert_eq!(key, 1);
            queue.add(2).unwrap();
            assert_eq!(next(&taken), [2]);
        }
        Err(error) => {
            assert_eq!(error, WaitError::TimedOut);
            assert_eq!(next(&taken), [1]);
        }
    }
    join(threads);
    is_at_rest(&queue);
}

fn a_key_that_comes_as_a_getter_gives_up_is_not_lost<Q: Waits>() {
    let queue = Q::new();
    let deadline = queue.as_shared().now() + SECOND;
    let hasty = with(&queue, move |queue| {
        queue.get_deadline(deadline).map(finish::<Q>)
    });
    Q::advance(SECOND);
    queue.add(1).unwrap();
    match hasty.join().unwrap() {
        Ok(key) => assert_eq!(key, 1),
        Err(_) => assert_eq!(queue.get().map(finish::<Q>), Ok(1)),
    }
    is_at_rest(&queue);
}
