use requeue_core::binding::Drained;
use requeue_core::{Added, Finished};

use super::{Script, ms};
use crate::subject::{Key, Operate, Subject};

/// Cancels a key, and returns whether there was work for it.
#[track_caller]
fn cancel(script: &mut Script, key: Key) -> bool {
    let was = script.subject.cancel_key(key);
    let state = script.subject.state(key);
    let has_work = state.is_some_and(|state| state.ready || state.dirty || state.due.is_some());
    assert!(!has_work, "key {key} is cancelled, and {state:?}");
    was.is_some()
}

/// A key that is cancelled leaves the ready and the delayed keys; the others stay.
///
/// Source: requeue-core, Queue::cancel
/// Needs: 3 keys
pub(crate) fn a_key_that_is_cancelled_is_not_handed_out(script: &mut Script) {
    for key in 1..=3 {
        script.add(key, Added::Ready);
    }
    script.add_after(2, 10, Added::Delayed);
    let was = script.subject.cancel_key(2);
    assert!(was.is_some_and(|was| was.ready && was.due.is_some() && !was.active));
    assert!(!cancel(script, 2), "nothing was left");
    script.len(2);
    script.advance(10);
    script.get(1);
    script.get(3);
    script.nothing_to_get();
}

/// A cancelled key is not handed out again after its run, unless it is added.
///
/// Source: requeue-core, Queue::cancel
pub(crate) fn a_run_goes_on_when_its_key_is_cancelled(script: &mut Script) {
    script.add(1, Added::Ready);
    let ticket = script.get(1);
    script.add(1, Added::Dirty);
    script.add_after(1, 10, Added::Delayed);
    let was = script.subject.cancel_key(1);
    assert!(was.is_some_and(|was| was.active && was.dirty && was.due.is_some()));
    script.advance(10);
    let released = script.subject.release(ticket);
    assert_eq!(released, Finished::Idle, "its run had not ended");
    script.nothing_to_get();

    script.add(1, Added::Ready);
    script.get(1);
    assert!(cancel(script, 1));
    script.add(1, Added::Dirty);
    script.done(1);
    script.get(1);
}

/// A key that is added after it was cancelled has the place of a new one.
///
/// Source: requeue-core, Queue::cancel
/// Needs: 4 keys
pub(crate) fn a_key_that_is_cancelled_and_added_goes_to_the_end(script: &mut Script) {
    for key in [3, 6, 9, 12] {
        script.add(key, Added::Ready);
    }
    for key in [6, 9, 6] {
        assert!(cancel(script, key));
        script.add(key, Added::Ready);
    }
    script.len(4);
    for key in [3, 12, 9, 6] {
        script.get(key);
    }
    script.nothing_to_get();
}

/// Cancelling a key keeps its failures, and none is counted.
///
/// Source: requeue-core, Queue::cancel
pub(crate) fn failures_survive_a_cancel(script: &mut Script) {
    script.fail(1, 1);
    assert!(cancel(script, 1));
    script.failures(1, 1);
    assert!(!cancel(script, 1), "failures are no work");
    script.fail(1, 2);
    assert_eq!(script.subject.forget(1), 2);
}

/// A deadline that is cancelled never comes; its key stays ready, dirty or active.
///
/// Source: requeue-core, Queue::cancel_delay
/// Needs: 2 keys
pub(crate) fn a_deadline_that_is_cancelled_never_comes(script: &mut Script) {
    script.add_after(1, 10, Added::Delayed);
    script.add_after(2, 10, Added::Delayed);
    script.add(2, Added::Ready);
    let due = Some(script.subject.now() + ms(10));
    for key in 1..=2 {
        assert_eq!(script.subject.cancel_delay(key), due);
        assert_eq!(script.subject.cancel_delay(key), None);
    }
    assert!(!script.subject.contains(1));
    script.get(2);
    script.advance(10);
    script.nothing_to_get();

    script.add_after(1, 10, Added::Delayed);
    script.advance(10);
    assert_eq!(script.subject.cancel_delay(1), None, "it has come");
    script.get(1);
}

/// A key that is cancelled while it is active is known as such until its run ends.
///
/// Source: requeue-core, Queue::is_cancelled
/// Needs: 2 keys
pub(crate) fn a_run_knows_that_its_key_was_cancelled(script: &mut Script) {
    let cancelled = |script: &mut Script, key| {
        let state = script.subject.state(key);
        state.is_some_and(|state| state.cancelled)
    };
    for key in 1..=2 {
        script.add(key, Added::Ready);
        script.get(key);
    }
    assert!(!cancelled(script, 1));
    assert!(cancel(script, 1));
    assert!(cancelled(script, 1) && !cancelled(script, 2));
    script.add(1, Added::Dirty);
    assert!(cancelled(script, 1), "it is added, and was cancelled");
    assert!(cancel(script, 1));
    script.add(1, Added::Dirty);
    script.done(1);
    assert!(!cancelled(script, 1), "its run has ended");
    script.get(1);
    assert!(!cancelled(script, 1), "this is another run");
    assert_eq!(script.subject.retain_below(2), 1);
    assert!(cancelled(script, 2) && !cancelled(script, 1));
}

/// The keys that are not retained are cancelled, and the others keep their order.
///
/// Source: requeue-core, Queue::retain_some
/// Needs: 5 keys
pub(crate) fn many_keys_are_cancelled_together(script: &mut Script) {
    for key in [15, 6, 12, 3] {
        script.add(key, Added::Ready);
    }
    script.add_after(9, 10, Added::Delayed);
    script.get(15);
    script.add(15, Added::Dirty);
    assert_eq!(script.subject.retain_below(9), 3, "9, 12 and 15");
    script.done(15);
    script.get(6);
    assert_eq!(script.subject.retain_below(0), 2, "one of them is active");
    script.advance(10);
    script.nothing_to_get();
    script.done(6);
    assert_eq!(script.subject.stats().total, 0);
}

/// After shutdown keys can be cancelled, and a drain ends when nothing is left.
///
/// Source: requeue-core, Queue::cancel
/// Needs: 2 keys
pub(crate) fn a_drain_ends_when_the_last_key_is_cancelled(script: &mut Script) {
    script.add(1, Added::Ready);
    script.get(1);
    script.add(1, Added::Dirty);
    script.add(2, Added::Ready);
    let drain = script.subject.begin_drain();
    assert!(cancel(script, 1));
    script.done(1);
    script.drained(&drain, Drained::Pending);
    assert!(cancel(script, 2));
    script.drained(&drain, Drained::Complete);
    assert_eq!(script.subject.take_ready(), None);
}
