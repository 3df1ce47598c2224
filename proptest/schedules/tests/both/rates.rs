//! Ready keys that wait for tokens while getters sleep: one key is handed out each second.

use requeue_schedules::{SECOND, Scene, Waits, run, scenarios};
use requeue_std::WaitError;

scenarios! {
    [PacedThreads, PacedTasks, PacedBoards]
    explore:
        each_token_wakes_a_getter,
        a_token_is_watched_when_its_owner_gives_up,
        a_deadline_before_the_token_is_watched,
        getters_end_when_the_last_key_is_handed_out_after_shutdown;
}

fn each_token_wakes_a_getter<Q: Waits>(scene: &mut Scene<Q>) {
    scene.holders(3);
    scene.adder([1, 1]);
    scene.adder([2, 2]);
    scene.add([3]);
    let [first] = scene.taken();
    scene.others_end();
    Q::advance(SECOND);
    let [second] = scene.taken();
    Q::advance(SECOND);
    let [third] = scene.taken();
    assert_eq!(first + second + third, 6, "each once");
}

fn a_token_is_watched_when_its_owner_gives_up<Q: Waits>(scene: &mut Scene<Q>) {
    scene.add([1]);
    run(&scene.queue);
    scene.add([2]);
    let hasty = scene.hasty(SECOND / 2);
    scene.getters(1, 1);
    Q::advance(SECOND / 2);
    assert_eq!(hasty.join().unwrap(), Err(WaitError::TimedOut));
    Q::advance(SECOND / 2);
    scene.takes([2]);
}

/// A key that comes due before the token has to wait for that as well.
fn a_deadline_before_the_token_is_watched<Q: Waits>(scene: &mut Scene<Q>) {
    scene.add([1]);
    run(&scene.queue);
    scene.getters(2, 1);
    scene.also(|queue| _ = queue.add_after(2, SECOND / 2).unwrap());
    scene.queue.add_after(3, 2 * SECOND).unwrap();
    scene.others_end();
    Q::advance(SECOND / 2);
    Q::advance(SECOND / 2);
    scene.takes([2]);
    Q::advance(SECOND);
    scene.takes([3]);
}

fn getters_end_when_the_last_key_is_handed_out_after_shutdown<Q: Waits>(scene: &mut Scene<Q>) {
    scene.add([1, 2]);
    for _ in 0..3 {
        let taken = scene.teller();
        scene.worker(move |key| taken.send(key).unwrap());
    }
    scene.stopper();
    scene.takes([1]);
    Q::advance(SECOND);
    scene.takes([2]);
    scene.others_end();
    assert_eq!(scene.queue.drain(), Ok(()));
}
