use requeue_core::{AddOptions, Added, Finished, Merge, Rejected};

use super::{Script, ms};
use crate::subject::Operate;

/// An add that waits for 100 ms without another, but no longer than 250 ms.
#[track_caller]
fn event(script: &mut Script, expected: Added) {
    let added = script.subject.add_debounced(1, ms(100), ms(250));
    assert_eq!(added, Ok(expected));
}

/// A debounced key runs once, when no debounced add has come for a while.
///
/// Source: requeue-core, Queue::add_debounced
/// Needs: Policy
pub(crate) fn each_add_of_a_burst_moves_its_deadline(script: &mut Script) {
    event(script, Added::Delayed);
    for _ in 0..2 {
        script.advance(50);
        event(script, Added::Later);
    }
    script.not_before(100);
    let ticket = script.get(1);
    event(script, Added::Delayed);
    assert_eq!(script.subject.release(ticket), Finished::Idle);
    script.not_before(100);
    script.run(1);
    script.nothing_to_get();
}

/// However many debounced adds come, the key runs a time after the first.
///
/// Source: requeue-core, Queue::add_debounced
/// Needs: Policy
pub(crate) fn a_burst_ends_at_its_maximum(script: &mut Script) {
    for _ in 0..2 {
        event(script, Added::Delayed);
        for later in [Added::Later, Added::Later, Added::Coalesced] {
            script.advance(80);
            event(script, later);
        }
        script.not_before(10);
        event(script, Added::Coalesced);
        script.run(1);
    }
}

/// A deadline that is not that of the burst is not moved back.
///
/// Source: requeue-core, Queue::add_debounced
/// Needs: Policy
pub(crate) fn a_burst_moves_no_deadline_but_its_own(script: &mut Script) {
    script.add_after(1, 60, Added::Delayed);
    event(script, Added::Coalesced);
    script.advance(60);
    script.run(1);
    script.add_after(1, 300, Added::Delayed);
    event(script, Added::Sooner);
    script.advance(50);
    event(script, Added::Later);
    script.add_after(1, 10, Added::Sooner);
    event(script, Added::Coalesced);
    script.advance(10);
    script.run(1);
}

/// A burst no longer moves its deadline once another call asks for the same time.
///
/// Source: requeue-core, Queue::add_debounced
/// Needs: Policy
pub(crate) fn a_burst_leaves_a_deadline_that_others_ask_for_too(script: &mut Script) {
    event(script, Added::Delayed);
    script.advance(50);
    script.add_after(1, 50, Added::Coalesced);
    script.advance(10);
    event(script, Added::Coalesced);
    script.advance(40);
    script.run(1);

    // A deadline that was cancelled, and is set again.
    event(script, Added::Delayed);
    assert!(script.subject.cancel_delay(1).is_some());
    script.add_after(1, 100, Added::Delayed);
    script.advance(50);
    event(script, Added::Coalesced);
    script.advance(50);
    script.run(1);

    // Deadlines that are moved, or asked for, by another rule.
    event(script, Added::Delayed);
    merge(script, Merge::Replace, 50, Added::Sooner);
    merge(script, Merge::Replace, 100, Added::Later);
    script.advance(50);
    event(script, Added::Coalesced);
    script.advance(50);
    script.run(1);
    for rule in [Merge::Replace, Merge::Latest, Merge::Once] {
        event(script, Added::Delayed);
        script.advance(50);
        merge(script, rule, 50, Added::Coalesced);
        event(script, Added::Coalesced);
        script.advance(50);
        script.run(1);
    }

    // Others that do not set this deadline leave the series as it is.
    event(script, Added::Delayed);
    script.advance(50);
    script.add_after(1, 60, Added::Coalesced);
    merge(script, Merge::Keep, 50, Added::Coalesced);
    merge(script, Merge::Latest, 40, Added::Coalesced);
    event(script, Added::Later);
    script.not_before(100);
    script.run(1);
}

#[track_caller]
fn merge(script: &mut Script, merge: Merge, millis: u64, expected: Added) {
    let options = AddOptions {
        after: Some(ms(millis)),
        merge,
        ..AddOptions::default()
    };
    let scheduled = script.subject.add_with(1, options);
    assert_eq!(scheduled.map(|scheduled| scheduled.added), Ok(expected));
}

/// A burst ends when its key is cancelled, and leaves nothing behind.
///
/// Source: requeue-core, Queue::add_debounced
/// Needs: Policy
pub(crate) fn a_burst_that_is_taken_back_is_over(script: &mut Script) {
    event(script, Added::Delayed);
    assert!(script.subject.cancel_key(1).is_some());
    assert_eq!(script.subject.stats().total, 0);
    script.advance(90);
    event(script, Added::Delayed);
    for _ in 0..2 {
        script.advance(90);
        event(script, Added::Later);
    }
    script.advance(60);
    script.nothing_to_get();
    script.advance(10);
    script.run(1);
}

/// A debounced add without a quiet time is an add, and ends the burst.
///
/// Source: requeue-core, Queue::add_debounced
/// Needs: Policy
pub(crate) fn an_add_that_need_not_wait_ends_its_burst(script: &mut Script) {
    event(script, Added::Delayed);
    let added = script.subject.add_debounced(1, ms(0), ms(250));
    assert_eq!(added, Ok(Added::Ready));
    event(script, Added::Coalesced);
    script.run(1);
    script.advance(250);
    script.nothing_to_get();
    let added = script.subject.add_debounced(1, ms(100), ms(0));
    assert_eq!(added, Ok(Added::Ready));
    script.run(1);
    script.subject.shut_down();
    let added = script.subject.add_debounced(1, ms(100), ms(250));
    assert_eq!(added, Err(Rejected::Closed(1)));
}
