//! Groups that may not start a run while getters sleep. Keys 10 to 19 are group 1, and so on.
//!
//! Shutting down wakes every getter, so it would repair a wake that was lost: a getter takes a
//! fixed number of keys. Where the end of a run would do the same, the keys are held.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use requeue_schedules::{
    Grouped, SECOND, Waits, finish, getters, holders, interrupt, is_at_rest, join, next, stopper,
    with,
};
use requeue_std::GroupLimits;
use requeue_std::{Action, WaitError};
use shuttle::sync::Mutex;
use shuttle::sync::mpsc::channel;

both! {
    [GroupedThreads, GroupedTasks]
    explore:
        a_run_that_fails_wakes_a_getter_for_the_next_key_of_the_group,
        each_run_that_ends_wakes_one_of_several_getters,
        a_group_at_its_limit_takes_no_wake_of_another,
        a_worker_that_asks_for_more_leaves_no_getter_asleep,
        a_getter_that_gives_up_does_not_take_the_wake_for_a_group,
        a_group_that_is_unpaused_wakes_a_getter_for_each_key,
        a_limit_that_is_raised_wakes_a_getter_for_each_key,
        limits_of_many_groups_that_are_lifted_wake_a_getter_for_each,
        each_token_of_a_group_wakes_a_getter,
        workers_end_after_shutdown_although_groups_are_at_their_limits,
        a_getter_ends_when_the_last_key_of_a_group_is_handed_out_after_shutdown;
    explore_all:
        the_end_of_a_run_wakes_a_getter_for_the_next_key_of_the_group;
}

const ONE: GroupLimits = GroupLimits::new().max_active(1);

/// A queue whose groups have one active key at most.
fn one_at_a_time<Q: Waits<Priorities = Grouped>>() -> Q {
    let queue = Q::new();
    queue.as_shared().limit_groups(ONE);
    queue
}

fn the_end_of_a_run_wakes_a_getter_for_the_next_key_of_the_group<Q: Waits<Priorities = Grouped>>() {
    let queue = one_at_a_time::<Q>();
    queue.as_shared().add_many([11, 12], |_| unreachable!());
    let guard = queue.get().unwrap();
    let (taken, threads) = getters(&queue, 1, 1);
    guard.success();
    assert_eq!(next(&taken), [12]);
    join(threads);
    is_at_rest(&queue);
}

fn a_run_that_fails_wakes_a_getter_for_the_next_key_of_the_group<Q: Waits<Priorities = Grouped>>() {
    let queue = one_at_a_time::<Q>();
    queue.as_shared().add_many([11, 12], |_| unreachable!());
    let guard = queue.get().unwrap();
    let (taken, threads) = getters(&queue, 2, 1);
    drop(guard);
    assert_eq!(next(&taken), [12]);
    Q::advance(SECOND);
    assert_eq!(next(&taken), [11]);
    join(threads);
    is_at_rest(&queue);
}

fn each_run_that_ends_wakes_one_of_several_getters<Q: Waits<Priorities = Grouped>>() {
    let queue = one_at_a_time::<Q>();
    let active = Arc::new(AtomicUsize::new(0));
    let getters = [(); 3].map(|()| {
        let active = Arc::clone(&active);
        with(&queue, move |queue| {
            let guard = queue.get().unwrap();
            assert_eq!(active.fetch_add(1, Ordering::SeqCst), 0);
            interrupt();
            active.fetch_sub(1, Ordering::SeqCst);
            finish::<Q>(guard)
        })
    });
    queue.as_shared().add_many([11, 12, 13], |_| unreachable!());
    let mut keys = getters.map(|getter| getter.join().unwrap());
    keys.sort_unstable();
    assert_eq!(keys, [11, 12, 13]);
    is_at_rest(&queue);
}

fn a_group_at_its_limit_takes_no_wake_of_another<Q: Waits<Priorities = Grouped>>() {
    let (queue, gate) = (one_at_a_time::<Q>(), Arc::default());
    queue.as_shared().add_many([11, 12], |_| unreachable!());
    let guard = queue.get().unwrap();
    let closed = Mutex::lock(&gate).unwrap();
    let (taken, threads) = holders(&queue, 2, &gate);
    queue.add(21).unwrap();
    assert_eq!(next(&taken), [21]);
    guard.success();
    assert_eq!(next(&taken), [12]);
    drop(closed);
    join(threads);
    is_at_rest(&queue);
}

/// The worker whose run ends takes the next key of the group itself.
fn a_worker_that_asks_for_more_leaves_no_getter_asleep<Q: Waits<Priorities = Grouped>>() {
    let (queue, gate) = (one_at_a_time::<Q>(), Arc::default());
    queue.as_shared().add_many([11, 12, 13], |_| unreachable!());
    let guard = queue.get().unwrap();
    let closed = Mutex::lock(&gate).unwrap();
    let (taken, mut threads) = holders(&queue, 2, &gate);
    threads.push(with(&queue, |queue| {
        queue.add(21).unwrap();
    }));
    let mut guard = queue.next(guard, Action::Success).unwrap();
    if *guard == 21 {
        assert_eq!(next(&taken), [12]);
        queue.add(31).unwrap();
        assert_eq!(next(&taken), [31]);
    } else {
        assert_eq!(*guard, 12);
        assert_eq!(next(&taken), [21]);
        guard = queue.next(guard, Action::Success).unwrap();
        assert_eq!(*guard, 13);
        queue.add(31).unwrap();
        assert_eq!(next(&taken), [31]);
    }
    guard.success();
    drop(closed);
    join(threads);
    queue.as_shared().cancel(&13);
    is_at_rest(&queue);
}

fn a_getter_that_gives_up_does_not_take_the_wake_for_a_group<Q: Waits<Priorities = Grouped>>() {
    let queue = one_at_a_time::<Q>();
    queue.as_shared().add_many([11, 12], |_| unreachable!());
    let guard = queue.get().unwrap();
    let deadline = queue.as_shared().now() + SECOND;
    let hasty = with(&queue, move |queue| {
        queue.get_deadline(deadline).map(finish::<Q>)
    });
    let (taken, threads) = getters(&queue, 1, 1);
    Q::advance(SECOND);
    guard.success();
    match hasty.join().unwrap() {
        Ok(key) => {
            assert_eq!(key, 12);
            queue.add(13).unwrap();
            assert_eq!(next(&taken), [13]);
        }
        Err(error) => {
            assert_eq!(error, WaitError::TimedOut);
            assert_eq!(next(&taken), [12]);
        }
    }
    join(threads);
    is_at_rest(&queue);
}

fn a_group_that_is_unpaused_wakes_a_getter_for_each_key<Q: Waits<Priorities = Grouped>>() {
    let (queue, gate) = (Q::new(), Arc::default());
    queue.as_shared().pause_group(1).unwrap();
    let closed = Mutex::lock(&gate).unwrap();
    let (taken, mut threads) = holders(&queue, 2, &gate);
    threads.push(with(&queue, |queue| queue.as_shared().unpause_group(&1)));
    queue.as_shared().add_many([11, 12], |_| unreachable!());
    assert_eq!(next(&taken), [11, 12]);
    drop(closed);
    join(threads);
    is_at_rest(&queue);
}

fn a_limit_that_is_raised_wakes_a_getter_for_each_key<Q: Waits<Priorities = Grouped>>() {
    let (queue, gate) = (one_at_a_time::<Q>(), Arc::default());
    queue.as_shared().add_many([11, 12, 13], |_| unreachable!());
    let guard = queue.get().unwrap();
    let closed = Mutex::lock(&gate).unwrap();
    let (taken, threads) = holders(&queue, 2, &gate);
    queue
        .as_shared()
        .limit_group(1, GroupLimits::new().max_active(3))
        .unwrap();
    assert_eq!(next(&taken), [12, 13], "the first is still active");
    guard.success();
    drop(closed);
    join(threads);
    is_at_rest(&queue);
}

/// A change of limits looks at eight groups, which are paused. It wakes a getter for the others.
fn limits_of_many_groups_that_are_lifted_wake_a_getter_for_each<Q: Waits<Priorities = Grouped>>() {
    let (queue, gate) = (Q::new(), Arc::default());
    queue
        .as_shared()
        .limit_groups(GroupLimits::new().max_active(0));
    let closed = Mutex::lock(&gate).unwrap();
    let (taken, threads) = holders(&queue, 10, &gate);
    for group in 1..=10 {
        if group <= 8 {
            queue.as_shared().pause_group(group).unwrap();
        }
        queue.add(10 * group).unwrap();
    }
    queue.as_shared().limit_groups(GroupLimits::new());
    assert_eq!(next(&taken), [90, 100]);
    for group in 1..=8 {
        queue.as_shared().unpause_group(&group);
    }
    assert_eq!(next(&taken), [10, 20, 30, 40, 50, 60, 70, 80]);
    drop(closed);
    join(threads);
    is_at_rest(&queue);
}

fn each_token_of_a_group_wakes_a_getter<Q: Waits<Priorities = Grouped>>() {
    let (queue, gate) = (Q::new(), Arc::default());
    queue
        .as_shared()
        .limit_groups(GroupLimits::new().rate(1.0, 1));
    let closed = Mutex::lock(&gate).unwrap();
    let (taken, threads) = holders(&queue, 3, &gate);
    queue.as_shared().add_many([11, 12, 21], |_| unreachable!());
    assert_eq!(next(&taken), [11, 21]);
    Q::advance(SECOND);
    assert_eq!(next(&taken), [12]);
    drop(closed);
    join(threads);
    is_at_rest(&queue);
}

fn workers_end_after_shutdown_although_groups_are_at_their_limits<
    Q: Waits<Priorities = Grouped>,
>() {
    let queue = one_at_a_time::<Q>();
    let none = GroupLimits::new().max_active(0);
    queue.as_shared().limit_group(2, none).unwrap();
    queue.as_shared().pause_group(3).unwrap();
    queue
        .as_shared()
        .add_many([11, 12, 21, 22, 31], |_| unreachable!());
    let runs = Arc::new(AtomicUsize::new(0));
    let active: Arc<[AtomicUsize; 4]> = Arc::default();
    let worker = |_| {
        let (runs, active) = (Arc::clone(&runs), Arc::clone(&active));
        with(&queue, move |queue| {
            while let Ok(guard) = queue.get() {
                let active = &active[*guard as usize / 10];
                assert_eq!(active.fetch_add(1, Ordering::SeqCst), 0);
                interrupt();
                active.fetch_sub(1, Ordering::SeqCst);
                runs.fetch_add(1, Ordering::SeqCst);
                finish::<Q>(guard);
            }
        })
    };
    let mut threads: Vec<_> = (0..3).map(worker).collect();
    threads.push(stopper(&queue));
    // The end of a drain that is waited for would wake those that sleep.
    join(threads);
    assert_eq!(runs.load(Ordering::SeqCst), 5);
    assert_eq!(queue.drain(), Ok(()));
    is_at_rest(&queue);
}

/// While that key is active: the end of the drain would wake the getter as well.
fn a_getter_ends_when_the_last_key_of_a_group_is_handed_out_after_shutdown<Q>()
where
    Q: Waits<Priorities = Grouped>,
{
    let (queue, gate) = (one_at_a_time::<Q>(), Arc::<Mutex<()>>::default());
    queue.as_shared().add_many([11, 12], |_| unreachable!());
    let guard = queue.get().unwrap();
    let closed = Mutex::lock(&gate).unwrap();
    let (sender, taken) = channel();
    let getters = [(); 2].map(|()| {
        let (gate, sender) = (Arc::clone(&gate), sender.clone());
        with(&queue, move |queue| {
            let guard = queue.get();
            sender.send(guard.as_deref().map_or(0, |key| *key)).unwrap();
            if let Ok(guard) = guard {
                drop(gate.lock().unwrap());
                finish::<Q>(guard);
            }
        })
    });
    queue.as_shared().shut_down();
    guard.success();
    assert_eq!(next(&taken), [0, 12]);
    drop(closed);
    join(getters);
    is_at_rest(&queue);
}
