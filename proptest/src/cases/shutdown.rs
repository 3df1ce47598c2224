use requeue_core::{Action, Added, Finished};

use super::{Script, ms};
use crate::subject::Operate;

/// After shutdown keys that are ready are handed out, and then no more.
///
/// Source: client-go queue.go, Get
/// Needs: 2 keys
pub(crate) fn keys_that_are_ready_are_still_handed_out(script: &mut Script) {
    script.add(1, Added::Ready);
    script.add(2, Added::Ready);
    script.subject.shut_down();
    assert!(script.subject.is_shutting_down());
    script.get(1);
    script.get(2);
    script.closed();
    script.done(2);
    script.done(1);
    script.closed();
    assert_eq!(script.subject.stats().total, 0);
}

/// A key that is dirty when the queue shuts down is handed out once more.
///
/// Source: client-go queue.go, Done
pub(crate) fn a_dirty_key_comes_back_after_shutdown(script: &mut Script) {
    script.add(1, Added::Ready);
    script.get(1);
    script.add(1, Added::Dirty);
    script.subject.shut_down();
    script.closed();
    script.done(1);
    script.run(1);
    script.closed();
}

/// After shutdown no delay ends.
///
/// Source: client-go delaying_queue.go, waitingLoop: stopCh
pub(crate) fn a_delayed_key_does_not_become_ready_after_shutdown(script: &mut Script) {
    script.add(1, Added::Ready);
    let ticket = script.get(1);
    let again = Action::Snooze(ms(5));
    assert_ne!(script.subject.finish(ticket, again), Finished::Stale);
    script.subject.shut_down();
    script.advance(5);
    script.closed();
    script.len(0);
    assert_eq!(script.subject.stats().delayed, 1);
}
