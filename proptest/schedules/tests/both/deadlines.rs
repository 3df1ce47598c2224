//! Getters of which one watches the clock.

use std::sync::Arc;

use requeue_schedules::{SECOND, Waits, finish, getters, holders, is_at_rest, join, next, with};
use requeue_std::WaitError;
use shuttle::sync::Mutex;

both! {
    explore:
        the_clock_is_watched_when_its_owner_leaves_with_a_key,
        several_deadlines_come_at_once,
        a_deadline_that_comes_before_the_owners_is_watched,
        a_delay_that_is_shortened_is_watched,
        the_time_moves_while_a_deadline_is_set,
        the_clock_is_watched_when_its_owner_gives_up;
}

fn the_clock_is_watched_when_its_owner_leaves_with_a_key<Q: Waits>() {
    let (queue, gate) = (Q::new(), Arc::default());
    let closed = Mutex::lock(&gate).unwrap();
    let (taken, mut threads) = holders(&queue, 2, &gate);
    threads.push(with(&queue, |queue| {
        queue.add_after(1, SECOND).unwrap();
        queue.add(2).unwrap();
    }));
    assert_eq!(next(&taken), [2]);
    Q::advance(SECOND);
    assert_eq!(next(&taken), [1]);
    drop(closed);
    join(threads);
    is_at_rest(&queue);
}

fn several_deadlines_come_at_once<Q: Waits>() {
    let (queue, gate) = (Q::new(), Arc::default());
    let closed = Mutex::lock(&gate).unwrap();
    let (taken, mut threads) = holders(&queue, 3, &gate);
    for key in 1..=2 {
        threads.push(with(&queue, move |queue| {
            queue.add_after(key, SECOND).unwrap();
        }));
    }
    queue.add_after(3, SECOND).unwrap();
    join(threads.drain(3..));
    Q::advance(SECOND);
    assert_eq!(next(&taken), [1, 2, 3]);
    drop(closed);
    join(threads);
    is_at_rest(&queue);
}

fn a_deadline_that_comes_before_the_owners_is_watched<Q: Waits>() {
    let queue = Q::new();
    let (taken, mut threads) = getters(&queue, 2, 1);
    queue.add_after(1, 2 * SECOND).unwrap();
    threads.push(with(&queue, |queue| {
        queue.add_after(2, SECOND).unwrap();
    }));
    join(threads.drain(2..));
    Q::advance(SECOND);
    assert_eq!(next(&taken), [2]);
    Q::advance(SECOND);
    assert_eq!(next(&taken), [1]);
    join(threads);
    is_at_rest(&queue);
}

fn a_delay_that_is_shortened_is_watched<Q: Waits>() {
    let queue = Q::new();
    let (taken, mut threads) = getters(&queue, 2, 1);
    queue.add_after(1, 2 * SECOND).unwrap();
    threads.push(with(&queue, |queue| {
        queue.add_after(1, SECOND).unwrap();
    }));
    join(threads.drain(2..));
    Q::advance(SECOND);
    assert_eq!(next(&taken), [1]);
    queue.add(2).unwrap();
    assert_eq!(next(&taken), [2]);
    join(threads);
    is_at_rest(&queue);
}

fn the_time_moves_while_a_deadline_is_set<Q: Waits>() {
    let queue = Q::new();
    let (taken, mut threads) = getters(&queue, 2, 1);
    threads.push(with(&queue, |queue| {
        queue.add_after(1, SECOND).unwrap();
    }));
    threads.push(with(&queue, |_| Q::advance(SECOND)));
    join(threads.drain(2..));
    // It may have been set after the time had moved.
    Q::advance(SECOND);
    assert_eq!(next(&taken), [1]);
    queue.add(2).unwrap();
    assert_eq!(next(&taken), [2]);
    join(threads);
    is_at_rest(&queue);
}

fn the_clock_is_watched_when_its_owner_gives_up<Q: Waits>() {
    let queue = Q::new();
    queue.add_after(1, 2 * SECOND).unwrap();
    let deadline = queue.as_shared().now() + SECOND;
    let hasty = with(&queue, move |queue| {
        queue.get_deadline(deadline).map(finish::<Q>)
    });
    let (taken, threads) = getters(&queue, 2, 1);
    Q::advance(SECOND);
    Q::advance(SECOND);
    match hasty.join().unwrap() {
        Ok(_) => queue.add(1).map(drop).unwrap(),
        Err(error) => assert_eq!(error, WaitError::TimedOut),
    }
    assert_eq!(next(&taken), [1]);
    queue.add(2).unwrap();
    assert_eq!(next(&taken), [2]);
    join(threads);
    is_at_rest(&queue);
}
