//! Keys that wait for an event, which may come at any moment.

use requeue_schedules::{SECOND, Scene, Waits, scenarios};
use requeue_std::Action;

scenarios! {
    explore_all:
        an_event_that_comes_as_its_run_ends_is_not_lost,
        an_event_that_comes_as_its_timeout_ends_makes_one_run;
}

fn an_event_that_comes_as_its_run_ends_is_not_lost<Q: Waits>(scene: &mut Scene<Q>) {
    scene.add([1]);
    let queue = scene.queue.clone();
    let guard = queue.get().unwrap();
    scene.also(|queue| _ = queue.as_shared().resume(&1));
    guard.finish(Action::Suspend(SECOND));
    // No time passes: without the event, this would wait for ever.
    let guard = queue.get().unwrap();
    assert!(!guard.timed_out());
    guard.success();
}

fn an_event_that_comes_as_its_timeout_ends_makes_one_run<Q: Waits>(scene: &mut Scene<Q>) {
    scene.add([1]);
    scene.queue.get().unwrap().finish(Action::Suspend(SECOND));
    scene.also(|queue| _ = queue.as_shared().resume(&1));
    Q::advance(SECOND);
    scene.queue.get().unwrap().success();
    scene.others_end();
    scene.queue.wait_idle();
}
