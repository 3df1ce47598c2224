use requeue_core::{AddOptions, Added};

use super::{Script, ms, setup_with_backlog};
use crate::subject::{Key, Operate, Subject};

fn add(script: &mut Script, key: Key, level: u8) {
    let options = AddOptions {
        priority: Some(level),
        ..AddOptions::default()
    };
    let added = script.subject.add_with(key, options);
    assert!(added.is_ok(), "{added:?}");
}

fn age_after(script: &mut Script, millis: impl Into<Option<u64>>) {
    script.subject.age_after(millis.into().map(ms));
}

/// A key that has waited for too long comes before younger keys of higher levels.
///
/// Source: requeue-core, Aging
/// Needs: 4 keys, Aging
pub(crate) fn a_key_that_has_waited_too_long_comes_first(script: &mut Script) {
    add(script, 1, 0);
    script.subject.advance(ms(10));
    add(script, 2, 1);
    add(script, 3, 2);
    // Off by default.
    script.get(3);
    age_after(script, 10);
    // It has waited for 10 ms, and not for longer.
    script.get(2);
    script.subject.advance(ms(1));
    add(script, 4, 2);
    script.get(1);
    script.get(4);
}

/// Of the keys that have waited for too long, the oldest comes first.
///
/// Source: requeue-core, Aging
/// Needs: 3 keys, Aging
pub(crate) fn of_keys_that_have_waited_too_long_the_oldest_comes_first(script: &mut Script) {
    add(script, 2, 1);
    script.subject.advance(ms(1));
    add(script, 1, 0);
    add(script, 3, 2);
    script.subject.advance(ms(20));
    age_after(script, 10);
    for key in [2, 3, 1] {
        script.get(key);
    }
}

/// A key whose own deadline has passed runs once, though it comes first by its age.
///
/// Source: requeue-core, Queue::limit_due_keys
/// Needs: 5 keys, Aging
pub(crate) fn a_key_that_has_aged_runs_once_for_a_deadline_that_has_passed(script: &mut Script) {
    script.renew(&setup_with_backlog());
    age_after(script, 1_000);
    add(script, 1, 0);
    script.add_after(1, 10_000, Added::Delayed);
    for (key, millis) in [(2, 2_000), (3, 4_000), (4, 6_000)] {
        script.add_after(key, millis, Added::Delayed);
    }
    script.advance(1_000);
    add(script, 5, 1);
    script.advance(19_000);
    script.succeed(1);
}

/// A deadline that has passed raises its key before the key is handed out.
///
/// Source: requeue-core, Queue::limit_due_keys
/// Needs: 5 keys, Aging
pub(crate) fn a_deadline_that_raises_a_key_that_has_aged_does_so_before_it_runs(
    script: &mut Script,
) {
    script.renew(&setup_with_backlog());
    age_after(script, 1_000);
    add(script, 1, 0);
    let raise = AddOptions {
        priority: Some(2),
        after: Some(ms(10_000)),
        ..AddOptions::default()
    };
    assert!(script.subject.add_with(1, raise).is_ok());
    for (key, millis) in [(2, 9_200), (3, 9_400), (4, 9_600)] {
        script.add_after(key, millis, Added::Delayed);
    }
    script.advance(9_000);
    add(script, 5, 2);
    script.advance(11_000);
    // Key 1 has waited longest, and stands behind key 5 since its deadline.
    for key in [5, 1, 2, 3, 4] {
        script.succeed(key);
    }
}
