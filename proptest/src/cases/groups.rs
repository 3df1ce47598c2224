use requeue_core::Added;
use requeue_core::binding::{Drained, Next};

use super::{Script, setup_with_backlog};
use crate::limiter::FloatBits;
use crate::subject::{Cap, GroupOrder, Key, Operate, Rate, Subject};

fn most(keys: usize) -> Cap {
    Cap {
        max_active: Some(keys),
        ..Cap::default()
    }
}

fn limit_all(script: &mut Script, cap: Cap) {
    script.subject.order(&GroupOrder::LimitAll(cap));
}

fn one_in_10_ms() -> Rate {
    Rate {
        per_second: FloatBits(100.0),
        burst: 1,
    }
}

/// Groups are keys by their remainder: 3, 6 and 9 are of one.
fn add_all(script: &mut Script, keys: &[Key]) {
    for key in keys {
        script.add(*key, Added::Ready);
    }
}

/// Groups that have ready keys are served in turn, however many each of them has.
///
/// Source: requeue-core, Groups
/// Needs: 6 keys, Groups
pub(crate) fn groups_are_served_in_turn(script: &mut Script) {
    add_all(script, &[3, 6, 9, 1, 4, 2]);
    for key in [3, 1, 2, 6, 4, 9] {
        script.get(key);
    }
    script.nothing_to_get();
}

/// In each of its turns a group gives as many keys as its weight says.
///
/// Source: requeue-core, GroupLimits::weight
/// Needs: 5 keys, Groups
pub(crate) fn a_weight_is_so_many_keys_in_a_turn(script: &mut Script) {
    let cap = Cap {
        weight: 2,
        ..Cap::default()
    };
    script.subject.order(&GroupOrder::Limit(0, Some(cap)));
    add_all(script, &[3, 6, 9, 1, 4]);
    for key in [3, 6, 1, 9, 4] {
        script.get(key);
    }
}

/// Of a group no more keys are active than its limit: the next waits for an end.
///
/// Source: requeue-core, GroupLimits::max_active
/// Needs: 3 keys, Groups
pub(crate) fn a_group_at_its_limit_waits_for_the_end_of_a_run(script: &mut Script) {
    limit_all(script, most(1));
    add_all(script, &[3, 6, 1]);
    script.get(3);
    script.get(1);
    script.nothing_to_get();
    script.len(1);
    script.done(1);
    script.nothing_to_get();
    script.done(3);
    script.get(6);
}

/// A limit of a group that changes holds for the keys that are ready.
///
/// Source: requeue-core, Queue::limit_group
/// Needs: 3 keys, Groups
pub(crate) fn a_limit_can_be_changed_while_keys_wait(script: &mut Script) {
    script.subject.order(&GroupOrder::Limit(0, Some(most(0))));
    add_all(script, &[3, 6, 9]);
    script.nothing_to_get();
    script.subject.order(&GroupOrder::Limit(0, Some(most(2))));
    script.get(3);
    script.get(6);
    script.nothing_to_get();
    script.subject.order(&GroupOrder::Limit(0, None));
    script.get(9);
}

/// Of a paused group no key is handed out, and none is lost.
///
/// Source: requeue-core, Queue::pause_group
/// Needs: 2 keys, Groups
pub(crate) fn a_paused_group_keeps_its_keys(script: &mut Script) {
    add_all(script, &[3, 1]);
    script.subject.order(&GroupOrder::Pause(0));
    script.get(1);
    script.nothing_to_get();
    script.len(1);
    script.subject.order(&GroupOrder::Unpause(0));
    script.get(3);
}

/// A rate of a group is charged when a key is handed out; a coalesced add is free.
///
/// Source: requeue-core, GroupLimits::rate
/// Needs: 2 keys, Groups
pub(crate) fn a_rate_is_charged_when_a_key_is_handed_out(script: &mut Script) {
    limit_all(
        script,
        Cap {
            rate: Some(one_in_10_ms()),
            ..Cap::default()
        },
    );
    add_all(script, &[3, 6]);
    script.add(3, Added::Coalesced);
    script.get(3);
    script.nothing_to_get();
    let stats = script.subject.stats();
    let wait = stats
        .next_deadline
        .map(|due| due.saturating_since(script.subject.now()));
    assert_eq!(wait, Some(super::ms(10)));
    script.advance(10);
    script.get(6);
}

/// A drain honours limits of groups, but for those that would keep it from ending.
///
/// Source: requeue-core, Groups
/// Needs: 3 keys, Groups
pub(crate) fn a_drain_honours_limits_and_ends(script: &mut Script) {
    limit_all(script, most(0));
    script.subject.order(&GroupOrder::Pause(1));
    add_all(script, &[3, 6, 1]);
    let drain = script.subject.begin_drain();
    script.get(3);
    script.get(1);
    let next = script.subject.get(0);
    assert!(
        matches!(next, Next::Wait { .. }),
        "6 waits for the end of a run: {next:?}"
    );
    script.done(3);
    script.run(6);
    script.drained(&drain, Drained::Pending);
    script.done(1);
    script.drained(&drain, Drained::Complete);
}

/// A group whose rate allows a run takes its turn, however many keys are due.
///
/// Source: requeue-core, Groups
/// Needs: 8 keys, Groups
pub(crate) fn a_group_with_a_token_does_not_wait_behind_keys_that_are_due(script: &mut Script) {
    script.renew(&setup_with_backlog());
    let cap = Cap {
        rate: Some(one_in_10_ms()),
        ..Cap::default()
    };
    script.subject.order(&GroupOrder::Limit(1, Some(cap)));
    add_all(script, &[1, 4]);
    script.get(1);
    for key in [3, 6, 9, 12, 15, 18] {
        script.add_after(key, 5, Added::Delayed);
    }
    script.advance(30);
    for key in [3, 4, 6, 9, 12, 15, 18] {
        script.get(key);
    }
}

/// Shutdown ends the pause of a group, in its figures too, and none begins after it.
///
/// Source: requeue-core, GroupState::paused
/// Needs: Groups
pub(crate) fn shutdown_ends_the_pause_of_a_group(script: &mut Script) {
    add_all(script, &[3]);
    let mut state = |order: Option<GroupOrder>, closes: bool| {
        if closes {
            script.subject.shut_down();
        }
        if let Some(order) = order {
            script.subject.order(&order);
        }
        let group = script.subject.group(0);
        group.map(|group| (group.paused, group.blocked))
    };
    assert_eq!(state(None, false), Some((false, false)));
    assert_eq!(state(Some(GroupOrder::Pause(0)), false), Some((true, true)));
    assert_eq!(state(None, true), Some((false, false)));
    let begun = state(Some(GroupOrder::Pause(0)), false);
    assert_eq!(
        begun,
        Some((false, false)),
        "no pause begins after shutdown"
    );
    script.get(3);
}

/// A group without a token is blocked only while it has ready keys.
///
/// Source: requeue-core, GroupState::blocked
/// Needs: 2 keys, Groups
pub(crate) fn a_group_without_ready_keys_is_not_blocked_by_its_rate(script: &mut Script) {
    let cap = Cap {
        rate: Some(one_in_10_ms()),
        ..Cap::default()
    };
    limit_all(script, cap);
    add_all(script, &[3, 6]);
    let blocked = |script: &mut Script| script.subject.group(0).map(|group| group.blocked);
    assert_eq!(blocked(script), Some(false));
    script.get(3);
    assert_eq!(blocked(script), Some(true), "a ready key waits for a token");
    let _ = script.subject.cancel_key(6);
    assert_eq!(blocked(script), Some(false), "only a run is left");
}

/// A key whose own deadline has passed runs once, though its group had to wait.
///
/// Source: requeue-core, Queue::limit_due_keys
/// Needs: 4 keys, Groups
pub(crate) fn a_group_with_a_token_runs_a_key_once_for_a_deadline_that_has_passed(
    script: &mut Script,
) {
    script.renew(&setup_with_backlog());
    let cap = Cap {
        rate: Some(one_in_10_ms()),
        ..Cap::default()
    };
    script.subject.order(&GroupOrder::Limit(0, Some(cap)));
    add_all(script, &[3, 6]);
    script.get(3);
    for (key, millis) in [(1, 12), (4, 14), (6, 20)] {
        script.add_after(key, millis, Added::Delayed);
    }
    // The token comes first, and then there is time for the deadline of key 1.
    script.advance(30);
    script.succeed(6);
}
