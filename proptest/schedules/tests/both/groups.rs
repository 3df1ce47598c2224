//! Groups that may not start a run while getters sleep. Keys 10 to 19 are group 1, and so on.
//!
//! Shutting down wakes every getter, so it would repair a wake that was lost: a getter takes a
//! fixed number of keys. Where the end of a run would do the same, the keys are held.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use requeue_schedules::{Grouped, SECOND, Scene, Waits, finish, interrupt, scenarios};
use requeue_std::{Action, GroupLimits};
use shuttle::sync::mpsc::channel;

scenarios! {
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

trait InGroups: Waits<Priorities = Grouped> {}

impl<Q: Waits<Priorities = Grouped>> InGroups for Q {}

/// Groups have one active key at most, and these keys are ready.
fn one_at_a_time<Q: InGroups, const N: usize>(scene: &Scene<Q>, keys: [u32; N]) -> Q {
    let one = GroupLimits::new().max_active(1);
    scene.queue.as_shared().limit_groups(one);
    scene.add(keys);
    scene.queue.clone()
}

fn the_end_of_a_run_wakes_a_getter_for_the_next_key_of_the_group<Q: InGroups>(
    scene: &mut Scene<Q>,
) {
    let queue = one_at_a_time(scene, [11, 12]);
    let guard = queue.get().unwrap();
    scene.getters(1, 1);
    guard.success();
    scene.takes([12]);
}

fn a_run_that_fails_wakes_a_getter_for_the_next_key_of_the_group<Q: InGroups>(
    scene: &mut Scene<Q>,
) {
    let queue = one_at_a_time(scene, [11, 12]);
    let guard = queue.get().unwrap();
    scene.getters(2, 1);
    drop(guard);
    scene.takes([12]);
    Q::advance(SECOND);
    scene.takes([11]);
}

/// Counts who works on the same at once.
fn alone(active: &AtomicUsize) {
    assert_eq!(active.fetch_add(1, Ordering::SeqCst), 0);
    interrupt();
    active.fetch_sub(1, Ordering::SeqCst);
}

fn each_run_that_ends_wakes_one_of_several_getters<Q: InGroups>(scene: &mut Scene<Q>) {
    one_at_a_time(scene, []);
    let active = Arc::new(AtomicUsize::new(0));
    for _ in 0..3 {
        let (active, taken) = (Arc::clone(&active), scene.teller());
        scene.also(move |queue| {
            let guard = queue.get().unwrap();
            alone(&active);
            taken.send(finish::<Q>(guard)).unwrap();
        });
    }
    scene.add([11, 12, 13]);
    scene.takes([11, 12, 13]);
}

fn a_group_at_its_limit_takes_no_wake_of_another<Q: InGroups>(scene: &mut Scene<Q>) {
    let queue = one_at_a_time(scene, [11, 12]);
    let guard = queue.get().unwrap();
    scene.holders(2);
    scene.add([21]);
    scene.takes([21]);
    guard.success();
    scene.takes([12]);
}

/// The worker whose run ends takes the next key of the group itself.
fn a_worker_that_asks_for_more_leaves_no_getter_asleep<Q: InGroups>(scene: &mut Scene<Q>) {
    let queue = one_at_a_time(scene, [11, 12, 13]);
    let guard = queue.get().unwrap();
    scene.holders(2);
    scene.producer([21]);
    let mut guard = queue.next(guard, Action::Success).unwrap();
    if *guard == 21 {
        scene.takes([12]);
    } else {
        assert_eq!(*guard, 12);
        scene.takes([21]);
        guard = queue.next(guard, Action::Success).unwrap();
        assert_eq!(*guard, 13);
    }
    scene.add([31]);
    scene.takes([31]);
    guard.success();
    queue.as_shared().cancel(&13);
}

fn a_getter_that_gives_up_does_not_take_the_wake_for_a_group<Q: InGroups>(scene: &mut Scene<Q>) {
    let queue = one_at_a_time(scene, [11, 12]);
    let guard = queue.get().unwrap();
    let hasty = scene.hasty(SECOND);
    scene.getters(1, 1);
    Q::advance(SECOND);
    guard.success();
    scene.either_takes(hasty, [12, 13]);
}

fn a_group_that_is_unpaused_wakes_a_getter_for_each_key<Q: InGroups>(scene: &mut Scene<Q>) {
    scene.queue.as_shared().pause_group(1).unwrap();
    scene.holders(2);
    scene.also(|queue| queue.as_shared().unpause_group(&1));
    scene.add([11, 12]);
    scene.takes([11, 12]);
}

fn a_limit_that_is_raised_wakes_a_getter_for_each_key<Q: InGroups>(scene: &mut Scene<Q>) {
    let queue = one_at_a_time(scene, [11, 12, 13]);
    let guard = queue.get().unwrap();
    scene.holders(2);
    let three = GroupLimits::new().max_active(3);
    queue.as_shared().limit_group(1, three).unwrap();
    // The first is still active.
    scene.takes([12, 13]);
    guard.success();
}

/// A change of limits looks at eight groups, which are paused. It wakes a getter for the others.
fn limits_of_many_groups_that_are_lifted_wake_a_getter_for_each<Q: InGroups>(scene: &mut Scene<Q>) {
    let queue = scene.queue.clone();
    let none = GroupLimits::new().max_active(0);
    queue.as_shared().limit_groups(none);
    scene.holders(10);
    for group in 1..=8 {
        queue.as_shared().pause_group(group).unwrap();
        scene.add([10 * group]);
    }
    scene.add([90, 100]);
    queue.as_shared().limit_groups(GroupLimits::new());
    scene.takes([90, 100]);
    for group in 1..=8 {
        queue.as_shared().unpause_group(&group);
    }
    scene.takes([10, 20, 30, 40, 50, 60, 70, 80]);
}

fn each_token_of_a_group_wakes_a_getter<Q: InGroups>(scene: &mut Scene<Q>) {
    let rate = GroupLimits::new().rate(1.0, 1);
    scene.queue.as_shared().limit_groups(rate);
    scene.holders(3);
    scene.add([11, 12, 21]);
    scene.takes([11, 21]);
    Q::advance(SECOND);
    scene.takes([12]);
}

fn workers_end_after_shutdown_although_groups_are_at_their_limits<Q: InGroups>(
    scene: &mut Scene<Q>,
) {
    let queue = one_at_a_time(scene, []);
    let none = GroupLimits::new().max_active(0);
    queue.as_shared().limit_group(2, none).unwrap();
    queue.as_shared().pause_group(3).unwrap();
    scene.add([11, 12, 21, 22, 31]);
    let runs = Arc::new(AtomicUsize::new(0));
    let active: Arc<[AtomicUsize; 4]> = Arc::default();
    for _ in 0..3 {
        let (runs, active) = (Arc::clone(&runs), Arc::clone(&active));
        scene.worker(move |key| {
            alone(&active[key as usize / 10]);
            runs.fetch_add(1, Ordering::SeqCst);
        });
    }
    scene.stopper();
    // The end of a drain that is waited for would wake those that sleep.
    scene.others_end();
    assert_eq!(runs.load(Ordering::SeqCst), 5);
    assert_eq!(queue.drain(), Ok(()));
}

/// While that key is active: the end of the drain would wake the getter as well.
fn a_getter_ends_when_the_last_key_of_a_group_is_handed_out_after_shutdown<Q: InGroups>(
    scene: &mut Scene<Q>,
) {
    let queue = one_at_a_time(scene, [11, 12]);
    let guard = queue.get().unwrap();
    let gates = [(); 2].map(|()| {
        let (taken, (open, gate)) = (scene.teller(), channel::<()>());
        scene.also(move |queue| {
            let guard = queue.get();
            taken.send(guard.as_deref().map_or(0, |key| *key)).unwrap();
            if let Ok(guard) = guard {
                let _ = gate.recv();
                finish::<Q>(guard);
            }
        });
        open
    });
    queue.as_shared().shut_down();
    guard.success();
    scene.takes([0, 12]);
    drop(gates);
}
