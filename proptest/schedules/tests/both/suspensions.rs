//! Keys that wait for an event, which may come at any moment.

use requeue_schedules::{SECOND, Waits, is_at_rest, with};
use requeue_std::Action;

both! {
    explore_all:
        an_event_that_comes_as_its_run_ends_is_not_lost,
        an_event_that_comes_as_its_timeout_ends_makes_one_run;
}

fn an_event_that_comes_as_its_run_ends_is_not_lost<Q: Waits>() {
    let queue = Q::new();
    queue.add(1).unwrap();
    let guard = queue.get().unwrap();
    let event = with(&queue, |queue| queue.as_shared().resume(&1));
    guard.finish(Action::Suspend(SECOND));
    // No time passes: without the event, this would wait for ever.
    let guard = queue.get().unwrap();
    assert!(!guard.timed_out());
    guard.success();
    event.join().unwrap();
    is_at_rest(&queue);
}

fn an_event_that_comes_as_its_timeout_ends_makes_one_run<Q: Waits>() {
    let queue = Q::new();
    queue.add(1).unwrap();
    queue.get().unwrap().finish(Action::Suspend(SECOND));
    let event = with(&queue, |queue| queue.as_shared().resume(&1));
    Q::advance(SECOND);
    queue.get().unwrap().success();
    event.join().unwrap();
    queue.wait_idle();
    is_at_rest(&queue);
}
