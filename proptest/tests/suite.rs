//! Histories that were once found to fail.

use std::time::Duration;

use requeue_core::Action;
use requeue_core::priority::{Groups, Plain, WithSuspension};
use requeue_core::storage::{Fixed, Growable};
use requeue_proptest::histories::{Looks, Operation, Run, check};
use requeue_proptest::subject::{
    Cap, Configuration, Direct, FloatBits, GroupOrder, OnWorkQueue, Rate, Subject, Threads,
};

/// Found by the suite once in some thousand histories: the model did not know that leftovers are
/// taken from behind a lock once all that is due has been released, groups as well.
#[test]
fn the_time_of_groups_goes_on_while_leftovers_are_taken() {
    let alone = Cap {
        max_active: Some(1),
        ..Cap::default()
    };
    let paced = one_in_2_ns();
    // 1 and 4 are of one group, 18 and 21 of another.
    let steps = [
        Operation::Order(GroupOrder::Limit(1, Some(alone))),
        Operation::Order(GroupOrder::Limit(0, Some(paced))),
        Operation::AddMany(vec![4, 18, 1, 21]),
        Operation::TryGet,
        Operation::TryGet,
        Operation::ShutDown,
        Operation::Advance(Duration::from_nanos(2)),
        Operation::TakeDelayed,
        Operation::TakeReady,
    ];
    assert_right_with_groups(&steps);
}

/// Found by the suite as seldom: what ends delays overtook a group whose time had come before.
#[test]
fn groups_whose_time_has_come_are_served_before_what_is_expedited() {
    let steps = [
        Operation::Order(GroupOrder::Limit(1, Some(one_in_2_ns()))),
        Operation::AddMany(vec![1, 25]),
        Operation::AddAfter(2, Duration::from_nanos(2)),
        Operation::TryGet,
        Operation::Advance(Duration::from_nanos(2)),
        Operation::ExpediteAll,
        Operation::TryGet,
        Operation::TryGet,
    ];
    assert_right_with_groups(&steps);
}

/// Found by the suite: two keys whose suspensions have ended are held, and a third is taken out.
#[test]
fn a_ready_key_is_taken_out_before_keys_that_are_held() {
    let mut setup = Configuration::exponential();
    setup.policy.cool_down_ns = 3;
    setup.due_keys_max = 1;
    let ns = Duration::from_nanos;
    let steps = [
        Operation::Add(6),
        Operation::TryGet,
        Operation::Add(2),
        Operation::AddAfter(1, ns(1)),
        Operation::TryGet,
        Operation::CompleteMany(vec![Run::Pick(0); 2], Action::Suspend(ns(1))),
        Operation::Advance(ns(5)),
        Operation::ShutDown,
        Operation::TakeReady,
        Operation::TakeReady,
    ];
    assert_right::<Direct<WithSuspension, Fixed<4>>>(&setup, &steps);
    assert_right::<Direct<Plain, Growable>>(&setup, &steps);
}

fn one_in_2_ns() -> Cap {
    Cap {
        rate: Some(Rate {
            per_second: FloatBits(5e8),
            burst: 1,
        }),
        ..Cap::default()
    }
}

fn assert_right_with_groups(steps: &[Operation]) {
    let setup = Configuration::exponential();
    assert_right::<OnWorkQueue<Threads<Groups<u8>>>>(&setup, steps);
    assert_right::<Direct<Groups<u8>, Growable>>(&setup, steps);
}

#[track_caller]
fn assert_right<S: Subject + 'static>(setup: &Configuration, steps: &[Operation]) {
    assert_eq!(check::<S>(setup, steps, Looks::Never), Ok(()));
}
