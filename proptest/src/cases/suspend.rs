use requeue_core::{Action, Added, Finished, Why};

use super::{Script, ms, unexpected};
use crate::subject::{Handed, Operate, Subject};

/// Takes the next key, which is 1. Returns whether nobody resumed it in time.
#[track_caller]
fn timed_out(script: &mut Script) -> bool {
    match script.subject.try_get() {
        Some(Handed {
            key: 1, timed_out, ..
        }) => timed_out,
        other => unexpected(String::from("key 1"), &other),
    }
}

/// A suspended key is not handed out, however it is added, until it is resumed.
///
/// Source: requeue-core, Queue::suspend
/// Needs: Suspensions
pub(crate) fn a_suspended_key_runs_when_it_is_resumed(script: &mut Script) {
    script.add(1, Added::Ready);
    let ticket = script.get(1);
    script.finish(
        ticket,
        Action::Suspend(ms(100)),
        Finished::Suspended(ms(100)),
    );
    script.add(1, Added::Coalesced);
    script.add_after(1, 10, Added::Delayed);
    script.advance(20);
    script.nothing_to_get();
    script.failures(1, 0);
    assert_eq!(script.subject.stats().suspended, 1);
    assert!(script.subject.resume(1));
    assert!(!timed_out(script));
    assert!(!script.subject.resume(1), "it is not suspended any more");
    script.done(1);
    script.nothing_to_get();
}

/// A suspended key runs in any case when its timeout ends, and its run learns so.
///
/// Source: requeue-core, Queue::suspend
/// Needs: Suspensions
pub(crate) fn a_timeout_ends_a_suspension_and_its_run_learns_so(script: &mut Script) {
    script.add(1, Added::Ready);
    script.get(1);
    assert!(script.subject.suspend(1, ms(10)));
    script.done(1);
    let until = script.subject.now() + ms(10);
    let again = false;
    assert_eq!(script.subject.why(1), Why::Suspended { until, again });
    script.not_before(10);
    assert!(timed_out(script));
    script.done(1);
    script.add(1, Added::Ready);
    assert!(!timed_out(script), "that run has another reason");
}

/// A key that is resumed during its run is not suspended at its end.
///
/// Source: requeue-core, Queue::resume
/// Needs: Suspensions
pub(crate) fn a_resume_before_the_end_of_the_run_is_not_lost(script: &mut Script) {
    script.add(1, Added::Ready);
    let ticket = script.get(1);
    assert!(!script.subject.resume(1), "it is not suspended yet");
    script.finish(ticket, Action::Suspend(ms(100)), Finished::Ready);
    let ticket = script.get(1);
    let finished = script.subject.finish(ticket, Action::Suspend(ms(100)));
    assert_eq!(
        finished,
        Finished::Suspended(ms(100)),
        "a resume is for one run"
    );
}

/// A resumed key runs only if it was added, or its action asked for it.
///
/// Source: requeue-core, Queue::resume
/// Needs: Suspensions
pub(crate) fn a_resumed_key_that_nothing_asks_for_is_gone(script: &mut Script) {
    script.add(1, Added::Ready);
    script.get(1);
    assert!(script.subject.suspend(1, ms(100)));
    script.done(1);
    assert!(script.subject.contains(1));
    assert!(script.subject.resume(1));
    script.nothing_to_get();
    assert!(!script.subject.contains(1));
}

/// After shutdown a suspended key is handed back with the time left of its timeout.
///
/// Source: requeue-core, Queue::suspend
/// Needs: Suspensions
pub(crate) fn a_suspended_key_is_a_leftover(script: &mut Script) {
    script.add(1, Added::Ready);
    assert!(script.subject.suspend(1, ms(10)));
    script.advance(4);
    script.subject.shut_down();
    script.closed();
    assert!(!script.subject.resume(1));
    let left = script.subject.take_delayed();
    assert_eq!(
        left.map(|left| (left.key, left.left)),
        Some((1, ms(6))),
        "with its time left"
    );
}

/// A key that is cancelled is no longer suspended.
///
/// Source: requeue-core, Queue::suspend
/// Needs: Suspensions
pub(crate) fn cancel_ends_a_suspension(script: &mut Script) {
    script.add(1, Added::Ready);
    assert!(script.subject.suspend(1, ms(10)));
    assert!(script.subject.cancel_key(1).is_some());
    script.advance(10);
    script.nothing_to_get();
    assert!(!script.subject.suspend(1, ms(10)), "there is no such key");
}
