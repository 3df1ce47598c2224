use requeue_core::binding::Drained;
use requeue_core::{Action, Added, Finished};

use super::{Script, ms};
use crate::subject::Operate;

/// While a queue is paused keys are added, and none is handed out.
///
/// Source: requeue-core, Queue::pause
/// Needs: 2 keys
pub(crate) fn a_paused_queue_hands_out_nothing_and_loses_nothing(script: &mut Script) {
    script.add(1, Added::Ready);
    script.subject.pause();
    assert!(script.subject.is_paused());
    script.add(2, Added::Ready);
    script.add_after(1, 10, Added::Delayed);
    assert_eq!(script.subject.try_get(), None);
    script.nothing_to_get();
    script.len(2);
    script.subject.unpause();
    assert!(!script.subject.is_paused());
    script.get(1);
    script.subject.pause();
    script.advance(10);
    script.nothing_to_get();
    script.subject.unpause();
    script.get(2);
    script.done(1);
    script.get(1);
}

/// A run that began before the pause ends as usual, and its key comes back after it.
///
/// Source: requeue-core, Queue::pause
pub(crate) fn runs_end_while_the_queue_is_paused(script: &mut Script) {
    script.add(1, Added::Ready);
    let ticket = script.get(1);
    script.subject.pause();
    script.finish(
        ticket,
        Action::RequeueAfter(ms(5)),
        Finished::Delayed(ms(5)),
    );
    script.advance(5);
    script.nothing_to_get();
    script.subject.unpause();
    script.get(1);
    script.add(1, Added::Dirty);
    script.subject.pause();
    script.done(1);
    script.nothing_to_get();
    script.subject.unpause();
    script.get(1);
}

/// A shutdown or a drain ends a pause, and none begins after it.
///
/// Source: requeue-core, Queue::pause
pub(crate) fn shutdown_ends_a_pause(script: &mut Script) {
    script.add(1, Added::Ready);
    script.subject.pause();
    let drain = script.subject.begin_drain();
    assert!(!script.subject.is_paused());
    script.subject.pause();
    assert!(!script.subject.is_paused());
    script.drained(&drain, Drained::Pending);
    script.run(1);
    script.drained(&drain, Drained::Complete);
    script.closed();
}
