use requeue_core::{Action, Added, Finished};

use super::Script;
use crate::subject::Operate;

/// A ticket whose run was completed by name is stale and changes nothing.
///
/// Source: docs/design.md, done_with_a_stale_ticket_does_nothing
pub(crate) fn a_run_is_completed_once(script: &mut Script) {
    script.add(1, Added::Ready);
    let ticket = script.get(1);
    script.done(1);
    assert_eq!(script.subject.release_key(1), Finished::Stale);
    let retried = script.subject.finish(ticket, Action::Retry);
    assert_eq!(retried, Finished::Stale);
    script.failures(1, 0);
    assert_eq!(script.subject.stats().total, 0);
}

/// A ticket of an earlier run does not complete a later one of the same key.
///
/// Source: docs/design.md, done_with_a_stale_ticket_does_nothing
pub(crate) fn a_stale_ticket_does_not_touch_the_next_run(script: &mut Script) {
    script.add(1, Added::Ready);
    let stale = script.get(1);
    script.add(1, Added::Dirty);
    script.done(1);
    let current = script.get(1);
    let turn = script.subject.next(stale, Action::Success, 0);
    assert_eq!(turn.0, Finished::Stale);
    assert_eq!(script.subject.stats().active, 1);
    assert_eq!(script.subject.release(current), Finished::Idle);
}
