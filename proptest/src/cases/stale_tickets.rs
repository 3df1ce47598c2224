use requeue_core::binding::Getter;
use requeue_core::{Action, Added, Finished};

use super::Script;
use crate::subject::Subject;

pub(crate) fn a_run_is_completed_once(script: &mut Script) {
    script.add(1, Added::Ready);
    let ticket = script.get(1);
    script.done(1);
    assert_eq!(script.subject.release_key(1), Finished::Stale);
    let retried = script.subject.finish(ticket, Action::Retry);
    assert_eq!(retried, Finished::Stale);
    script.subject.assert_valid();
    script.failures(1, 0);
    assert_eq!(script.subject.stats().total, 0);
}

pub(crate) fn a_stale_ticket_does_not_touch_the_next_run(script: &mut Script) {
    script.add(1, Added::Ready);
    let stale = script.get(1);
    script.add(1, Added::Dirty);
    script.done(1);
    let current = script.get(1);
    let turn = script
        .subject
        .next(stale, Action::Success, &mut Getter::default());
    assert_eq!(turn.0, Finished::Stale);
    assert_eq!(script.subject.stats().active, 1);
    assert_eq!(script.subject.release(current), Finished::Idle);
}
