use requeue_core::binding::Getter;
use requeue_core::{Action, Added, NotActive};

use super::Script;
use crate::subject::Subject;

pub(crate) fn a_run_is_completed_once(script: &mut Script) {
    script.add(1, Added::Ready);
    let ticket = script.get(1);
    script.done(1);
    assert_eq!(script.subject.release_key(1), Err(NotActive));
    let retried = script.subject.finish(ticket, Action::Retry);
    assert_eq!(retried, Err(NotActive));
    script.subject.assert_valid();
    script.failures(1, 0);
    assert_eq!(script.subject.totals().held, 0);
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
    assert_eq!(turn.0, Err(NotActive));
    assert_eq!(script.subject.totals().active, 1);
    assert_eq!(script.subject.release(current), Ok(()));
}
