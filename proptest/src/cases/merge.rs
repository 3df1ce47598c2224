use std::time::Duration;

use requeue_core::{AddOptions, Added, Instant, Merge};

use super::{Script, ms};
use crate::subject::{Key, Operate};

/// An add after so many milliseconds, or now.
#[track_caller]
fn add(script: &mut Script, key: Key, merge: Merge, millis: Option<u64>, expected: Added) {
    let options = AddOptions {
        after: millis.map(ms),
        merge,
        ..AddOptions::new()
    };
    let scheduled = script.subject.add_with(key, options);
    let added = scheduled.map(|scheduled| scheduled.added);
    assert_eq!(added, Ok(expected), "{merge:?} {key}, {millis:?} ms");
}

/// The key waits until so many milliseconds after the epoch.
#[track_caller]
fn due(script: &mut Script, key: Key, millis: Option<u64>) {
    let due = script.subject.state(key).and_then(|state| state.due);
    let expected = millis.map(|millis| Instant::EPOCH + ms(millis));
    assert_eq!(due, expected, "key {key}");
}

/// Once: an add ends the delay that a key has, and a ready key gets none.
///
/// Source: controller-runtime priorityqueue.go, AddWithOpts
pub(crate) fn a_key_that_runs_once_runs_at_the_earlier_time(script: &mut Script) {
    add(script, 1, Merge::Once, Some(30), Added::Delayed);
    add(script, 1, Merge::Once, Some(40), Added::Coalesced);
    add(script, 1, Merge::Once, Some(20), Added::Sooner);
    add(script, 1, Merge::Once, None, Added::Ready);
    add(script, 1, Merge::Once, Some(5), Added::Coalesced);
    due(script, 1, None);
    script.run(1);
    script.advance(40);
    script.nothing_to_get();
}

/// Latest: an add can move a deadline back, and not forward.
///
/// Source: requeue-core, Merge::Latest
pub(crate) fn the_later_deadline_counts(script: &mut Script) {
    add(script, 1, Merge::Latest, Some(20), Added::Delayed);
    add(script, 1, Merge::Latest, Some(10), Added::Coalesced);
    add(script, 1, Merge::Latest, Some(20), Added::Coalesced);
    add(script, 1, Merge::Latest, None, Added::Coalesced);
    add(script, 1, Merge::Latest, Some(0), Added::Coalesced);
    due(script, 1, Some(20));
    add(script, 1, Merge::Latest, Some(30), Added::Later);
    script.advance(20);
    script.nothing_to_get();
    script.advance(10);
    script.run(1);
    add(script, 1, Merge::Latest, None, Added::Ready);
    script.get(1);
}

/// Replace: an add moves a deadline to its own time, which may be now.
///
/// Source: Linux workqueue.c, mod_delayed_work; Zephyr work.c, k_work_reschedule
pub(crate) fn the_new_deadline_counts(script: &mut Script) {
    add(script, 1, Merge::Replace, Some(20), Added::Delayed);
    add(script, 1, Merge::Replace, Some(30), Added::Later);
    add(script, 1, Merge::Replace, Some(30), Added::Coalesced);
    add(script, 1, Merge::Replace, Some(10), Added::Sooner);
    due(script, 1, Some(10));
    for millis in [None, Some(0)] {
        add(script, 1, Merge::Replace, millis, Added::Ready);
        due(script, 1, None);
        script.run(1);
        add(script, 1, Merge::Replace, Some(10), Added::Delayed);
    }
    let never = AddOptions {
        after: Some(Duration::MAX),
        merge: Merge::Replace,
        ..AddOptions::new()
    };
    let scheduled = script.subject.add_with(1, never);
    assert_eq!(scheduled.map(|scheduled| scheduled.added), Ok(Added::Later));
    assert_eq!(script.subject.stats().next_deadline, None);
    script.advance(10);
    script.nothing_to_get();
    add(script, 1, Merge::Replace, Some(10), Added::Sooner);
    script.advance(10);
    script.get(1);
}

/// Keep: an add leaves a deadline where it is.
///
/// Source: Linux workqueue.c, queue_delayed_work; Zephyr work.c, k_work_schedule
pub(crate) fn the_present_deadline_counts(script: &mut Script) {
    add(script, 1, Merge::Keep, Some(20), Added::Delayed);
    for millis in [Some(30), Some(10), Some(0), None] {
        add(script, 1, Merge::Keep, millis, Added::Coalesced);
        due(script, 1, Some(20));
    }
    script.advance(20);
    script.get(1);
    add(script, 1, Merge::Keep, None, Added::Dirty);
    script.done(1);
    script.get(1);
}

/// A deadline that moves back counts as set then, and others keep theirs.
///
/// Source: docs/design.md, equal_deadlines_leave_in_insertion_order
/// Needs: 3 keys
pub(crate) fn a_deadline_that_moves_back_lets_others_come_first(script: &mut Script) {
    for key in 1..=3 {
        script.add_after(key, 10, Added::Delayed);
    }
    add(script, 1, Merge::Latest, Some(20), Added::Later);
    add(script, 2, Merge::Replace, Some(20), Added::Later);
    add(script, 3, Merge::Replace, Some(20), Added::Later);
    add(script, 2, Merge::Replace, Some(10), Added::Sooner);
    script.advance(10);
    script.get(2);
    script.nothing_to_get();
    script.advance(10);
    script.get(1);
    script.get(3);
}

/// A key that is ready or active stays so, whatever becomes of its deadline.
///
/// Source: requeue-core, Merge
pub(crate) fn a_rule_takes_back_no_run(script: &mut Script) {
    for merge in [Merge::Latest, Merge::Replace, Merge::Keep] {
        script.restart();
        script.add(1, Added::Ready);
        add(script, 1, merge, Some(10), Added::Delayed);
        add(script, 1, merge, None, Added::Coalesced);
        script.len(1);
        script.get(1);
        script.nothing_to_get();
        script.done(1);
        script.advance(10);
        match merge {
            // The add without a delay has taken its place.
            Merge::Replace => script.nothing_to_get(),
            _ => drop(script.get(1)),
        }
    }
}
