//! Functions and limits that are wrong, and too many groups.

use core::sync::atomic::{AtomicBool, Ordering};
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::*;

#[test]
fn one_group_too_many_hands_the_key_back() {
    let mut queue: Queue<Key, Groups<u8, requeue_core::priority::Plain, 2>, NoLimit, Fixed<8>> =
        Queue::with_groups(NoLimit, (), |key| key.0);
    queue.at(NOW).add((0, 0)).unwrap();
    queue
        .at(NOW)
        .limit_group(1, Some(GroupLimits::new()))
        .unwrap();
    assert_eq!(queue.at(NOW).add((2, 7)), Err(Rejected::Full((2, 7))));
    assert_eq!(
        queue.at(NOW).limit_group(2, Some(GroupLimits::new())),
        Err(2)
    );
    assert_eq!(queue.at(NOW).pause_group(2), Err(2));
    queue.assert_valid();
    queue.at(NOW).limit_group(1, None).unwrap();
    queue.at(NOW).add((2, 7)).unwrap();
    queue.assert_valid();
}

#[test]
fn rates_that_are_no_number_hold_the_group() {
    for rate in [0.0, -1.0, f64::NAN, f64::NEG_INFINITY] {
        let mut queue = queue();
        queue.at(NOW).limit_groups(GroupLimits::new().rate(rate, 5));
        add(&mut queue, [(0, 0)]);
        assert_eq!(keys(&mut queue, NOW), []);
        queue.at(NOW).shut_down();
        assert_eq!(keys(&mut queue, NOW), [(0, 0)], "a drain has to end");
    }
}

/// The time between two tokens is a number of nanoseconds with 64 bits.
#[test]
fn the_slowest_rates_give_the_burst_and_the_fastest_everything() {
    let century = NOW + Duration::from_secs(100 * 365 * 24 * 3600);
    for (rate, at_once) in [
        (f64::MIN_POSITIVE, 3),
        (1e-10, 3),
        (1e10, 5),
        (f64::INFINITY, 5),
    ] {
        let mut queue = queue();
        queue.at(NOW).limit_groups(GroupLimits::new().rate(rate, 3));
        add(&mut queue, (0..5).map(|number| (0, number)));
        assert_eq!(keys(&mut queue, NOW).len(), at_once, "{rate}");
        assert_eq!(keys(&mut queue, century), [], "{rate}");
        queue.assert_valid();
    }
}

#[test]
fn a_group_that_still_earns_tokens_makes_way_for_one_that_has_keys() {
    let mut queue: Queue<Key, Groups<u8, Plain, 1>, NoLimit, Fixed<4>> =
        Queue::with_groups(NoLimit, (), |key| key.0);
    queue.at(NOW).limit_groups(GroupLimits::new().rate(1.0, 1));
    queue.at(NOW).add((1, 0)).unwrap();
    let work = queue.at(NOW).try_get().unwrap();
    assert_eq!(queue.at(NOW).add((2, 0)), Err(Rejected::Full((2, 0))));

    queue.at(NOW).release(work.ticket);
    assert!(queue.group(&1).is_some(), "it has a token to earn");
    queue.at(NOW).add((2, 0)).unwrap();
    assert_eq!(queue.at(NOW).try_get().unwrap().key, (2, 0));
    queue.assert_valid();
}

#[test]
fn an_add_that_finds_no_room_takes_no_place_from_another_group() {
    let mut queue: Queue<Key, Groups<u8, Levels<2>, 2>, NoLimit, Fixed<1>> =
        Queue::with_groups(NoLimit, (), |key| key.0);
    queue.at(NOW).limit_groups(GroupLimits::new().rate(1.0, 1));
    queue.at(NOW).add((1, 0)).unwrap();
    let work = queue.at(NOW).try_get().unwrap();
    queue.at(NOW).release(work.ticket);
    queue.at(NOW).add((2, 0)).unwrap();

    assert_eq!(queue.at(NOW).add((3, 0)), Err(Rejected::Full((3, 0))));
    let lowest = AddOptions::new();
    let refused = queue.at(NOW).add_displacing((3, 0), lowest);
    assert_eq!(refused.unwrap_err(), Rejected::Full((3, 0)));
    assert!(queue.group(&1).is_some(), "it has a token to earn");

    let highest = AddOptions {
        priority: Some(1),
        ..lowest
    };
    let (_, displaced) = queue.at(NOW).add_displacing((3, 0), highest).unwrap();
    assert_eq!(displaced.unwrap().key, (2, 0));
    assert!(queue.group(&1).is_none(), "the new group has its place");
    queue.assert_valid();
}

#[test]
fn a_group_function_that_panics_changes_nothing() {
    let mut queue: Shared =
        Queue::growable_with_groups(NoLimit, (), RandomState::default(), 0, |key| {
            assert_ne!(key.1, 13, "no group for it");
            key.0
        });
    add(&mut queue, [(1, 0)]);
    let panics = catch_unwind(AssertUnwindSafe(|| queue.at(NOW).add((1, 13))));
    assert!(panics.is_err());
    queue.assert_valid();
    assert_eq!(queue.group(&1).unwrap().total, 1);
    add(&mut queue, [(2, 0)]);
    assert_eq!(keys(&mut queue, NOW), [(1, 0), (2, 0)]);
}

#[test]
fn a_key_stays_in_the_group_in_which_it_came() {
    static MOVED: AtomicBool = AtomicBool::new(false);
    let mut queue: Shared =
        Queue::growable_with_groups(NoLimit, (), RandomState::default(), 0, |key| {
            key.0 + u8::from(MOVED.load(Ordering::Relaxed))
        });
    add(&mut queue, [(1, 0), (1, 1)]);
    MOVED.store(true, Ordering::Relaxed);
    add(&mut queue, [(1, 0), (1, 2)]);
    assert_eq!(queue.group(&1).unwrap().total, 2);
    assert_eq!(queue.group(&2).unwrap().total, 1);

    for key in [(1, 0), (1, 2), (1, 1)] {
        let work = take(&mut queue, NOW).unwrap();
        assert_eq!(work.key, key);
        let _ = finish(&mut queue, work);
    }
    assert_eq!(queue.groups_len(), 0);
    add(&mut queue, [(1, 0)]);
    assert_eq!(queue.group(&2).unwrap().total, 1, "it comes again");
}

#[test]
fn a_hundred_thousand_groups_of_one_key_come_and_go() {
    let mut queue: Queue<u32, Groups<u32>, NoLimit, Growable> =
        Queue::growable_with_groups(NoLimit, (), RandomState::default(), 0, |key| *key);
    queue.at(NOW).limit_groups(GroupLimits::new().max_active(1));
    let groups = if cfg!(miri) { 50 } else { 100_000 };
    let _ = queue.at(NOW).add_many(0..groups, |_| {});
    assert_eq!(queue.groups_len(), groups as usize);
    for key in 0..groups {
        let work = queue.at(NOW).try_get().unwrap();
        assert_eq!(work.key, key);
        queue.at(NOW).release(work.ticket);
    }
    assert_eq!(queue.groups_len(), 0);
}

/// More groups than a change of limits looks at: those that it has not looked at yet must not give
/// a key because that has aged.
#[test]
fn an_aged_key_waits_for_the_new_limits_of_its_group() {
    type Aged = Queue<Key, Groups<u8, Aging<Levels<2>>>, NoLimit, Growable>;
    let mut queue: Aged =
        Queue::growable_with_groups(NoLimit, (), RandomState::default(), 0, |key| key.0);
    queue.at(NOW).age_after(Duration::ZERO);
    let groups = 0..20;
    for number in 0..2 {
        for group in groups.clone() {
            queue.at(NOW).add((group, number)).unwrap();
        }
    }
    let runs: Vec<_> = groups.map(|_| queue.at(NOW).try_get().unwrap()).collect();
    let high = AddOptions {
        priority: Some(1),
        ..AddOptions::new()
    };
    queue.at(at(5)).add_with((99, 0), high).unwrap();

    let one = GroupLimits::new().max_active(1);
    queue.at(at(10)).limit_groups(one);
    let next = queue.at(at(10)).try_get().unwrap();
    queue.assert_valid();
    assert_eq!(next.key, (99, 0), "every other group has its one run");
    assert!(queue.at(at(10)).try_get().is_none());
    for work in runs {
        queue.at(at(10)).release(work.ticket);
        assert!(queue.at(at(10)).try_get().is_some());
        queue.assert_valid();
    }
}

/// The deadline passes in the same get, so that the group is first at a level for the first time.
#[test]
fn a_key_that_comes_due_waits_for_the_new_limits_of_its_group() {
    type Leveled = Queue<Key, Groups<u8, Levels<2>>, NoLimit, Growable>;
    let mut queue: Leveled =
        Queue::growable_with_groups(NoLimit, (), RandomState::default(), 0, |key| key.0);
    for number in 0..2 {
        for group in 0..20 {
            queue.at(NOW).add((group, number)).unwrap();
        }
    }
    let mut runs: Vec<_> = (0..20).map(|_| queue.at(NOW).try_get().unwrap()).collect();
    // This group may go on, and no other is looked at behind it.
    queue.at(NOW).release(runs.remove(0).ticket);
    let high = AddOptions {
        priority: Some(1),
        after: Some(Duration::from_millis(10)),
        ..AddOptions::new()
    };
    queue.at(NOW).add_with((15, 2), high).unwrap();
    queue.at(NOW).limit_groups(GroupLimits::new().max_active(1));
    assert_eq!(queue.at(at(10)).try_get().unwrap().key, (0, 1));
    assert!(queue.at(at(10)).try_get().is_none());
    queue.assert_valid();
}

type OneGroup = Queue<Key, Groups<u8, Plain, 1>, NoLimit, Fixed<4>>;

/// An add that waits for room, and what its last look returned.
fn waits_for_room(
    queue: &mut OneGroup,
    adding: &mut Adding<Key>,
    getter: &mut Getter,
) -> (bool, Wake) {
    let mut session = queue.at(NOW);
    let looked = session.poll_add(adding, getter);
    let wake = session.close();
    queue.assert_valid();
    (matches!(looked, Next::Wait { .. }), wake)
}

#[test]
fn a_call_that_waits_for_a_group_does_not_wake_itself() {
    let mut queue: OneGroup = Queue::with_groups(NoLimit, (), |key| key.0);
    queue.at(NOW).add((0, 0)).unwrap();
    let mut adding = Adding::new((1, 0), AddOptions::new());
    let mut getter = Getter::new();
    for _ in 0..3 {
        let look = waits_for_room(&mut queue, &mut adding, &mut getter);
        assert_eq!(look, (true, Wake::NONE));
    }
    let work = queue.at(NOW).try_get().unwrap();
    queue.at(NOW).release(work.ticket);
    assert_eq!(queue.at(NOW).close(), Wake::ROOM);
    assert!(!waits_for_room(&mut queue, &mut adding, &mut getter).0);
}

#[test]
fn each_call_that_waits_for_room_of_its_group_gets_it() {
    let mut queue: OneGroup = Queue::with_groups(NoLimit, (), |key| key.0);
    let _ = queue
        .at(NOW)
        .add_many((0..4).map(|number| (0, number)), |_| {});
    let (mut other, mut same) = (Getter::new(), Getter::new());
    let mut of_other = Adding::new((1, 0), AddOptions::new());
    let mut of_same = Adding::new((0, 4), AddOptions::new());
    assert!(waits_for_room(&mut queue, &mut of_other, &mut other).0);
    assert!(waits_for_room(&mut queue, &mut of_same, &mut same).0);

    let work = queue.at(NOW).try_get().unwrap();
    queue.at(NOW).release(work.ticket);
    let wake = queue.at(NOW).close();
    assert_eq!(wake, Wake::ALL, "the first has no group to go to");
    let look = waits_for_room(&mut queue, &mut of_other, &mut other);
    assert_eq!(look, (true, Wake::NONE));
    assert!(!waits_for_room(&mut queue, &mut of_same, &mut same).0);
}

/// OneGroup places are free, and another add takes the group that the woken call needs.
#[test]
fn a_call_that_is_too_late_for_its_group_wakes_the_others() {
    let mut queue: Queue<Key, Groups<u8, Plain, 2>, NoLimit, Fixed<3>> =
        Queue::with_groups(NoLimit, (), |key| key.0);
    let _ = queue.at(NOW).add_many([(1, 0), (0, 0), (0, 1)], |_| {});
    let (mut other, mut same) = (Getter::new(), Getter::new());
    let mut of_other = Adding::new((2, 0), AddOptions::new());
    let mut of_same = Adding::new((0, 2), AddOptions::new());
    let _ = queue.at(NOW).poll_add(&mut of_other, &mut other);
    let _ = queue.at(NOW).poll_add(&mut of_same, &mut same);

    for wake in [Wake::ROOM, Wake::NONE] {
        let work = queue.at(NOW).try_get().unwrap();
        queue.at(NOW).release(work.ticket);
        assert_eq!(queue.at(NOW).close(), wake);
    }
    queue.at(NOW).add((3, 0)).unwrap();
    for wake in [Wake::ALL, Wake::NONE] {
        let late = queue.at(NOW).poll_add(&mut of_other, &mut other);
        assert_eq!(
            (late, queue.at(NOW).close()),
            (Next::Wait { until: None }, wake)
        );
        queue.assert_valid();
    }
    assert_eq!(
        queue.at(NOW).poll_add(&mut of_same, &mut same),
        Next::Work(())
    );
    queue.assert_valid();
}

#[test]
fn a_group_that_is_given_up_makes_room_for_another() {
    let mut queue: OneGroup = Queue::with_groups(NoLimit, (), |key| key.0);
    let _ = queue.at(NOW).limit_group(0, Some(GroupLimits::new()));
    let (mut adding, mut getter) = (Adding::new((1, 0), AddOptions::new()), Getter::new());
    assert!(waits_for_room(&mut queue, &mut adding, &mut getter).0);
    let _ = queue.at(NOW).limit_group(0, None);
    assert_eq!(queue.at(NOW).close(), Wake::ROOM);

    queue.at(NOW).pause_group(0).unwrap();
    for wake in [Wake::ALL, Wake::NONE] {
        let look = waits_for_room(&mut queue, &mut adding, &mut getter);
        assert_eq!(look, (true, wake), "at first, as if others waited too");
    }
    queue.at(NOW).unpause_group(&0);
    assert_eq!(queue.at(NOW).close(), Wake::ROOM);
    assert!(!waits_for_room(&mut queue, &mut adding, &mut getter).0);
}

/// Failures alone are no reason to refuse a key of another group.
#[test]
fn a_group_of_failure_records_makes_way_for_one_that_has_keys() {
    let mut queue: Queue<Key, Groups<u8, Plain, 1>, _, Fixed<4>> =
        Queue::with_groups(default_item_based(), (), |key| key.0);
    for number in 0..3 {
        let _ = queue.at(NOW).add_rate_limited((0, number));
        assert!(queue.at(NOW).cancel(&(0, number)).is_some());
    }
    assert_eq!(queue.stats().total, 3, "for their failures");
    queue.at(NOW).add((1, 0)).unwrap();
    queue.assert_valid();
    assert_eq!(queue.stats().total, 1);
}
