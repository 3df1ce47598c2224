//! Calls that wait for something other than a key, driven by hand: which wake is reported, and when
//! none is.

use std::time::Duration;

use requeue_core::binding::*;
use requeue_core::limiter::{NoLimit, default_item_based};
use requeue_core::priority::Plain;
use requeue_core::storage::Fixed;
use requeue_core::{Action, AddOptions, Added, Instant, Rejected};

type Keys<const N: usize> = Queue<u8, Plain, NoLimit, Fixed<N>>;

const NOW: Instant = Instant::EPOCH;
const WAITS: Next<()> = Next::Wait { until: None };
const HAS_COME: Next<()> = Next::Work(());

fn full<const N: usize>() -> Keys<N> {
    let mut queue = Queue::new(NoLimit);
    let _ = queue.at(NOW).add_many(1..=u8::try_from(N).unwrap(), |_| {});
    queue
}

/// A key that waits for room, and its call.
fn waiting<const N: usize>(queue: &mut Keys<N>, key: u8) -> (Adding<u8>, Getter) {
    let (mut adding, mut getter) = (Adding::new(key, AddOptions::new()), Getter::new());
    let look = queue.at(NOW).poll_add(&mut adding, &mut getter);
    assert_eq!((look, queue.at(NOW).close()), (WAITS, Wake::NONE));
    queue.assert_valid();
    (adding, getter)
}

/// Takes the first key and ends its run.
fn run<const N: usize>(queue: &mut Keys<N>) -> Wake {
    let work = queue.at(NOW).try_get().unwrap();
    queue.at(NOW).release(work.ticket);
    let wake = queue.at(NOW).close();
    queue.assert_valid();
    wake
}

#[test]
fn a_wait_that_has_ended_costs_one_wake_and_no_more() {
    let mut queue = full::<3>();
    assert_eq!(queue.at(NOW).poll_idle(), WAITS);
    assert_eq!([run(&mut queue), run(&mut queue)], [Wake::NONE; 2]);
    assert_eq!(run(&mut queue), Wake::WATCHERS);
    // The call never looks again, as one that was dropped.
    let _ = queue.at(NOW).add(1);
    assert_eq!(run(&mut queue), Wake::NONE);
}

#[test]
fn getters_sleep_on_when_only_a_watched_state_has_come() {
    let mut queue = full::<1>();
    let work = queue.at(NOW).try_get().unwrap();
    let mut getter = Getter::new();
    let _ = queue.at(NOW).poll_get(&mut getter);
    assert_eq!(queue.at(NOW).poll_idle(), WAITS);
    queue.at(NOW).release(work.ticket);
    assert_eq!(queue.at(NOW).close(), Wake::WATCHERS);
    queue.at(NOW).leave(&mut getter);
}

#[test]
fn a_getter_and_a_watcher_are_woken_together() {
    let mut queue = full::<1>();
    let work = queue.at(NOW).try_get().unwrap();
    let mut getter = Getter::new();
    let _ = queue.at(NOW).poll_get(&mut getter);
    let _ = queue.at(NOW).add(1);
    let mut flush = queue.at(NOW).begin_flush(&1);
    assert_eq!(queue.at(NOW).poll_flush(&1, &mut flush), WAITS);
    queue.at(NOW).release(work.ticket);
    let wake = queue.at(NOW).close();
    assert_eq!(wake, Wake::ONE | Wake::WATCHERS);
    assert_eq!(format!("{wake:?}"), "ONE | WATCHERS");
    queue.at(NOW).leave(&mut getter);
}

#[test]
fn a_key_that_is_due_and_not_ready_yet_keeps_a_queue_from_being_idle() {
    let mut queue: Keys<8> = Queue::new(NoLimit);
    queue.limit_due_keys(1);
    let due = NOW + Duration::from_secs(1);
    for key in 1..=3 {
        let _ = queue.at(NOW).add_at(key, due);
    }
    assert!(queue.at(NOW).is_idle() && !queue.is_settled());
    for _ in 0..3 {
        assert!(!queue.at(due).is_idle());
        assert_eq!(queue.at(due).poll_idle(), WAITS);
        let work = queue.at(due).try_get().unwrap();
        queue.at(due).release(work.ticket);
        queue.assert_valid();
    }
    assert_eq!(queue.at(due).poll_idle(), HAS_COME);
    assert_eq!(queue.at(NOW).poll_settled(), HAS_COME);
}

#[test]
fn a_leftover_that_is_taken_out_settles_a_queue_that_is_shut_down() {
    let mut queue: Keys<2> = Queue::new(NoLimit);
    let _ = queue.at(NOW).add_after(1, Duration::from_secs(1));
    queue.at(NOW).shut_down();
    assert_eq!(queue.at(NOW).close(), Wake::ALL);
    assert_eq!(queue.at(NOW).poll_idle(), HAS_COME);
    assert_eq!(queue.at(NOW).poll_settled(), WAITS);
    assert!(queue.at(NOW).take_delayed().is_some());
    assert_eq!(queue.at(NOW).close(), Wake::WATCHERS);
    assert_eq!(queue.at(NOW).poll_settled(), HAS_COME);
}

#[test]
fn a_flush_waits_for_no_key_that_takes_the_place_of_its_own() {
    let mut queue = full::<1>();
    let mut flush = queue.at(NOW).begin_flush(&1);
    assert_eq!(queue.at(NOW).poll_flush(&1, &mut flush), WAITS);
    assert_eq!(run(&mut queue), Wake::WATCHERS);
    // Another key has its slot, and the same key is ready once more.
    let _ = queue.at(NOW).add(2);
    let other = queue.at(NOW).try_get().unwrap();
    assert_eq!(queue.at(NOW).poll_flush(&1, &mut flush.clone()), HAS_COME);
    queue.at(NOW).release(other.ticket);
    let _ = queue.at(NOW).add(1);
    assert_eq!(queue.at(NOW).poll_flush(&1, &mut flush), HAS_COME);
}

#[test]
fn two_flushes_of_a_ready_key_wait_for_the_same_run() {
    let mut queue = full::<1>();
    let mut flushes = [0; 2].map(|_| queue.at(NOW).begin_flush(&1));
    let mut polls = |queue: &mut Keys<1>| {
        flushes
            .each_mut()
            .map(|flush| queue.at(NOW).poll_flush(&1, flush))
    };
    assert_eq!(polls(&mut queue), [WAITS; 2]);
    let work = queue.at(NOW).try_get().unwrap();
    let _ = queue.at(NOW).add(1);
    assert_eq!(polls(&mut queue), [WAITS; 2]);
    queue.at(NOW).release(work.ticket);
    assert_eq!(queue.at(NOW).close(), Wake::WATCHERS);
    assert_eq!(
        polls(&mut queue),
        [HAS_COME; 2],
        "what was added since is not theirs"
    );
}

#[test]
fn a_failure_that_is_retried_ends_the_flush_of_its_run() {
    let mut queue: Queue<u8, Plain, _, Fixed<2>> = Queue::new(default_item_based());
    let _ = queue.at(NOW).add(1);
    let mut flush = queue.at(NOW).begin_flush(&1);
    let work = queue.at(NOW).try_get().unwrap();
    assert_eq!(queue.at(NOW).poll_flush(&1, &mut flush), WAITS);
    queue.at(NOW).finish(work.ticket, Action::Retry);
    assert_eq!(
        queue.at(NOW).poll_flush(&1, &mut flush),
        HAS_COME,
        "a delay is not waited for"
    );
    assert_eq!(queue.at(NOW).cancel(&9), None, "an unknown key");
    let mut unknown = queue.at(NOW).begin_flush(&9);
    assert_eq!(queue.at(NOW).poll_flush(&9, &mut unknown), HAS_COME);
}

#[test]
fn one_place_wakes_one_call_and_a_second_wake_is_in_flight_only_after_it_has_looked() {
    let mut queue = full::<2>();
    let (mut first, mut first_getter) = waiting(&mut queue, 3);
    let (mut second, mut second_getter) = waiting(&mut queue, 4);
    assert_eq!([run(&mut queue), run(&mut queue)], [Wake::ROOM, Wake::NONE]);
    // The first takes its place, and there is another.
    let look = queue.at(NOW).poll_add(&mut first, &mut first_getter);
    assert_eq!((look, queue.at(NOW).close()), (HAS_COME, Wake::ROOM));
    let look = queue.at(NOW).poll_add(&mut second, &mut second_getter);
    assert_eq!((look, queue.at(NOW).close()), (HAS_COME, Wake::NONE));
    for adding in [first, second] {
        assert_eq!(adding.into_result(Ok(())).unwrap().added, Added::Ready);
    }
    queue.assert_valid();
}

#[test]
fn a_place_that_is_taken_by_an_add_is_waited_for_again() {
    let mut queue = full::<1>();
    let (mut adding, mut getter) = waiting(&mut queue, 2);
    assert_eq!(run(&mut queue), Wake::ROOM);
    let _ = queue.at(NOW).add(3);
    let look = queue.at(NOW).poll_add(&mut adding, &mut getter);
    assert_eq!((look, queue.at(NOW).close()), (WAITS, Wake::NONE));
    assert_eq!(run(&mut queue), Wake::ROOM);
    queue.at(NOW).leave(&mut getter);
    assert_eq!(queue.at(NOW).close(), Wake::ROOM, "the place is free");
    assert_eq!(adding.into_result(Ok(())), Err(Rejected::Full(2)));
    // No call waits any more: the wake has found none.
    let _ = queue.at(NOW).add(4);
    assert_eq!(run(&mut queue), Wake::NONE);
}

#[test]
fn a_failure_record_makes_room_for_a_call_that_waits() {
    let mut queue: Queue<u8, Plain, _, Fixed<1>> = Queue::new(default_item_based());
    let _ = queue.at(NOW).add_rate_limited(1);
    let (mut adding, mut getter) = (Adding::new(2, AddOptions::new()), Getter::new());
    assert_eq!(queue.at(NOW).poll_add(&mut adding, &mut getter), WAITS);
    let _ = queue.at(NOW).cancel(&1);
    assert_eq!(queue.at(NOW).close(), Wake::ROOM);
    assert_eq!(queue.at(NOW).poll_add(&mut adding, &mut getter), HAS_COME);
    assert!(queue.contains(&2));
}

#[test]
fn a_key_that_waits_for_room_is_added_as_its_options_say() {
    let mut queue = full::<1>();
    let minute = Duration::from_secs(60);
    let options = AddOptions {
        after: Some(minute),
        ..AddOptions::new()
    };
    let (mut adding, mut getter) = (Adding::new(2, options), Getter::new());
    assert_eq!(
        adding.deadline(None),
        Some(Instant::NEVER),
        "it needs the time"
    );
    assert_eq!(queue.at(NOW).poll_add(&mut adding, &mut getter), WAITS);
    let _ = run(&mut queue);
    let later = NOW + minute;
    assert_eq!(queue.at(later).poll_add(&mut adding, &mut getter), HAS_COME);
    assert_eq!(queue.at(later).state(&2).unwrap().due, Some(later + minute));

    let unknown = AddOptions {
        priority: Some(7),
        ..AddOptions::new()
    };
    let mut adding = Adding::new(3, unknown);
    assert_eq!(queue.at(later).poll_add(&mut adding, &mut getter), HAS_COME);
    assert_eq!(
        adding.into_result(Ok(())),
        Err(Rejected::UnknownPriority(3))
    );
}

#[test]
fn a_call_that_waits_for_room_gets_its_key_back_at_shutdown() {
    let mut queue = full::<1>();
    let (mut adding, mut getter) = waiting(&mut queue, 2);
    queue.at(NOW).shut_down();
    assert_eq!(queue.at(NOW).close(), Wake::ALL);
    assert_eq!(queue.at(NOW).poll_add(&mut adding, &mut getter), HAS_COME);
    assert_eq!(adding.into_result(Ok(())), Err(Rejected::Closed(2)));
    queue.assert_valid();
}
