//! Getters of which one watches the clock.

use requeue_schedules::{SECOND, Scene, Waits, scenarios};

scenarios! {
    explore:
        the_clock_is_watched_when_its_owner_leaves_with_a_key,
        several_deadlines_come_at_once,
        a_deadline_that_comes_before_the_owners_is_watched,
        a_delay_that_is_shortened_is_watched,
        the_time_moves_while_a_deadline_is_set,
        the_clock_is_watched_when_its_owner_gives_up;
}

fn the_clock_is_watched_when_its_owner_leaves_with_a_key<Q: Waits>(scene: &mut Scene<Q>) {
    scene.holders(2);
    scene.also(|queue| {
        queue.add_after(1, SECOND).unwrap();
        queue.add(2).unwrap();
    });
    scene.takes([2]);
    Q::advance(SECOND);
    scene.takes([1]);
}

fn several_deadlines_come_at_once<Q: Waits>(scene: &mut Scene<Q>) {
    scene.holders(3);
    for key in 1..=2 {
        scene.also(move |queue| _ = queue.add_after(key, SECOND).unwrap());
    }
    scene.queue.add_after(3, SECOND).unwrap();
    scene.others_end();
    Q::advance(SECOND);
    scene.takes([1, 2, 3]);
}

fn a_deadline_that_comes_before_the_owners_is_watched<Q: Waits>(scene: &mut Scene<Q>) {
    scene.getters(2, 1);
    scene.queue.add_after(1, 2 * SECOND).unwrap();
    scene.also(|queue| _ = queue.add_after(2, SECOND).unwrap());
    scene.others_end();
    Q::advance(SECOND);
    scene.takes([2]);
    Q::advance(SECOND);
    scene.takes([1]);
}

fn a_delay_that_is_shortened_is_watched<Q: Waits>(scene: &mut Scene<Q>) {
    scene.getters(2, 1);
    scene.queue.add_after(1, 2 * SECOND).unwrap();
    scene.also(|queue| _ = queue.add_after(1, SECOND).unwrap());
    scene.others_end();
    Q::advance(SECOND);
    scene.takes([1]);
    scene.add([2]);
    scene.takes([2]);
}

fn the_time_moves_while_a_deadline_is_set<Q: Waits>(scene: &mut Scene<Q>) {
    scene.getters(2, 1);
    scene.also(|queue| _ = queue.add_after(1, SECOND).unwrap());
    scene.also(|_| Q::advance(SECOND));
    scene.others_end();
    // It may have been set after the time had moved.
    Q::advance(SECOND);
    scene.takes([1]);
    scene.add([2]);
    scene.takes([2]);
}

fn the_clock_is_watched_when_its_owner_gives_up<Q: Waits>(scene: &mut Scene<Q>) {
    scene.queue.add_after(1, 2 * SECOND).unwrap();
    let hasty = scene.hasty(SECOND);
    scene.getters(2, 1);
    Q::advance(SECOND);
    Q::advance(SECOND);
    scene.either_takes(hasty, [1, 1]);
    scene.add([2]);
    scene.takes([2]);
}
