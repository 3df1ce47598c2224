//! Ready keys that wait for tokens while getters sleep: one key is handed out each second.

use std::sync::Arc;

use requeue_schedules::{
    SECOND, Waits, finish, getters, holders, is_at_rest, join, next, stopper, with,
};
use requeue_std::WaitError;
use shuttle::sync::Mutex;
use shuttle::sync::mpsc::channel;

both! {
    [PacedThreads, PacedTasks, PacedBoards]
    explore:
        each_token_wakes_a_getter,
        a_token_is_watched_when_its_owner_gives_up,
        a_deadline_before_the_token_is_watched,
        getters_end_when_the_last_key_is_handed_out_after_shutdown;
}

fn each_token_wakes_a_getter<Q: Waits>() {
    let (queue, gate) = (Q::new(), Arc::default());
    let closed = Mutex::lock(&gate).unwrap();
    let (taken, mut threads) = holders(&queue, 3, &gate);
    for keys in [[1, 1], [2, 2]] {
        threads.push(with(&queue, move |queue| {
            queue.as_shared().add_many(keys, |_| unreachable!());
        }));
    }
    queue.add(3).unwrap();
    let [first] = next(&taken);
    join(threads.drain(3..));
    Q::advance(SECOND);
    let [second] = next(&taken);
    Q::advance(SECOND);
    let [third] = next(&taken);
    assert_eq!(first + second + third, 6, "each once");
    drop(closed);
    join(threads);
    is_at_rest(&queue);
}

fn a_token_is_watched_when_its_owner_gives_up<Q: Waits>() {
    let queue = Q::new();
    queue.add(1).unwrap();
    finish::<Q>(queue.get().unwrap());
    queue.add(2).unwrap();
    let deadline = queue.as_shared().now() + SECOND / 2;
    let hasty = with(&queue, move |queue| {
        queue.get_deadline(deadline).map(finish::<Q>)
    });
    let (taken, threads) = getters(&queue, 1, 1);
    Q::advance(SECOND / 2);
    assert_eq!(hasty.join().unwrap(), Err(WaitError::TimedOut));
    Q::advance(SECOND / 2);
    assert_eq!(next(&taken), [2]);
    join(threads);
    is_at_rest(&queue);
}

/// A key that comes due before the token has to wait for that as well.
fn a_deadline_before_the_token_is_watched<Q: Waits>() {
    let queue = Q::new();
    queue.add(1).unwrap();
    finish::<Q>(queue.get().unwrap());
    let (taken, mut threads) = getters(&queue, 2, 1);
    threads.push(with(&queue, |queue| {
        queue.add_after(2, SECOND / 2).unwrap();
    }));
    queue.add_after(3, 2 * SECOND).unwrap();
    join(threads.drain(2..));
    Q::advance(SECOND / 2);
    Q::advance(SECOND / 2);
    assert_eq!(next(&taken), [2]);
    Q::advance(SECOND);
    assert_eq!(next(&taken), [3]);
    join(threads);
    is_at_rest(&queue);
}

fn getters_end_when_the_last_key_is_handed_out_after_shutdown<Q: Waits>() {
    let queue = Q::new();
    queue.as_shared().add_many([1, 2], |_| unreachable!());
    let (sender, taken) = channel();
    let getter = |_| {
        let sender = sender.clone();
        with(&queue, move |queue| {
            while let Ok(guard) = queue.get() {
                sender.send(finish::<Q>(guard)).unwrap();
            }
        })
    };
    let mut threads: Vec<_> = (0..3).map(getter).collect();
    threads.push(stopper(&queue));
    assert_eq!(next(&taken), [1]);
    Q::advance(SECOND);
    assert_eq!(next(&taken), [2]);
    join(threads);
    assert_eq!(queue.drain(), Ok(()));
    is_at_rest(&queue);
}
