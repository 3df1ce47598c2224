use std::time::Duration;

use requeue_core::{Added, Finished, Rejected};

use super::{Script, ms};
use crate::subject::{Key, Left, Operate, Subject, left_over};

fn left(key: Key, millis: u64, failures: u32) -> Left {
    left_over(key, ms(millis), failures, 0)
}

#[track_caller]
fn restore(script: &mut Script, left: Left, expected: Added) {
    assert_eq!(script.subject.restore(left), Ok(expected));
}

/// Leftovers that are restored keep their order, delays and failures.
///
/// Source: requeue-core, Queue::restore
/// Needs: 4 keys
pub(crate) fn what_was_left_goes_on_as_it_was(script: &mut Script) {
    script.fail(2, 1);
    script.fail(2, 2);
    script.advance(1);
    script.add_after(1, 20, Added::Delayed);
    script.add(4, Added::Ready);
    let key = script.get(2);
    assert_eq!(script.subject.release(key), Finished::Idle);
    script.add(2, Added::Ready);
    let never = script.subject.add_after(3, Duration::MAX);
    assert_eq!(never, Ok(Added::Delayed));
    script.advance(5);
    script.subject.shut_down();
    let ready = std::iter::from_fn(|| script.subject.take_ready());
    let mut leftovers: Vec<_> = ready.collect();
    leftovers.extend(std::iter::from_fn(|| script.subject.take_delayed()));

    script.restart();
    for leftover in leftovers {
        let is_ready = leftover.left.is_zero();
        let expected = if is_ready {
            Added::Ready
        } else {
            Added::Delayed
        };
        restore(script, leftover, expected);
    }
    script.failures(2, 2);
    script.get(4);
    let ticket = script.get(2);
    let retried = script.subject.finish(ticket, requeue_core::Action::Retry);
    assert_eq!(retried, Finished::Delayed(ms(4)), "its third failure");
    script.advance(14);
    script.get(2);
    script.nothing_to_get();
    script.advance(1);
    script.get(1);
    let state = script.subject.state(3);
    assert!(state.is_some_and(|state| state.due.is_some_and(|due| due.is_never())));
}

/// A restored key that is there is added; the larger count of failures counts.
///
/// Source: requeue-core, Queue::restore
/// Needs: 2 keys
pub(crate) fn a_key_that_is_there_takes_the_sooner_time_and_the_larger_count(script: &mut Script) {
    script.fail(1, 1);
    restore(script, left(1, 3, 2), Added::Coalesced);
    script.failures(1, 2);
    script.advance(1);
    let ticket = script.get(1);
    restore(script, left(1, 0, 1), Added::Dirty);
    script.failures(1, 2);
    restore(script, left(1, 9, 0), Added::Delayed);
    restore(script, left(1, 7, 3), Added::Sooner);
    assert_eq!(script.subject.release(ticket), Finished::Ready);
    script.get(1);
    script.failures(1, 3);

    script.fail(2, 1);
    assert!(script.subject.cancel_key(2).is_some());
    restore(script, left(2, 0, 5), Added::Ready);
    script.get(2);
    script.failures(2, 5);
    assert_eq!(script.subject.forget(2), 5);
}

/// A leftover for which there is no room comes back as it was.
///
/// Source: requeue-core, Queue::restore
pub(crate) fn a_leftover_that_is_refused_is_handed_back_whole(script: &mut Script) {
    if script.subject.capacity().is_some() {
        let new = script.fill();
        let refused = left(new, 8, 3);
        assert_eq!(
            script.subject.restore(refused),
            Err(Rejected::Full(refused))
        );
        assert_eq!(script.subject.state(new), None);
    }
    script.subject.shut_down();
    for refused in [left(1, 0, 3), left(1, 8, 3)] {
        assert_eq!(
            script.subject.restore(refused),
            Err(Rejected::Closed(refused))
        );
    }
    script.failures(1, 0);
}

/// A key is restored at its level, and refused if there is no such level.
///
/// Source: requeue-core, Queue::restore
/// Needs: 2 keys, Levels
pub(crate) fn a_restored_key_keeps_its_level(script: &mut Script) {
    let at = |key, millis, priority| left_over(key, ms(millis), 0, priority);
    restore(script, at(1, 0, 0), Added::Ready);
    restore(script, at(2, 5, 1), Added::Delayed);
    script.advance(5);
    script.get(2);
    restore(script, at(1, 0, 1), Added::Raised);
    let unknown = at(2, 0, script.subject.abilities().levels);
    let refused = script.subject.restore(unknown);
    assert_eq!(refused, Err(Rejected::UnknownPriority(unknown)));
}
