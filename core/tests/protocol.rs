//! The sleepers' protocol: which getter is woken, and which one owns the timer. The getters are
//! driven by hand.

use std::time::Duration;

use requeue_core::binding::Drained;
use requeue_core::binding::*;
use requeue_core::limiter::NoLimit;
use requeue_core::priority::Plain;
use requeue_core::storage::Growable;
use requeue_core::{Added, Instant, Rejected};

type Keys = Queue<u8, Plain, NoLimit, Growable>;

const NOW: Instant = Instant::EPOCH;

fn at(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}

/// A queue with this many getters asleep, in the order in which they went to sleep.
fn asleep<const N: usize>(queue: &mut Keys) -> [Getter; N] {
    std::array::from_fn(|_| {
        let mut getter = Getter::new();
        let next = queue.at(NOW).poll_get(&mut getter);
        assert!(matches!(next, Next::Wait { .. }));
        getter
    })
}

#[track_caller]
fn works(queue: &mut Keys, now: Instant, getter: &mut Getter, key: u8) -> Wake {
    let mut session = queue.at(now);
    let value = session.poll_get(getter);
    let wake = session.close();
    queue.assert_valid();
    assert!(
        matches!(&value, Next::Work(Work { key: found, .. }) if *found == key),
        "{value:?}"
    );
    wake
}

#[track_caller]
fn waits(queue: &mut Keys, now: Instant, getter: &mut Getter, until: Option<u64>) {
    let mut session = queue.at(now);
    let value = session.poll_get(getter);
    let wake = session.close();
    queue.assert_valid();
    assert_eq!(
        value,
        Next::Wait {
            until: until.map(at)
        }
    );
    assert_eq!(wake, Wake::NONE);
}

#[track_caller]
fn add(queue: &mut Keys, key: u8, now: Instant) -> Wake {
    let mut session = queue.at(now);
    assert_eq!(session.add(key), Ok(Added::Ready));
    let wake = session.close();
    queue.assert_valid();
    wake
}

#[track_caller]
fn add_after(queue: &mut Keys, key: u8, nanos: u64) -> Wake {
    let mut session = queue.at(NOW);
    let added = session.add_after(key, Duration::from_nanos(nanos));
    assert!(matches!(added, Ok(Added::Delayed | Added::Sooner)));
    let wake = session.close();
    queue.assert_valid();
    wake
}

#[test]
fn no_wake_is_sent_while_no_getter_sleeps() {
    let mut queue = Keys::growable(NoLimit);
    assert_eq!(add(&mut queue, 1, NOW), Wake::NONE);
}

#[test]
fn one_wake_is_in_flight_and_the_woken_wakes_the_next() {
    let mut queue = Keys::growable(NoLimit);
    let [mut first, mut second] = asleep(&mut queue);
    assert_eq!(add(&mut queue, 1, NOW), Wake::ONE);
    assert_eq!(add(&mut queue, 2, NOW), Wake::NONE);
    assert_eq!(works(&mut queue, NOW, &mut first, 1), Wake::ONE);
    assert_eq!(works(&mut queue, NOW, &mut second, 2), Wake::NONE);
}

#[test]
fn a_getter_that_was_awake_and_takes_the_work_leaves_no_wake_behind() {
    let mut queue = Keys::growable(NoLimit);
    let [mut sleeper] = asleep(&mut queue);
    assert_eq!(add(&mut queue, 1, NOW), Wake::ONE);
    assert_eq!(works(&mut queue, NOW, &mut Getter::new(), 1), Wake::NONE);
    waits(&mut queue, NOW, &mut sleeper, None);
    assert_eq!(add(&mut queue, 2, NOW), Wake::ONE, "no wake is in flight");
}

#[test]
fn one_sleeper_owns_the_timer() {
    let mut queue = Keys::growable(NoLimit);
    let _ = add_after(&mut queue, 1, 50);
    waits(&mut queue, NOW, &mut Getter::new(), Some(50));
    waits(&mut queue, NOW, &mut Getter::new(), None);
    waits(&mut queue, NOW, &mut Getter::new(), None);
}

#[test]
fn an_earlier_deadline_wakes_a_sleeper_that_takes_the_timer_over() {
    let mut queue = Keys::growable(NoLimit);
    let _ = add_after(&mut queue, 1, 50);
    let (mut owner, mut other) = (Getter::new(), Getter::new());
    waits(&mut queue, NOW, &mut owner, Some(50));
    waits(&mut queue, NOW, &mut other, None);
    assert_eq!(add_after(&mut queue, 2, 60), Wake::NONE, "it comes later");
    assert_eq!(add_after(&mut queue, 3, 20), Wake::ONE);
    waits(&mut queue, NOW, &mut other, Some(20));
    // The old owner looks at its own time: the timer has another owner.
    waits(&mut queue, at(10), &mut owner, None);
    assert_eq!(works(&mut queue, at(20), &mut other, 3), Wake::ONE);
    waits(&mut queue, at(20), &mut owner, Some(50));
}

#[test]
fn a_timer_owner_that_leaves_with_other_work_passes_the_timer_on() {
    let mut queue = Keys::growable(NoLimit);
    let _ = add_after(&mut queue, 1, 50);
    let (mut owner, mut other) = (Getter::new(), Getter::new());
    waits(&mut queue, NOW, &mut owner, Some(50));
    waits(&mut queue, NOW, &mut other, None);
    assert_eq!(add(&mut queue, 2, NOW), Wake::ONE);
    assert_eq!(works(&mut queue, NOW, &mut owner, 2), Wake::ONE);
    waits(&mut queue, NOW, &mut other, Some(50));
}

#[test]
fn two_keys_due_at_once_reach_two_sleepers() {
    let mut queue = Keys::growable(NoLimit);
    let _ = add_after(&mut queue, 1, 50);
    let _ = add_after(&mut queue, 2, 50);
    let (mut owner, mut other) = (Getter::new(), Getter::new());
    waits(&mut queue, NOW, &mut owner, Some(50));
    waits(&mut queue, NOW, &mut other, None);
    assert_eq!(works(&mut queue, at(50), &mut owner, 1), Wake::ONE);
    assert_eq!(works(&mut queue, at(50), &mut other, 2), Wake::NONE);
}

#[test]
fn a_timer_owner_that_is_cancelled_passes_the_timer_on() {
    let mut queue = Keys::growable(NoLimit);
    let _ = add_after(&mut queue, 1, 50);
    let (mut owner, mut other) = (Getter::new(), Getter::new());
    waits(&mut queue, NOW, &mut owner, Some(50));
    waits(&mut queue, NOW, &mut other, None);
    queue.at(NOW).leave(&mut owner);
    assert_eq!(queue.at(NOW).close(), Wake::ONE);
    waits(&mut queue, NOW, &mut other, Some(50));
}

#[test]
fn a_wake_that_reached_a_cancelled_getter_is_passed_on() {
    let mut queue = Keys::growable(NoLimit);
    let [mut first, mut second] = asleep(&mut queue);
    assert_eq!(add(&mut queue, 1, NOW), Wake::ONE);
    queue.at(NOW).leave(&mut first);
    assert_eq!(queue.at(NOW).close(), Wake::ONE);
    assert_eq!(works(&mut queue, NOW, &mut second, 1), Wake::NONE);
}

#[test]
fn a_delay_without_end_arms_no_timer() {
    let mut queue = Keys::growable(NoLimit);
    let effect = queue.at(NOW).add_after(1, Duration::MAX);
    assert_eq!(effect, Ok(Added::Delayed));
    waits(&mut queue, NOW, &mut Getter::new(), None);
    waits(&mut queue, Instant::NEVER, &mut Getter::new(), None);
}

#[test]
fn a_paused_queue_arms_no_timer_and_wakes_no_getter() {
    let mut queue = Keys::growable(NoLimit);
    queue.at(NOW).pause();
    let _ = queue.at(NOW).add_at(1, at(5));
    let mut getter = Getter::new();
    for now in [NOW, at(5), at(6)] {
        waits(&mut queue, now, &mut getter, None);
    }
    let _ = queue.at(at(6)).add(2);
    assert_eq!(queue.at(at(6)).close(), Wake::NONE);
    assert_eq!(queue.next_deadline(), None);
    queue.at(NOW).unpause();
    assert_eq!(queue.at(NOW).close(), Wake::ONE);
    assert_eq!(works(&mut queue, at(6), &mut getter, 1), Wake::NONE);
}

#[test]
fn the_last_run_to_end_wakes_every_call_that_waits_for_the_drain() {
    let mut queue = Keys::growable(NoLimit);
    let _ = add(&mut queue, 1, NOW);
    let work = queue.at(NOW).try_get().unwrap();
    let drain = queue.at(NOW).begin_drain();
    assert_eq!(queue.at(NOW).close(), Wake::ALL);
    assert_eq!(queue.drain_status(&drain), Drained::Pending);
    queue.at(NOW).release(work.ticket);
    assert_eq!(queue.at(NOW).close(), Wake::ALL);
    assert_eq!(queue.drain_status(&drain), Drained::Complete);
    let rejected = queue.at(NOW).add(2);
    assert_eq!(rejected, Err(Rejected::Closed(2)));
    assert_eq!(queue.at(NOW).close(), Wake::NONE);
}

#[test]
fn shutdown_wakes_every_sleeper_and_closes_it() {
    let mut queue = Keys::growable(NoLimit);
    let [mut first, mut second] = asleep(&mut queue);
    queue.at(NOW).shut_down();
    assert_eq!(queue.at(NOW).close(), Wake::ALL);
    for getter in [&mut first, &mut second] {
        assert_eq!(queue.at(NOW).poll_get(getter), Next::Closed);
    }
    assert_eq!(queue.asleep(), 0);
}

#[test]
fn a_getter_that_was_woken_with_all_others_is_not_woken_twice() {
    let mut queue = Keys::growable(NoLimit);
    let _ = add(&mut queue, 1, NOW);
    let work = queue.at(NOW).try_get().unwrap();
    assert_eq!(queue.at(NOW).add(1), Ok(Added::Dirty));
    let [_first, _second] = asleep(&mut queue);
    queue.at(NOW).shut_down();
    assert_eq!(queue.at(NOW).close(), Wake::ALL);
    // The key becomes ready, but both sleepers were woken already.
    queue.at(NOW).release(work.ticket);
    assert_eq!(queue.at(NOW).close(), Wake::NONE);
    // A getter that was awake takes it: it clears no wake.
    assert_eq!(works(&mut queue, NOW, &mut Getter::new(), 1), Wake::NONE);
}

#[test]
fn a_later_shut_down_interrupts_a_drain() {
    let mut queue = Keys::growable(NoLimit);
    let _ = add(&mut queue, 1, NOW);
    let drain = queue.at(NOW).begin_drain();
    queue.at(NOW).shut_down();
    assert_eq!(queue.drain_status(&drain), Drained::Interrupted);
}
