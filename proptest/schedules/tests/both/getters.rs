//! Getters that wait for a key.
//!
//! Whatever releases all of them at once, as shutting down does, would also repair a wake that was
//! lost: so a getter takes a fixed number of keys and ends by itself.

use requeue_schedules::{SECOND, Scene, Waits, run, scenarios};

scenarios! {
    explore:
        two_getters_and_two_keys,
        every_key_of_several_producers_is_handed_out_once,
        a_getter_that_leaves_with_a_key_wakes_the_next,
        a_getter_that_gives_up_does_not_take_the_wake_of_another;
    explore_all:
        one_getter_and_one_producer,
        a_key_that_comes_as_a_getter_gives_up_is_not_lost;
}

fn one_getter_and_one_producer<Q: Waits>(scene: &mut Scene<Q>) {
    scene.getters(1, 1);
    scene.add([7]);
    scene.takes([7]);
}

fn two_getters_and_two_keys<Q: Waits>(scene: &mut Scene<Q>) {
    scene.getters(2, 1);
    scene.add([1, 2]);
    scene.takes([1, 2]);
}

fn every_key_of_several_producers_is_handed_out_once<Q: Waits>(scene: &mut Scene<Q>) {
    scene.getters(3, 2);
    scene.producer([1, 2, 3]);
    scene.producer([4, 5, 6]);
    scene.takes([1, 2, 3, 4, 5, 6]);
}

fn a_getter_that_leaves_with_a_key_wakes_the_next<Q: Waits>(scene: &mut Scene<Q>) {
    scene.holders(3);
    scene.add([1, 2]);
    // Both are taken before anything else could wake a getter.
    scene.takes([1, 2]);
    scene.add([3]);
    scene.takes([3]);
}

fn a_getter_that_gives_up_does_not_take_the_wake_of_another<Q: Waits>(scene: &mut Scene<Q>) {
    scene.getters(1, 1);
    let hasty = scene.hasty(SECOND);
    scene.producer([1]);
    Q::advance(SECOND);
    scene.either_takes(hasty, [1, 2]);
}

fn a_key_that_comes_as_a_getter_gives_up_is_not_lost<Q: Waits>(scene: &mut Scene<Q>) {
    let hasty = scene.hasty(SECOND);
    Q::advance(SECOND);
    scene.add([1]);
    let key = hasty.join().unwrap();
    assert_eq!(key.unwrap_or_else(|_| run(&scene.queue)), 1);
}
