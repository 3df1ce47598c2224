use requeue_core::{Action, AddOptions, Added, Finished, Rejected};

use super::{Script, ms};
use crate::subject::{Key, Operate, Subject};

fn at(priority: u8) -> AddOptions {
    AddOptions {
        priority: Some(priority),
        ..AddOptions::default()
    }
}

#[track_caller]
fn add(script: &mut Script, key: Key, options: AddOptions, expected: Added) {
    let added = script.subject.add_with(key, options);
    let added = added.map(|retried| retried.added);
    assert_eq!(added, Ok(expected), "add_with {key}, {options:?}");
}

/// Of keys that are ready the one with the highest priority is handed out first.
///
/// Source: controller-runtime priorityqueue.go, less
/// Needs: 3 keys, Levels
pub(crate) fn the_highest_level_comes_first(script: &mut Script) {
    for (key, level) in [(1, 0), (2, 2), (3, 1)] {
        add(script, key, at(level), Added::Ready);
    }
    for key in [2, 3, 1] {
        script.get(key);
    }
}

/// Keys of one priority are handed out in the order in which they came to it.
///
/// Source: controller-runtime priorityqueue.go, less: AddedCounter
/// Needs: 3 keys, Levels
pub(crate) fn keys_of_a_level_keep_their_order(script: &mut Script) {
    for key in [3, 1, 2] {
        add(script, key, at(1), Added::Ready);
    }
    for key in [3, 1, 2] {
        script.get(key);
    }
}

/// An add with a lower priority leaves the one that a key has.
///
/// Source: controller-runtime priorityqueue.go, AddWithOpts
/// Needs: 2 keys, Levels
pub(crate) fn an_add_never_lowers_a_priority(script: &mut Script) {
    add(script, 1, at(2), Added::Ready);
    add(script, 2, at(1), Added::Ready);
    add(script, 1, at(0), Added::Coalesced);
    script.get(1);
    script.get(2);
}

/// A key whose priority is raised stands behind those that had it before.
///
/// Source: controller-runtime priorityqueue.go, AddWithOpts
/// Needs: 3 keys, Levels
pub(crate) fn a_raise_goes_to_the_end_of_its_level(script: &mut Script) {
    script.add(1, Added::Ready);
    add(script, 2, at(2), Added::Ready);
    let raised = script.subject.add_with(1, at(2));
    assert!(raised.is_ok(), "{raised:?}");
    add(script, 3, at(2), Added::Ready);
    for key in [2, 1, 3] {
        script.get(key);
    }
}

/// A key that is added with a delay and a priority has it when its time comes.
///
/// Source: controller-runtime priorityqueue.go, AddWithOpts
/// Needs: 2 keys, Levels
pub(crate) fn a_delayed_key_keeps_its_priority(script: &mut Script) {
    let later = AddOptions {
        after: Some(ms(10)),
        ..at(1)
    };
    add(script, 1, later, Added::Delayed);
    script.add(2, Added::Ready);
    script.advance(10);
    script.get(1);
    script.get(2);
}

/// A key that failed comes back with the priority of its run.
///
/// Source: controller-runtime controller.go, reconcileHandler
/// Needs: 2 keys, Levels
pub(crate) fn a_priority_survives_retries(script: &mut Script) {
    add(script, 1, at(2), Added::Ready);
    let ticket = script.get(1);
    let retried = script.subject.finish(ticket, Action::Retry);
    assert_ne!(retried, Finished::Stale);
    script.add(2, Added::Ready);
    script.advance(1);
    script.get(1);
    script.get(2);
}

/// On request, the newest ready key of the lowest level makes way in a full queue.
///
/// Source: requeue-core, Queue::add_displacing
/// Needs: 3 keys, Levels
pub(crate) fn a_key_of_the_lowest_level_makes_way_for_a_higher_one(script: &mut Script) {
    let has_capacity = script.subject.capacity().is_some();
    let new = script.fill();
    let displace = |script: &mut Script, key, options| {
        let added = script.subject.add_displacing(key, options);
        added.map(|(_, left)| left.map(|left| left.key))
    };
    if !has_capacity {
        assert_eq!(
            displace(script, new, at(2)),
            Ok(None),
            "there is always room"
        );
        return;
    }
    assert_eq!(
        displace(script, new, at(0)),
        Err(Rejected::Full(new)),
        "none is lower"
    );
    let newest = new - 1;
    assert_eq!(displace(script, new, at(1)), Ok(Some(newest)));
    assert_eq!(displace(script, newest, at(2)), Ok(Some(newest - 1)));
    assert_eq!(
        displace(script, newest, at(0)),
        Ok(None),
        "it is held already"
    );
    script.get(newest);
    script.get(new);
    script.get(1);
}
