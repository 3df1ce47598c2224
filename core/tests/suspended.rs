//! Keys that wait for an event.

use std::time::Duration;

use requeue_core::binding::{Drained, Sweep};
use requeue_core::limiter::{Exponential, NoLimit, RateLimiter};
use requeue_core::priority::{Levels, Plain, WithSuspension};
use requeue_core::storage::{Fixed, Growable};
use requeue_core::{
    Action, AddOptions, Added, Finished, Instant, KeyState, Merge, Policy, Queue, Why,
};

type Boards<L = NoLimit> = Queue<u8, WithSuspension, L, Fixed<4>>;
type Leveled = Queue<u8, WithSuspension<Levels<3>>, NoLimit, Fixed<4>>;

const MS: Duration = Duration::from_millis(1);
const NEVER: Duration = Duration::MAX;

fn at(millis: u32) -> Instant {
    Instant::EPOCH + MS * millis
}

/// A key whose run has ended with `Action::Suspend(10 ms)` at 0 ms.
fn suspended<L: RateLimiter>(limiter: L) -> Boards<L> {
    let mut queue = Boards::new(limiter);
    queue.at(at(0)).add(1).unwrap();
    let work = queue.at(at(0)).try_get().unwrap();
    let finished = queue
        .at(at(0))
        .finish(work.ticket, Action::Suspend(10 * MS));
    assert_eq!(finished, Finished::Suspended(10 * MS));
    queue.assert_valid();
    queue
}

fn key<L: RateLimiter>(queue: &mut Boards<L>, now: u32) -> Option<u8> {
    let work = queue.at(at(now)).try_get()?;
    queue.assert_valid();
    queue.at(at(now)).release(work.ticket);
    queue.assert_valid();
    Some(work.key)
}

#[test]
fn a_key_is_not_handed_out_before_it_is_resumed() {
    let mut queue = suspended(NoLimit);
    assert_eq!(
        queue.at(at(1)).add(1),
        Ok(Added::Coalesced),
        "it runs anyway"
    );
    assert_eq!(key(&mut queue, 9), None);
    let stats = queue.stats();
    assert_eq!((stats.total, stats.suspended, stats.delayed), (1, 1, 0));
    let until = at(10);
    assert_eq!(
        queue.at(at(9)).why(&1),
        Why::Suspended { until, again: true }
    );
    assert!(queue.at(at(9)).resume(&1));
    assert!(!queue.at(at(9)).resume(&1), "twice");
    let work = queue.at(at(9)).try_get().unwrap();
    assert!(!work.timed_out);
    queue.at(at(9)).finish(work.ticket, Action::Success);
    queue.assert_valid();
    assert_eq!(queue.stats().total, 0, "nothing is left");
}

#[test]
fn a_timeout_makes_a_key_ready_in_any_case_and_its_run_learns_so() {
    let mut queue = suspended(NoLimit);
    let work = queue.at(at(10)).try_get().unwrap();
    assert!(work.timed_out);
    queue.at(at(10)).add(1).unwrap();
    queue.at(at(10)).finish(work.ticket, Action::Success);
    let next = queue.at(at(10)).try_get().unwrap();
    assert!(!next.timed_out, "only the first run");
    queue.at(at(10)).add(1).unwrap();
    queue.at(at(10)).release(next.ticket);

    // Without an action that asks for a run, and without an add.
    let mut queue = Boards::new(NoLimit);
    queue.at(at(0)).add(1).unwrap();
    let work = queue.at(at(0)).try_get().unwrap();
    assert!(queue.at(at(0)).suspend(&1, 5 * MS));
    assert_eq!(
        queue.at(at(1)).release(work.ticket),
        Finished::Suspended(4 * MS)
    );
    assert_eq!(key(&mut queue, 4), None);
    assert!(queue.at(at(5)).try_get().unwrap().timed_out);
}

#[test]
fn a_resume_leaves_nothing_of_a_key_that_nobody_added() {
    let mut queue = Boards::new(NoLimit);
    queue.at(at(0)).add(1).unwrap();
    let work = queue.at(at(0)).try_get().unwrap();
    assert!(queue.at(at(0)).suspend(&1, NEVER));
    queue.at(at(0)).finish(work.ticket, Action::Success);
    assert_eq!(queue.next_deadline(), None);
    assert!(queue.at(at(1)).resume(&1));
    assert_eq!(queue.stats().total, 0);
    queue.assert_valid();
    assert!(!queue.at(at(1)).suspend(&1, MS), "it is not here");
}

#[test]
fn a_resume_that_precedes_the_suspension_is_not_lost() {
    for suspends_first in [false, true] {
        let mut queue = Boards::new(NoLimit);
        queue.at(at(0)).add(1).unwrap();
        let work = queue.at(at(0)).try_get().unwrap();
        if suspends_first {
            assert!(queue.at(at(0)).suspend(&1, NEVER));
        }
        assert_eq!(queue.at(at(1)).resume(&1), suspends_first);
        queue.assert_valid();
        let finished = queue.at(at(2)).finish(work.ticket, Action::Suspend(NEVER));
        assert_eq!(finished, Finished::Ready);
        queue.assert_valid();

        // The next run begins anew.
        let work = queue.at(at(2)).try_get().unwrap();
        let finished = queue.at(at(2)).finish(work.ticket, Action::Suspend(NEVER));
        assert_eq!(finished, Finished::Suspended(NEVER));
    }
}

#[test]
fn a_suspend_that_follows_a_resume_counts() {
    let mut queue = Boards::new(NoLimit);
    queue.at(at(0)).add(1).unwrap();
    let work = queue.at(at(0)).try_get().unwrap();
    assert!(!queue.at(at(0)).resume(&1));
    assert!(queue.at(at(0)).suspend(&1, NEVER));
    queue.at(at(0)).finish(work.ticket, Action::Success);
    queue.assert_valid();
    assert_eq!(queue.stats().suspended, 1);
}

#[test]
fn a_delay_goes_on_while_its_key_is_suspended() {
    let mut queue = Boards::new(NoLimit);
    queue.at(at(0)).add_after(1, 5 * MS).unwrap();
    assert!(queue.at(at(0)).suspend(&1, NEVER));
    queue.assert_valid();
    assert_eq!(queue.at(at(0)).add_after(1, 3 * MS), Ok(Added::Sooner));
    assert_eq!(queue.at(at(0)).add_after(1, 4 * MS), Ok(Added::Coalesced));
    assert_eq!(queue.at(at(0)).state(&1).unwrap().due, Some(at(3)));
    assert!(queue.at(at(1)).resume(&1));
    assert_eq!(key(&mut queue, 2), None);
    assert_eq!(key(&mut queue, 3), Some(1));

    // It passes meanwhile.
    queue.at(at(4)).add_after(1, MS).unwrap();
    assert!(queue.at(at(4)).suspend(&1, 10 * MS));
    assert_eq!(key(&mut queue, 6), None);
    assert!(queue.at(at(6)).resume(&1));
    assert_eq!(key(&mut queue, 6), Some(1));

    // It is later than the timeout, which adds a run and takes none away.
    queue.at(at(7)).add_after(1, 9 * MS).unwrap();
    assert!(queue.at(at(7)).suspend(&1, MS));
    assert_eq!(key(&mut queue, 8), Some(1));
    assert_eq!(key(&mut queue, 15), None);
    assert_eq!(key(&mut queue, 16), Some(1));
}

/// As for any other key: what has passed can be neither taken back nor moved.
#[test]
fn a_deadline_that_passes_during_the_suspension_is_an_add_that_has_happened() {
    let delayed = || {
        let mut queue = Boards::new(NoLimit);
        queue.at(at(0)).add_after(1, MS).unwrap();
        assert!(queue.at(at(0)).suspend(&1, NEVER));
        queue
    };
    let mut queue = delayed();
    assert_eq!(
        queue.at(at(0)).cancel_delay(&1),
        Some(at(1)),
        "it is pending"
    );
    let mut queue = delayed();
    assert_eq!(queue.at(at(5)).cancel_delay(&1), None);
    queue.assert_valid();
    assert!(queue.at(at(6)).resume(&1));
    assert_eq!(key(&mut queue, 6), Some(1));

    let mut queue = delayed();
    assert_eq!(queue.at(at(5)).add_after(1, 10 * MS), Ok(Added::Delayed));
    assert!(queue.at(at(6)).resume(&1));
    queue.assert_valid();
    assert_eq!((key(&mut queue, 6), key(&mut queue, 14)), (Some(1), None));
    assert_eq!(key(&mut queue, 15), Some(1), "both adds are worked on");
}

#[test]
fn a_failure_is_held_and_suspended_for_as_long_as_the_later_of_both() {
    let policy = Policy::new().hold_failures();
    for (resumed, runs) in [(1, 8), (9, 9)] {
        let limiter = Exponential::new(8 * MS, 1000 * MS);
        let mut queue = Boards::new(limiter).with_policy(policy.clone());
        queue.at(at(0)).add(1).unwrap();
        let work = queue.at(at(0)).try_get().unwrap();
        assert!(queue.at(at(0)).suspend(&1, NEVER));
        queue.at(at(0)).finish(work.ticket, Action::Retry);
        queue.assert_valid();
        queue.at(at(0)).add(1).unwrap();
        assert_eq!(key(&mut queue, resumed - 1), None);
        assert!(queue.at(at(resumed)).resume(&1));
        queue.assert_valid();
        if resumed < runs {
            assert_eq!(key(&mut queue, runs - 1), None);
        }
        assert_eq!(key(&mut queue, runs), Some(1));
    }
}

#[test]
fn a_key_that_is_held_and_suspended_is_added_at_once_by_every_add_for_now() {
    type Add = fn(&mut Boards<Exponential>) -> Added;
    let adds: [(&str, Add); 6] = [
        ("add", |queue| queue.at(at(1)).add(1).unwrap()),
        ("add_after", |queue| {
            queue.at(at(1)).add_after(1, Duration::ZERO).unwrap()
        }),
        ("add_at", |queue| queue.at(at(1)).add_at(1, at(0)).unwrap()),
        ("add_with", |queue| {
            let now = AddOptions {
                after: Some(Duration::ZERO),
                merge: Merge::Replace,
                ..AddOptions::new()
            };
            queue.at(at(1)).add_with(1, now).unwrap().added
        }),
        ("once", |queue| {
            let once = AddOptions {
                merge: Merge::Once,
                ..AddOptions::new()
            };
            queue.at(at(1)).add_with(1, once).unwrap().added
        }),
        ("add_debounced", |queue| {
            let max = 50 * MS;
            queue
                .at(at(1))
                .add_debounced(1, Duration::ZERO, max)
                .unwrap()
        }),
    ];
    for (name, add) in adds {
        let policy = Policy::new().cool_down(8 * MS);
        let limiter = Exponential::new(MS, MS);
        let mut queue = Boards::new(limiter).with_policy(policy);
        queue.at(at(0)).add(1).unwrap();
        let work = queue.at(at(0)).try_get().unwrap();
        assert!(queue.at(at(0)).suspend(&1, NEVER));
        queue.at(at(0)).finish(work.ticket, Action::Success);
        assert_eq!(add(&mut queue), Added::Delayed, "{name}");
        queue.assert_valid();
        assert_eq!(queue.at(at(2)).cancel_delay(&1), None, "{name}: no delay");
        assert!(queue.at(at(2)).resume(&1));
        queue.assert_valid();
        assert_eq!(key(&mut queue, 7), None, "{name}");
        assert_eq!(key(&mut queue, 8), Some(1), "{name}");
    }
}

/// The hold has set the key's deadline before the failures are forgotten, although no call has
/// looked since the timeout.
#[test]
fn failures_that_are_forgotten_after_the_timeout_leave_the_deadline_of_their_hold() {
    let policy = Policy::new().hold_failures();
    let limiter = Exponential::new(8 * MS, 1000 * MS);
    let mut queue = Boards::new(limiter).with_policy(policy);
    queue.at(at(0)).add(1).unwrap();
    let work = queue.at(at(0)).try_get().unwrap();
    queue.at(at(0)).finish(work.ticket, Action::Retry);
    assert!(queue.at(at(0)).suspend(&1, 3 * MS));
    assert_eq!(queue.at(at(5)).forget(&1), 1);
    queue.assert_valid();
    assert_eq!(key(&mut queue, 7), None);
    assert_eq!(key(&mut queue, 8), Some(1));
}

#[test]
fn what_an_action_asks_for_is_kept_beside_the_suspension() {
    for action in [
        Action::Retry,
        Action::RequeueAfter(8 * MS),
        Action::Snooze(8 * MS),
    ] {
        let mut queue = Boards::new(Exponential::new(8 * MS, 1000 * MS));
        queue.at(at(0)).add(1).unwrap();
        let work = queue.at(at(0)).try_get().unwrap();
        assert!(queue.at(at(0)).suspend(&1, 20 * MS));
        queue.at(at(0)).finish(work.ticket, action);
        let failures = u32::from(action == Action::Retry);
        assert_eq!(queue.failures(&1), failures);
        assert!(queue.at(at(1)).resume(&1));
        assert_eq!(key(&mut queue, 7), None, "{action:?}");
        assert_eq!(key(&mut queue, 8), Some(1), "{action:?}");
    }
}

#[test]
fn a_run_that_outlasts_the_timeout_is_followed_by_another() {
    let mut queue = Boards::new(NoLimit);
    queue.at(at(0)).add(1).unwrap();
    let work = queue.at(at(0)).try_get().unwrap();
    assert!(queue.at(at(0)).suspend(&1, 10 * MS));
    queue.at(at(30)).finish(work.ticket, Action::Success);
    assert!(queue.at(at(30)).try_get().unwrap().timed_out);
}

#[test]
fn priorities_are_merged_while_a_key_is_suspended() {
    let mut queue = Leveled::new(NoLimit);
    let level = |level| AddOptions {
        priority: Some(level),
        ..AddOptions::new()
    };
    queue.at(at(0)).add_with(1, level(1)).unwrap();
    let work = queue.at(at(0)).try_get().unwrap();
    queue.at(at(0)).finish(work.ticket, Action::Suspend(NEVER));
    queue.assert_valid();
    let added = queue.at(at(0)).add_with(1, level(0)).unwrap().added;
    assert_eq!(added, Added::Coalesced);
    let added = queue.at(at(0)).add_with(1, level(2)).unwrap().added;
    assert_eq!(added, Added::Raised);
    queue.assert_valid();
    assert!(queue.at(at(0)).resume(&1));
    assert_eq!(queue.at(at(0)).try_get().unwrap().priority, 2);
}

#[test]
fn rules_of_merging_move_the_own_deadline_of_a_suspended_key() {
    let later = |merge| AddOptions {
        after: Some(7 * MS),
        merge,
        ..AddOptions::new()
    };
    for (merge, due) in [
        (Merge::Earliest, 5),
        (Merge::Latest, 7),
        (Merge::Replace, 7),
        (Merge::Keep, 5),
        (Merge::Once, 5),
    ] {
        let mut queue = Boards::new(NoLimit);
        queue.at(at(0)).add_after(1, 5 * MS).unwrap();
        assert!(queue.at(at(0)).suspend(&1, 50 * MS));
        let _ = queue.at(at(0)).add_with(1, later(merge)).unwrap();
        queue.assert_valid();
        assert_eq!(
            queue.at(at(0)).state(&1).unwrap().due,
            Some(at(due)),
            "{merge:?}"
        );
        let until = queue.at(at(0)).state(&1).unwrap().suspended;
        assert_eq!(until, Some(at(50)));
    }
}

#[test]
fn a_burst_of_debounced_adds_goes_on_while_its_key_is_suspended() {
    let mut queue = Boards::new(NoLimit);
    queue.at(at(0)).add_debounced(1, 5 * MS, 50 * MS).unwrap();
    assert!(queue.at(at(0)).suspend(&1, NEVER));
    assert_eq!(
        queue.at(at(3)).add_debounced(1, 5 * MS, 50 * MS),
        Ok(Added::Later)
    );
    assert!(queue.at(at(4)).resume(&1));
    assert_eq!(queue.at(at(4)).why(&1), Why::Debounced { until: at(8) });
    assert_eq!(
        queue.at(at(5)).add_debounced(1, 5 * MS, 50 * MS),
        Ok(Added::Later)
    );
    assert_eq!(key(&mut queue, 9), None);
    assert_eq!(key(&mut queue, 10), Some(1));
}

#[test]
fn a_ready_key_leaves_its_place_and_returns() {
    let mut queue = Boards::new(NoLimit);
    let _ = queue.at(at(0)).add_many([1, 2], |_| {});
    assert!(queue.at(at(0)).suspend(&1, NEVER));
    queue.assert_valid();
    assert_eq!(queue.at(at(0)).len(), 1);
    assert!(queue.at(at(0)).resume(&1));
    assert_eq!(key(&mut queue, 0), Some(2));
    assert_eq!(key(&mut queue, 0), Some(1));
}

#[test]
fn a_second_timeout_replaces_the_first() {
    let mut queue = suspended(NoLimit);
    assert!(queue.at(at(1)).suspend(&1, 20 * MS));
    queue.assert_valid();
    assert_eq!(key(&mut queue, 20), None);
    assert_eq!(key(&mut queue, 21), Some(1));
}

#[test]
fn a_suspension_for_ever_ends_by_a_resume_alone() {
    let mut queue = Boards::new(NoLimit);
    queue.at(at(0)).add(1).unwrap();
    let work = queue.at(at(0)).try_get().unwrap();
    queue.at(at(0)).finish(work.ticket, Action::Suspend(NEVER));
    assert_eq!(queue.next_deadline(), None, "no timer");
    let last = Instant::from_nanos(u64::MAX - 1);
    assert!(queue.at(last).try_get().is_none());
    queue.assert_valid();
    assert!(queue.at(last).resume(&1));
    assert!(!queue.at(last).try_get().unwrap().timed_out);
}

#[test]
fn a_key_that_is_not_there_is_neither_suspended_nor_resumed() {
    let mut queue = suspended(NoLimit);
    let before = queue.stats();
    assert!(!queue.at(at(1)).suspend(&2, MS));
    assert!(!queue.at(at(1)).resume(&2));
    queue.assert_valid();
    assert_eq!(queue.stats(), before);
    assert_eq!(
        queue.at(at(1)).add(2),
        Ok(Added::Ready),
        "nothing is kept of it"
    );
}

#[test]
fn cancel_ends_a_suspension_and_one_that_will_begin() {
    let mut queue = suspended(NoLimit);
    let was = queue.at(at(0)).cancel(&1).unwrap();
    assert_eq!(was.suspended, Some(at(10)));
    queue.assert_valid();
    assert_eq!(queue.stats().total, 0);

    queue.at(at(0)).add(1).unwrap();
    let work = queue.at(at(0)).try_get().unwrap();
    assert!(queue.at(at(0)).suspend(&1, 10 * MS));
    assert!(queue.at(at(0)).cancel(&1).is_some());
    assert_eq!(queue.at(at(0)).release(work.ticket), Finished::Idle);
    queue.assert_valid();
}

#[test]
fn what_takes_a_delay_back_or_ends_it_leaves_the_suspension() {
    let mut queue = suspended(NoLimit);
    assert_eq!(queue.at(at(0)).cancel_delay(&1), None);
    assert!(!queue.at(at(0)).expedite(&1));
    queue.at(at(0)).add_after(1, 5 * MS).unwrap();
    assert_eq!(queue.at(at(0)).cancel_delay(&1), Some(at(5)));
    queue.at(at(0)).add_after(1, 5 * MS).unwrap();
    assert!(queue.at(at(0)).expedite(&1));
    let mut sweep = Sweep::new();
    while queue.at(at(0)).expedite_some(&mut sweep) {}
    queue.assert_valid();
    assert_eq!(queue.at(at(0)).forget(&1), 0);
    assert_eq!(key(&mut queue, 0), None);
    assert_eq!(queue.stats().suspended, 1);
}

#[test]
fn a_suspended_key_is_handed_back_with_the_time_left() {
    let mut queue = suspended(Exponential::new(MS, MS));
    let _ = queue.at(at(1)).add_rate_limited(1).unwrap();
    queue.at(at(2)).add(2).unwrap();
    let work = queue.at(at(2)).try_get().unwrap();
    let _drain = queue.at(at(2)).begin_drain();
    assert!(!queue.at(at(2)).resume(&1), "after shutdown");
    assert!(!queue.at(at(2)).suspend(&2, MS), "after shutdown");
    let finished = queue.at(at(3)).finish(work.ticket, Action::Suspend(4 * MS));
    assert_eq!(finished, Finished::Leftover(4 * MS));
    queue.assert_valid();
    assert!(queue.is_drained());
    let two = queue.at(at(4)).take_delayed().unwrap();
    assert_eq!((two.key, two.left), (2, 3 * MS));
    let one = queue.at(at(4)).take_delayed().unwrap();
    assert_eq!((one.key, one.left, one.failures), (1, 6 * MS, 1));
    queue.assert_valid();
    let stats = queue.stats();
    assert_eq!((stats.total, stats.failure_records), (1, 1));
}

#[test]
fn a_snapshot_saves_a_suspended_key_as_a_shutdown_hands_it_back() {
    let mut queue = suspended(NoLimit);
    queue.at(at(0)).add_after(1, 3 * MS).unwrap();
    let (mut saved, mut sweep) = (Vec::new(), Sweep::new());
    while queue.at(at(4)).snapshot_some(&mut sweep, |key, state| {
        saved.extend(state.leftover(*key, at(4)));
    }) {}
    queue.at(at(4)).shut_down();
    let handed_back = queue.at(at(4)).take_delayed();
    assert_eq!(saved.pop(), handed_back);
    assert_eq!(handed_back.map(|it| it.left), Some(6 * MS));
}

#[test]
fn a_fixed_queue_without_room_for_suspensions_snoozes() {
    let mut queue: Queue<u8, Plain, NoLimit, Fixed<2>> = Queue::new(NoLimit);
    queue.at(at(0)).add(1).unwrap();
    let work = queue.at(at(0)).try_get().unwrap();
    let finished = queue.at(at(0)).finish(work.ticket, Action::Suspend(5 * MS));
    assert_eq!(finished, Finished::Delayed(5 * MS));
    assert_eq!(queue.at(at(1)).add(1), Ok(Added::Ready), "no add waits");
}

#[test]
fn a_queue_that_grows_suspends_a_million_keys_and_keeps_none() {
    let mut queue = Queue::builder().limiter(NoLimit).build();
    let keys = if cfg!(miri) { 100 } else { 100_000_u32 };
    for key in 0..keys {
        queue.at(at(0)).add(key).unwrap();
        let work = queue.at(at(0)).try_get().unwrap();
        queue.at(at(0)).finish(work.ticket, Action::Suspend(NEVER));
    }
    assert_eq!(queue.stats().suspended, keys as usize);
    for key in 0..keys {
        assert!(queue.at(at(0)).resume(&key));
        let work = queue.at(at(0)).try_get().unwrap();
        assert_eq!(work.key, key);
        queue.at(at(0)).finish(work.ticket, Action::Success);
    }
    assert_eq!(queue.stats().total, 0);
    let _: &Queue<u32, _, NoLimit, Growable> = &queue;
}

/// The key's suspension has ended, and so has its own delay. The shutdown applies the first of the
/// two deadlines, and the cancel the second: another key is due behind them.
#[test]
fn a_drain_waits_for_the_key_that_is_due_behind_a_cancelled_one() {
    let mut queue = Boards::new(NoLimit);
    queue.limit_due_keys(1);
    queue.at(at(0)).add(1).unwrap();
    assert!(queue.at(at(0)).suspend(&1, MS));
    queue.at(at(0)).add_after(1, 2 * MS).unwrap();
    queue.at(at(0)).add_after(2, 3 * MS).unwrap();
    let drain = queue.at(at(5)).begin_drain();
    queue.assert_valid();
    assert!(queue.at(at(5)).cancel(&1).is_some());
    queue.assert_valid();
    assert_eq!(queue.drain_status(&drain), Drained::Pending);
    assert_eq!(key(&mut queue, 5), Some(2));
    assert_eq!(queue.drain_status(&drain), Drained::Complete);
}

/// The end of a suspension takes the turn of the shutdown, and a hold delays its key. The deadline
/// of the last active key takes the turn of its run's end, which delays or suspends that key.
#[test]
fn a_drain_waits_for_the_key_that_is_due_behind_an_ended_run() {
    for last in [Action::Release, Action::Suspend(5 * MS)] {
        let policy = Policy::new().cool_down(9 * MS);
        let mut queue = Boards::new(NoLimit).with_policy(policy);
        queue.limit_due_keys(1);
        queue.at(at(0)).add_many([1, 2], |_| {});
        let one = queue.at(at(0)).try_get().unwrap();
        let two = queue.at(at(0)).try_get().unwrap();
        queue.at(at(0)).finish(one.ticket, Action::Suspend(MS));
        queue.at(at(0)).add_after(2, 2 * MS).unwrap();
        queue.at(at(0)).add_after(3, 3 * MS).unwrap();
        let drain = queue.at(at(5)).begin_drain();
        queue.assert_valid();
        queue.at(at(5)).finish(two.ticket, last);
        queue.assert_valid();
        assert_eq!(queue.drain_status(&drain), Drained::Pending, "{last:?}");
        assert_eq!(key(&mut queue, 5), Some(3), "{last:?}");
        assert_eq!(queue.drain_status(&drain), Drained::Complete);
    }
}

#[test]
fn a_snapshot_at_the_end_of_time_shows_a_deadline_that_never_passes() {
    let (mut queue, end) = (Boards::new(NoLimit), Instant::NEVER);
    queue.at(at(0)).add(1).unwrap();
    let work = queue.at(at(0)).try_get().unwrap();
    assert!(queue.at(at(0)).suspend(&1, Duration::ZERO));
    let added = queue.at(end).add_after(1, Duration::ZERO);
    assert_eq!(added, Ok(Added::Delayed));
    let _ = queue.at(end).release(work.ticket);
    let mut seen = None;
    let see = |_: &u8, state: KeyState| seen = state.due;
    assert!(!queue.at(end).snapshot_some(&mut Sweep::new(), see));
    assert_eq!(seen, Some(end));
}
