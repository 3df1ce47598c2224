//! Groups: whose turn it is, and what their limits do.

use core::time::Duration;

use requeue_core::binding::RandomState;
use requeue_core::binding::Sweep;
use requeue_core::binding::{Adding, Getter, Next, Wake, Work};
use requeue_core::limiter::{NoLimit, default_item_based};
use requeue_core::priority::{Aging, Groups, Levels, Plain};
use requeue_core::storage::{Fixed, Growable};
use requeue_core::{Action, AddOptions, Finished, GroupLimits, Instant, Queue, Rejected};

mod odd;

/// A key is a group and a number.
type Key = (u8, u32);
type Shared = Queue<Key, Groups<u8>, NoLimit, Growable>;

const NOW: Instant = Instant::EPOCH;

fn at(millis: u64) -> Instant {
    NOW + Duration::from_millis(millis)
}

fn queue() -> Shared {
    Queue::growable_with_groups(NoLimit, (), RandomState::default(), 0, |key| key.0)
}

fn add(queue: &mut Shared, keys: impl IntoIterator<Item = Key>) {
    for key in keys {
        queue.at(NOW).add(key).unwrap();
        queue.assert_valid();
    }
}

/// Takes the next key, without an end of its run.
fn take(queue: &mut Shared, now: Instant) -> Option<Work<Key>> {
    let work = queue.at(now).try_get();
    queue.assert_valid();
    work
}

fn keys(queue: &mut Shared, now: Instant) -> Vec<Key> {
    std::iter::from_fn(|| take(queue, now).map(|work| work.key)).collect()
}

fn finish(queue: &mut Shared, work: Work<Key>) -> Wake {
    let mut session = queue.at(NOW);
    assert_ne!(session.release(work.ticket), Finished::Stale);
    let wake = session.close();
    queue.assert_valid();
    wake
}

#[test]
fn a_backlog_delays_the_others_by_one_turn() {
    let backlog = if cfg!(miri) { 50 } else { 100_000 };
    let mut queue = queue();
    for number in 0..backlog {
        queue.at(NOW).add((0, number)).unwrap();
    }
    for group in 1..100 {
        queue.at(NOW).add((group, 0)).unwrap();
    }
    let mut next = || queue.at(NOW).try_get().unwrap().key;
    assert!((0..100).map(|_| next().0).eq(0..100));
    assert!((1..backlog).all(|number| next() == (0, number)));
    assert_eq!(queue.groups_len(), 100);
}

#[test]
fn a_weight_is_so_many_keys_a_turn() {
    let mut queue = queue();
    queue
        .at(NOW)
        .limit_group(1, Some(GroupLimits::new().weight(2)))
        .unwrap();
    add(
        &mut queue,
        (0..2).flat_map(|group| (0..4).map(move |number| (group, number))),
    );
    let groups: Vec<u8> = keys(&mut queue, NOW).iter().map(|key| key.0).collect();
    assert_eq!(groups, [0, 1, 1, 0, 1, 1, 0, 0]);
}

#[test]
fn a_group_at_its_limit_waits_for_the_end_of_a_run() {
    let mut queue = queue();
    queue.at(NOW).limit_groups(GroupLimits::new().max_active(1));
    add(&mut queue, [(0, 0), (0, 1), (1, 0)]);
    let first = take(&mut queue, NOW).unwrap();
    assert_eq!(keys(&mut queue, NOW), [(1, 0)]);
    assert_eq!(queue.at(NOW).len(), 1, "it is ready all the same");

    let mut getter = Getter::new();
    let next = queue.at(NOW).poll_get(&mut getter);
    assert_eq!(next, Next::Wait { until: None });
    assert_eq!(finish(&mut queue, first), Wake::ONE);
    let Next::Work(second) = queue.at(NOW).poll_get(&mut getter) else {
        panic!("it was woken for work");
    };
    assert_eq!(second.key, (0, 1));
}

#[test]
fn a_drain_honours_limits_and_ends() {
    let mut queue = queue();
    queue.at(NOW).limit_groups(GroupLimits::new().max_active(0));
    queue.at(NOW).pause_group(1).unwrap();
    add(&mut queue, [(0, 0), (0, 1), (1, 0)]);
    assert_eq!(keys(&mut queue, NOW), []);

    let drain = queue.at(NOW).begin_drain();
    let mut done = Vec::new();
    for _ in 0..2 {
        let runs: Vec<_> = std::iter::from_fn(|| take(&mut queue, NOW)).collect();
        for work in runs {
            done.push(work.key);
            let _ = finish(&mut queue, work);
        }
    }
    assert_eq!(
        done,
        [(0, 0), (1, 0), (0, 1)],
        "one of each group at a time"
    );
    assert_eq!(
        queue.drain_status(&drain),
        requeue_core::binding::Drained::Complete
    );
}

#[test]
fn leftovers_are_taken_whatever_the_limits() {
    let mut queue = queue();
    queue.at(NOW).limit_groups(GroupLimits::new().max_active(1));
    add(&mut queue, [(0, 0), (0, 1), (0, 2)]);
    let _work = take(&mut queue, NOW);
    queue.at(NOW).shut_down();
    let mut next = || queue.at(NOW).take_ready().map(|left| left.key);
    assert_eq!([next(), next(), next()], [Some((0, 1)), Some((0, 2)), None]);
    queue.assert_valid();
}

#[test]
fn a_closed_queue_is_not_closed_for_getters_while_keys_wait_for_a_limit() {
    let mut queue = queue();
    queue.at(NOW).limit_groups(GroupLimits::new().max_active(1));
    add(&mut queue, [(0, 0), (0, 1)]);
    let work = take(&mut queue, NOW).unwrap();
    queue.at(NOW).shut_down();
    assert_eq!(queue.at(NOW).close(), Wake::ALL);
    let mut getter = Getter::new();
    assert_eq!(
        queue.at(NOW).poll_get(&mut getter),
        Next::Wait { until: None }
    );
    assert_eq!(finish(&mut queue, work), Wake::ONE);
    let Next::Work(last) = queue.at(NOW).poll_get(&mut getter) else {
        panic!("it was woken for work");
    };
    queue.at(NOW).release(last.ticket);
    assert_eq!(queue.at(NOW).close(), Wake::ALL);
    assert_eq!(queue.at(NOW).poll_get(&mut getter), Next::Closed);
}

#[test]
fn a_rate_lets_keys_pass_one_by_one_and_the_getter_is_the_timer() {
    let mut queue = queue();
    let rate = GroupLimits::new().rate(1000.0, 2);
    queue.at(NOW).limit_group(0, Some(rate)).unwrap();
    add(&mut queue, (0..4).map(|number| (0, number)));
    add(&mut queue, [(1, 0)]);
    assert_eq!(keys(&mut queue, NOW), [(0, 0), (1, 0), (0, 1)]);
    let mut getter = Getter::new();
    assert_eq!(
        queue.at(NOW).poll_get(&mut getter),
        Next::Wait { until: Some(at(1)) }
    );
    queue.at(NOW).leave(&mut getter);
    assert_eq!(queue.next_deadline(), Some(at(1)));
    assert_eq!(keys(&mut queue, at(1)), [(0, 2)]);
    assert_eq!(keys(&mut queue, at(1)), []);
    assert_eq!(keys(&mut queue, at(2)), [(0, 3)]);
}

#[test]
fn a_group_that_comes_again_has_not_earned_tokens() {
    let mut queue = queue();
    queue
        .at(NOW)
        .limit_groups(GroupLimits::new().rate(1000.0, 1));
    for millis in [0, 1, 2] {
        queue.at(at(millis)).add((0, 0)).unwrap();
        let work = take(&mut queue, at(millis)).unwrap();
        queue.at(at(millis)).release(work.ticket);
        queue.at(at(millis)).add((0, 1)).unwrap();
        assert_eq!(keys(&mut queue, at(millis)), []);
        assert!(queue.at(at(millis)).cancel(&(0, 1)).is_some());
        assert_eq!(queue.stats().total, 0);
        assert_eq!(queue.groups_len(), 1);
    }
    queue.at(at(2)).add((1, 0)).unwrap();
    assert_eq!(queue.groups_len(), 2);
    queue.at(at(3)).add((2, 0)).unwrap();
    assert_eq!(queue.groups_len(), 2, "its bucket is full again");
}

#[test]
fn a_rate_that_is_removed_and_set_again_is_full_in_each_group() {
    let rate = GroupLimits::new().rate(1000.0, 1);
    let mut queue = queue();
    queue.at(NOW).limit_groups(rate.clone());
    add(&mut queue, [(0, 0), (1, 0), (2, 0)]);
    let _active = take(&mut queue, NOW).unwrap();
    let delayed = take(&mut queue, NOW).unwrap();
    let gone = take(&mut queue, NOW).unwrap();
    let _ = queue
        .at(NOW)
        .finish(delayed.ticket, Action::RequeueAfter(Duration::MAX));
    queue.at(NOW).release(gone.ticket);

    let again = [(0, 1), (1, 1), (2, 1)];
    queue.at(NOW).limit_groups(GroupLimits::new());
    queue.at(NOW).limit_groups(rate.clone());
    add(&mut queue, again);
    assert_eq!(keys(&mut queue, NOW), again);
    queue.at(NOW).limit_groups(rate);
    add(&mut queue, [(0, 2), (1, 2), (2, 2)]);
    assert_eq!(keys(&mut queue, NOW), [], "the same rate keeps its tokens");
}

#[test]
fn a_rate_of_its_own_does_not_follow_the_common_rate() {
    let rate = GroupLimits::new().rate(1000.0, 1);
    let mut queue = queue();
    queue.at(NOW).limit_groups(rate.clone());
    queue.at(NOW).limit_group(0, Some(rate.clone())).unwrap();
    add(&mut queue, [(0, 0)]);
    assert_eq!(keys(&mut queue, NOW), [(0, 0)]);
    queue.at(NOW).limit_groups(GroupLimits::new());
    queue.at(NOW).limit_groups(rate);
    queue.at(NOW).limit_group(0, None).unwrap();
    add(&mut queue, [(0, 1)]);
    assert_eq!(keys(&mut queue, NOW), [], "the same rate keeps its tokens");
}

#[test]
fn what_is_taken_out_delayed_leaves_the_wake_of_a_group_to_its_timer() {
    let mut queue = queue();
    queue
        .at(NOW)
        .limit_groups(GroupLimits::new().rate(1000.0, 1));
    add(&mut queue, [(0, 0), (0, 1)]);
    let first = take(&mut queue, NOW).unwrap();
    queue.at(NOW).shut_down();
    let mut getter = Getter::new();
    let until = Some(at(1));
    assert_eq!(queue.at(NOW).poll_get(&mut getter), Next::Wait { until });
    assert!(queue.at(at(1)).take_delayed().is_none());
    queue.assert_valid();
    let Next::Work(second) = queue.at(at(1)).poll_get(&mut getter) else {
        unreachable!("its timer has rung");
    };
    assert_eq!((first.key, second.key), ((0, 0), (0, 1)));
}

#[test]
fn limits_change_while_keys_wait() {
    let mut queue = queue();
    queue.at(NOW).limit_groups(GroupLimits::new().max_active(1));
    add(
        &mut queue,
        (0..40).flat_map(|group| [(group, 0), (group, 1), (group, 2)]),
    );
    assert_eq!(keys(&mut queue, NOW).len(), 40);
    queue.at(NOW).limit_groups(GroupLimits::new().max_active(2));
    let second = keys(&mut queue, NOW);
    assert!(second.iter().copied().eq((0..40).map(|group| (group, 1))));
    queue.at(NOW).limit_groups(GroupLimits::new());
    queue.at(NOW).limit_groups(GroupLimits::new().max_active(2));
    assert_eq!(keys(&mut queue, NOW), []);
}

#[test]
fn a_pause_holds_a_group_and_no_other() {
    let mut queue = queue();
    add(&mut queue, [(0, 0), (1, 0)]);
    queue.at(NOW).pause_group(0).unwrap();
    let state = queue.group(&0).unwrap();
    assert!(state.paused && state.blocked && state.ready == 1);
    assert_eq!(keys(&mut queue, NOW), [(1, 0)]);
    let mut getter = Getter::new();
    let _ = queue.at(NOW).poll_get(&mut getter);
    queue.at(NOW).unpause_group(&0);
    assert_eq!(queue.at(NOW).close(), Wake::ONE);
    assert!(matches!(queue.at(NOW).poll_get(&mut getter), Next::Work(_)));
    assert_eq!(queue.group(&0).unwrap().active, 1);
}

#[test]
fn a_group_is_found_by_what_its_name_borrows() {
    let mut queue: Queue<(String, u32), Groups<String>, NoLimit, Growable> =
        Queue::growable_with_groups(NoLimit, (), RandomState::default(), 0, |key| key.0.clone());
    queue.at(NOW).add(("a".to_owned(), 0)).unwrap();
    queue.at(NOW).pause_group("a".to_owned()).unwrap();
    assert!(queue.group("a").unwrap().paused);
    queue.at(NOW).unpause_group("a");
    assert!(!queue.group("a").unwrap().paused);
    assert!(queue.at(NOW).try_get().is_some());
}

#[test]
fn a_group_goes_with_its_last_key_unless_it_has_limits_of_its_own() {
    let mut queue = queue();
    queue
        .at(NOW)
        .limit_group(1, Some(GroupLimits::new().max_active(3)))
        .unwrap();
    add(&mut queue, [(0, 0), (1, 0)]);
    assert_eq!(queue.groups_len(), 2);
    while let Some(work) = take(&mut queue, NOW) {
        let _ = finish(&mut queue, work);
    }
    assert_eq!((queue.group(&0), queue.groups_len()), (None, 1));
    queue.at(NOW).limit_group(1, None).unwrap();
    assert_eq!(queue.groups_len(), 0);
    queue.at(NOW).limit_group(2, None).unwrap();
    queue.at(NOW).unpause_group(&3);
    assert_eq!(queue.groups_len(), 0, "what removes limits adds no group");
}

#[test]
fn levels_come_before_groups() {
    let mut queue: Queue<Key, Groups<u8, Levels<2>, 4>, NoLimit, Fixed<16>> =
        Queue::with_groups(NoLimit, (), |key| key.0);
    let urgent = AddOptions {
        priority: Some(1),
        ..AddOptions::new()
    };
    for (key, options) in [
        ((0, 0), AddOptions::new()),
        ((0, 1), AddOptions::new()),
        ((1, 0), AddOptions::new()),
        ((0, 2), urgent),
        ((2, 0), urgent),
        ((2, 1), urgent),
    ] {
        queue.at(NOW).add_with(key, options).unwrap();
        queue.assert_valid();
    }
    let mut order = Vec::new();
    while let Some(work) = queue.at(NOW).try_get() {
        queue.assert_valid();
        order.push(work.key);
    }
    assert_eq!(order, [(0, 2), (2, 0), (2, 1), (0, 0), (1, 0), (0, 1)]);
}

#[test]
fn all_work_of_a_group_is_cancelled_by_its_name() {
    let mut queue = queue();
    let numbers = (0..100).map(|number| ((number % 2) as u8, number));
    let _ = queue.at(NOW).add_many(numbers, |_| {});
    let _ = queue.at(NOW).add_after((1, 1_000), Duration::from_secs(1));
    let mut sweep = Sweep::new();
    while queue.at(NOW).retain_some(&mut sweep, |key| key.0 != 1) {}
    queue.assert_valid();
    assert_eq!(queue.group(&1), None);
    assert_eq!(queue.group(&0).unwrap().ready, 50);
}

#[test]
fn every_group_is_seen_once() {
    let mut queue = queue();
    let _ = queue
        .at(NOW)
        .add_many((0..200).map(|group| (group, 0)), |_| {});
    let _ = queue
        .at(NOW)
        .add_many((0..100).map(|group| (group, 1)), |_| {});
    let mut seen = [0; 256];
    let mut sweep = Sweep::new();
    while queue.groups_some(&mut sweep, |name, group| {
        seen[usize::from(*name)] += group.ready
    }) {}
    assert!(seen[..100].iter().all(|ready| *ready == 2));
    assert!(seen[100..200].iter().all(|ready| *ready == 1));
    assert!(seen[200..].iter().all(|ready| *ready == 0));
}

#[test]
fn a_key_of_a_group_that_has_waited_too_long_comes_before_a_higher_level() {
    let mut queue: Queue<Key, Groups<u8, Aging<Levels<2>>>, NoLimit, Fixed<8>> =
        Queue::with_groups(NoLimit, (), |key| key.0);
    queue.at(NOW).age_after(Duration::from_millis(10));
    for group in 0..2 {
        queue.at(NOW).add((group, 0)).unwrap();
    }
    let urgent = AddOptions {
        priority: Some(1),
        ..AddOptions::new()
    };
    for number in 1..3 {
        queue.at(at(5)).add_with((0, number), urgent).unwrap();
    }
    let mut order = Vec::new();
    for millis in [10, 11, 12, 13] {
        order.extend(queue.at(at(millis)).try_get().map(|work| work.key));
        queue.assert_valid();
    }
    assert_eq!(order, [(0, 1), (0, 0), (1, 0), (0, 2)]);
}

#[test]
fn a_higher_level_with_a_token_does_not_wait_behind_keys_that_are_due() {
    let mut queue: Queue<Key, Groups<u8, Levels<2>>, NoLimit, Fixed<8>> =
        Queue::with_groups(NoLimit, (), |key| key.0);
    let rate = GroupLimits::new().rate(4.0, 1);
    queue.at(NOW).limit_group(1, Some(rate)).unwrap();
    let urgent = AddOptions {
        priority: Some(1),
        ..AddOptions::new()
    };
    for number in 0..2 {
        queue.at(NOW).add_with((1, number), urgent).unwrap();
    }
    assert!(
        queue
            .at(NOW)
            .try_get()
            .is_some_and(|work| work.key == (1, 0))
    );
    for number in 0..4 {
        queue.at(NOW).add_at((0, number), at(100)).unwrap();
    }
    // The token is there since 250 ms.
    let first = queue.at(at(375)).try_get().map(|work| work.key);
    assert_eq!(first, Some((1, 1)));
    queue.assert_valid();
}

#[test]
fn shutdown_ends_the_pause_of_a_group_and_begins_none() {
    let mut queue = queue();
    queue.at(NOW).pause_group(0).unwrap();
    assert!(queue.group(&0).unwrap().paused);
    queue.at(NOW).shut_down();
    let group = queue.group(&0).unwrap();
    assert!(!group.paused && !group.blocked, "{group:?}");
    let groups = queue.groups_len();
    queue.at(NOW).pause_group(1).unwrap();
    assert_eq!((queue.group(&1), queue.groups_len()), (None, groups));
    queue.assert_valid();

    let mut full: Queue<Key, Groups<u8, Plain, 1>, NoLimit, Fixed<4>> =
        Queue::with_groups(NoLimit, (), |key| key.0);
    full.at(NOW).add((0, 0)).unwrap();
    full.at(NOW).shut_down();
    assert_eq!(full.at(NOW).pause_group(1), Ok(()), "nothing to do");
    full.at(NOW).pause_group(0).unwrap();
    assert!(!full.group(&0).unwrap().paused);
}

#[test]
fn a_group_without_ready_keys_is_not_blocked_by_its_rate() {
    let mut queue = queue();
    queue
        .at(NOW)
        .limit_groups(GroupLimits::new().rate(1000.0, 1));
    add(&mut queue, [(0, 0), (0, 1)]);
    let work = take(&mut queue, NOW).unwrap();
    assert!(queue.group(&0).unwrap().blocked, "a ready key waits");
    let _ = queue.at(NOW).cancel(&(0, 1));
    let _ = finish(&mut queue, work);
    let group = queue.group(&0).unwrap();
    assert!(!group.blocked, "{group:?}");
}

/// The limits that count now, also for a group that has not been looked at since they were set.
#[test]
fn a_group_shows_its_limits() {
    let mut queue = queue();
    add(&mut queue, [(0, 0), (1, 0)]);
    let limits = |queue: &Shared, group: u8| {
        let group = queue.group(&group).unwrap();
        (group.max_active, group.weight, group.rate)
    };
    assert_eq!(limits(&queue, 0), (None, 1, None));

    let common = GroupLimits::new().max_active(2).rate(10.0, 5);
    queue.at(NOW).limit_groups(common);
    let own = GroupLimits::new().weight(3);
    queue.at(NOW).limit_group(1, Some(own)).unwrap();
    assert_eq!(limits(&queue, 0), (Some(2), 1, Some((10.0, 5))));
    assert_eq!(limits(&queue, 1), (None, 3, None));

    let own = GroupLimits::new().rate(0.5, 1);
    queue.at(NOW).limit_group(1, Some(own)).unwrap();
    assert_eq!(limits(&queue, 1), (None, 1, Some((0.5, 1))));
    queue.at(NOW).limit_group(1, None).unwrap();
    assert_eq!(limits(&queue, 1), limits(&queue, 0));
    queue.assert_valid();
}

/// The clock is read only as long as a group has a rate of its own.
#[test]
fn a_rate_that_is_removed_needs_no_time() {
    let mut queue = queue();
    add(&mut queue, [(1, 0), (2, 0)]);
    assert!(!queue.needs_time());
    for per_second in [10.0, 20.0, 20.0] {
        let own = GroupLimits::new().rate(per_second, 5);
        queue.at(NOW).limit_group(1, Some(own)).unwrap();
        assert!(queue.needs_time());
    }
    queue
        .at(NOW)
        .limit_group(2, Some(GroupLimits::new().rate(1.0, 1)))
        .unwrap();
    queue.at(NOW).limit_group(1, None).unwrap();
    assert!(queue.needs_time(), "of the other group");
    let unrated = GroupLimits::new().weight(2);
    queue.at(NOW).limit_group(2, Some(unrated)).unwrap();
    assert!(!queue.needs_time());
}

#[test]
fn groups_without_rates_keep_their_other_limits() {
    type Unrated = Queue<Key, Groups<u8, Plain, 2, ()>, NoLimit, Fixed<8>>;
    const ONE: GroupLimits<()> = GroupLimits::new().max_active(1);
    let mut queue: Unrated = Queue::with_groups(NoLimit, (), |key| key.0);
    queue.at(NOW).limit_groups(ONE);
    let two = GroupLimits::new().max_active(2);
    queue.at(NOW).limit_group(0, Some(two)).unwrap();
    assert!(!queue.needs_time());
    for key in [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)] {
        queue.at(NOW).add(key).unwrap();
        queue.assert_valid();
    }
    assert_eq!(queue.at(NOW).add((2, 0)), Err(Rejected::Full((2, 0))));

    let mut runs = Vec::new();
    while let Some(work) = queue.at(NOW).try_get() {
        runs.push(work);
    }
    let keys: Vec<Key> = runs.iter().map(|work| work.key).collect();
    assert_eq!(keys, [(0, 0), (1, 0), (0, 1)]);
    assert_eq!(queue.group(&1).unwrap().rate, None);

    // Nothing keeps a group after its last key.
    for work in runs {
        queue.at(NOW).release(work.ticket);
        queue.assert_valid();
    }
    assert!(queue.at(NOW).cancel(&(1, 1)).is_some());
    queue.at(NOW).add((2, 0)).unwrap();
}
