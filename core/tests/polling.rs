//! Keys that look again after pauses that grow, and the priority of the run that follows.

use std::time::Duration;

use requeue_core::limiter::{Exponential, NoLimit, default_item_based};
use requeue_core::priority::{Levels, Plain, WithSuspension};
use requeue_core::storage::{Fixed, Growable};
use requeue_core::{Action, AddOptions, Added, Finished, Instant, Merge, Policy, Queue};

type Boards = Queue<u8, WithSuspension, Exponential, Fixed<4>>;
type Leveled = Queue<u8, WithSuspension<Levels<3>>, Exponential, Fixed<4>>;

const MS: Duration = Duration::from_millis(1);

fn at(millis: u32) -> Instant {
    Instant::EPOCH + MS * millis
}

/// From 1 ms to 10 ms.
const POLL: Action = Action::poll(MS, Duration::from_millis(10));

/// Runs the key that is ready, and returns the pause after it.
#[track_caller]
fn poll(queue: &mut Boards, now: u32) -> u128 {
    let work = queue.at(at(now)).try_get().unwrap();
    let finished = queue.at(at(now)).finish(work.ticket, POLL);
    queue.assert_valid();
    match finished {
        Finished::Delayed(pause) => pause.as_millis(),
        other => panic!("{other:?}"),
    }
}

/// A key that has polled at 0 and 1 ms, and waits until 3 ms.
fn polling() -> Boards {
    let mut queue = Boards::new(default_item_based());
    queue.at(at(0)).add(1).unwrap();
    assert_eq!(poll(&mut queue, 0), 1);
    assert_eq!(poll(&mut queue, 1), 2);
    queue
}

#[test]
fn pauses_double_up_to_the_longest_and_count_no_failure() {
    let mut queue = polling();
    for (now, pause) in [(3, 4), (7, 8), (15, 10), (25, 10)] {
        assert!(queue.at(at(now - 1)).try_get().is_none());
        assert_eq!(poll(&mut queue, now), pause);
        assert_eq!(queue.failures(&1), 0);
    }
    let growable = Queue::builder().limiter(NoLimit).build();
    let mut queue: Queue<u8, Plain, NoLimit, Growable, _> = growable;
    queue.at(at(0)).add(1).unwrap();
    for (now, pause) in [(0, 1), (1, 2), (3, 4)] {
        let work = queue.at(at(now)).try_get().unwrap();
        let finished = queue.at(at(now)).finish(work.ticket, POLL);
        assert_eq!(finished, Finished::Delayed(MS * pause));
        queue.assert_valid();
    }
}

#[test]
fn failures_stay_on_record() {
    let mut queue = Boards::new(default_item_based());
    let _ = queue.at(at(0)).add_rate_limited(1);
    assert_eq!(poll(&mut queue, 1), 1, "a backoff is no pause");
    assert_eq!(queue.failures(&1), 1);
}

#[test]
fn what_cuts_a_pause_short_starts_them_again() {
    type Cut = (&'static str, fn(&mut Boards));
    let cuts: [Cut; 5] = [
        ("an add", |queue| {
            assert_eq!(queue.at(at(2)).add(1), Ok(Added::Ready));
        }),
        ("an earlier deadline", |queue| {
            let added = queue.at(at(1)).add_after(1, MS);
            assert_eq!(added, Ok(Added::Sooner));
        }),
        ("expedite", |queue| assert!(queue.at(at(2)).expedite(&1))),
        ("another deadline", |queue| {
            let options = AddOptions {
                after: Some(MS),
                merge: Merge::Replace,
                ..AddOptions::new()
            };
            assert!(queue.at(at(1)).add_with(1, options).is_ok());
        }),
        ("a cancel", |queue| {
            assert!(queue.at(at(2)).cancel(&1).is_some());
            assert!(queue.at(at(2)).add(1).is_ok());
        }),
    ];
    for (what, cut) in cuts {
        let mut queue = polling();
        cut(&mut queue);
        queue.assert_valid();
        assert_eq!(poll(&mut queue, 2), 1, "{what}");
        assert_eq!(poll(&mut queue, 3), 2, "{what}");
    }
}

#[test]
fn what_leaves_a_pause_as_it_is_lets_them_grow() {
    let mut queue = polling();
    let added = queue.at(at(2)).add_after(1, 5 * MS);
    assert_eq!(added, Ok(Added::Coalesced), "the pause ends earlier");
    assert_eq!(poll(&mut queue, 3), 4);
    let _ = queue.at(at(7)).try_get().map(|work| {
        assert!(queue.at(at(7)).add(1).is_ok());
        queue.at(at(7)).finish(work.ticket, POLL)
    });
    queue.assert_valid();
    assert_eq!(poll(&mut queue, 7), 1, "it was added during the run");
    assert_eq!(poll(&mut queue, 8), 2);
    // The key is ready already.
    assert_eq!(queue.at(at(10)).why(&1), requeue_core::Why::Ready);
    assert_eq!(queue.at(at(10)).add(1), Ok(Added::Coalesced));
    assert_eq!(poll(&mut queue, 10), 4);
}

#[test]
fn any_other_action_starts_them_again() {
    let actions = [
        Action::Success,
        Action::Retry,
        Action::RequeueAfter(MS),
        Action::Snooze(MS),
        Action::Suspend(MS),
        Action::Release,
        Action::GiveUp,
    ];
    for action in actions {
        let mut queue = polling();
        let work = queue.at(at(3)).try_get().unwrap();
        queue.at(at(3)).finish(work.ticket, action);
        queue.assert_valid();
        if !action.needs_time() {
            assert!(queue.at(at(4)).add(1).is_ok());
        }
        assert_eq!(poll(&mut queue, 4), 1, "{action:?}");
    }
}

#[test]
fn a_suspension_starts_them_again() {
    let mut queue = polling();
    assert!(queue.at(at(2)).suspend(&1, 20 * MS));
    assert!(queue.at(at(2)).resume(&1));
    queue.assert_valid();
    assert_eq!(poll(&mut queue, 3), 1);
}

#[test]
fn a_hold_prolongs_a_pause() {
    let policy = Policy::new().cool_down(5 * MS);
    let mut queue = Boards::new(default_item_based()).with_policy(policy);
    queue.at(at(0)).add(1).unwrap();
    for (now, pause) in [(0, 5), (5, 5), (10, 5), (15, 8), (23, 10)] {
        assert_eq!(poll(&mut queue, now), pause);
    }
}

#[test]
fn an_earlier_deadline_counts_and_its_run_begins_anew() {
    let mut queue = polling();
    let work = queue.at(at(3)).try_get().unwrap();
    assert!(queue.at(at(3)).add_after(1, 2 * MS).is_ok());
    queue.at(at(3)).finish(work.ticket, POLL);
    assert_eq!(poll(&mut queue, 5), 1);
}

#[test]
fn after_shutdown_a_pause_is_left_over() {
    let mut queue = polling();
    let work = queue.at(at(3)).try_get().unwrap();
    queue.at(at(3)).shut_down();
    let finished = queue.at(at(3)).finish(work.ticket, POLL);
    assert_eq!(finished, Finished::Leftover(4 * MS));
    queue.assert_valid();
    assert_eq!(queue.at(at(4)).take_delayed().unwrap().left, 3 * MS);
    queue.assert_valid();
}

#[test]
fn bad_bounds_are_taken_as_they_are() {
    let pause = |min, max| {
        let mut queue = polling();
        let work = queue.at(at(3)).try_get().unwrap();
        queue.at(at(3)).finish(work.ticket, Action::poll(min, max))
    };
    let never = Duration::MAX;
    assert_eq!(pause(9 * MS, MS), Finished::Delayed(MS));
    assert_eq!(pause(Duration::ZERO, MS), Finished::Ready);
    assert_eq!(pause(MS, Duration::ZERO), Finished::Ready);
    assert_eq!(pause(never, never), Finished::Delayed(never));

    let mut queue: Queue<u8, Plain, NoLimit, Fixed<4>> = Queue::new(NoLimit);
    queue.at(at(0)).add(1).unwrap();
    for now in 0..5 {
        let work = queue.at(at(now)).try_get().unwrap();
        let finished = queue.at(at(now)).finish(work.ticket, POLL);
        assert_eq!(finished, Finished::Delayed(MS), "it counts no pauses");
    }
}

/// So many pauses that no count holds them.
#[test]
fn the_count_of_pauses_saturates() {
    let mut queue = Boards::new(default_item_based());
    queue.at(at(0)).add(1).unwrap();
    let last = (0..600).fold(0, |now, _| now + poll(&mut queue, now) as u32);
    assert_eq!(poll(&mut queue, last), 10);
}

fn level(queue: &mut Leveled, now: u32, action: Action) -> u8 {
    let work = queue.at(at(now)).try_get().unwrap();
    queue.at(at(now)).finish(work.ticket, action);
    queue.assert_valid();
    work.priority
}

#[test]
fn each_action_that_asks_for_a_run_chooses_its_priority() {
    let actions = [
        Action::Retry,
        Action::RequeueAfter(MS),
        Action::RequeueAfter(Duration::ZERO),
        Action::Snooze(MS),
        Action::poll(MS, MS),
        Action::Suspend(MS),
    ];
    for action in actions {
        let mut queue = Leveled::new(Exponential::new(MS, MS));
        let urgent = AddOptions {
            priority: Some(1),
            ..AddOptions::new()
        };
        queue.at(at(0)).add_with(1, urgent).unwrap();
        assert_eq!(level(&mut queue, 0, action), 1);
        assert_eq!(
            level(&mut queue, 1, action.with_priority(2)),
            1,
            "{action:?}"
        );
        assert_eq!(
            level(&mut queue, 2, action.with_priority(0)),
            2,
            "{action:?}"
        );
        assert_eq!(
            level(&mut queue, 3, action.with_priority(9)),
            0,
            "{action:?}"
        );
        assert_eq!(level(&mut queue, 4, action), 2, "the highest that there is");
    }
}

#[test]
fn a_priority_is_merged_with_those_of_adds() {
    let mut queue = Leveled::new(Exponential::new(MS, MS));
    queue.at(at(0)).add(1).unwrap();
    let work = queue.at(at(0)).try_get().unwrap();
    let later = AddOptions {
        after: Some(5 * MS),
        priority: Some(2),
        ..AddOptions::new()
    };
    queue.at(at(0)).add_with(1, later).unwrap();
    let snooze = Action::Snooze(MS).with_priority(1);
    queue.at(at(0)).finish(work.ticket, snooze);
    assert_eq!(level(&mut queue, 1, Action::Success), 2, "of one deadline");

    // The add of a dirty key begins a run of its own.
    queue.at(at(2)).add(1).unwrap();
    let work = queue.at(at(2)).try_get().unwrap();
    queue.at(at(2)).add(1).unwrap();
    queue.at(at(2)).finish(work.ticket, snooze);
    assert_eq!(level(&mut queue, 2, Action::Success), 0);
    assert_eq!(level(&mut queue, 3, Action::Success), 1);
}

#[test]
fn actions_that_end_a_key_have_no_priority() {
    for action in [Action::Success, Action::GiveUp, Action::Release] {
        assert_eq!(action.with_priority(1), action);
        assert!(!action.with_priority(1).needs_time());
    }
    let twice = Action::Retry.with_priority(1).with_priority(2);
    assert_eq!(twice.into_parts(), (Action::Retry, Some(2)));
    assert!(twice.needs_time());
}

#[test]
fn leftovers_have_the_priority_of_their_action() {
    let mut queue = Leveled::new(Exponential::new(MS, MS));
    queue.at(at(0)).add(1).unwrap();
    let work = queue.at(at(0)).try_get().unwrap();
    queue.at(at(0)).shut_down();
    let action = Action::Retry.with_priority(2);
    queue.at(at(0)).finish(work.ticket, action);
    assert_eq!(queue.at(at(0)).take_delayed().unwrap().priority, 2);
}
