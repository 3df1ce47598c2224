use requeue_core::Added;

use super::{Script, setup_with_backlog};
use crate::limiter::FloatBits;
use crate::subject::{Cap, GroupOrder, Key, Operate, Rate};

/// Of this group one key may be handed out in 10 ms.
fn limit(script: &mut Script, group: u8) {
    let cap = Cap {
        rate: Some(Rate {
            per_second: FloatBits(100.0),
            burst: 1,
        }),
        ..Cap::default()
    };
    script.subject.order(&GroupOrder::Limit(group, Some(cap)));
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

/// A group whose rate allows a run takes its turn, however many keys are due.
///
/// Source: requeue-core, Groups
/// Needs: 8 keys, Groups
pub(crate) fn a_group_with_a_token_does_not_wait_behind_keys_that_are_due(script: &mut Script) {
    script.renew(&setup_with_backlog());
    limit(script, 1);
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

/// A key whose own deadline has passed runs once, though its group had to wait.
///
/// Source: requeue-core, Queue::limit_due_keys
/// Needs: 4 keys, Groups
pub(crate) fn a_group_with_a_token_runs_a_key_once_for_a_deadline_that_has_passed(
    script: &mut Script,
) {
    script.renew(&setup_with_backlog());
    limit(script, 0);
    add_all(script, &[3, 6]);
    script.get(3);
    for (key, millis) in [(1, 12), (4, 14), (6, 20)] {
        script.add_after(key, millis, Added::Delayed);
    }
    // The token comes first, and then there is time for the deadline of key 1.
    script.advance(30);
    script.succeed(6);
}
