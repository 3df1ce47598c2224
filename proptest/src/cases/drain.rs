use requeue_core::Added;
use requeue_core::binding::Drained;

use super::Script;
use crate::subject::Operate;

/// A queue with nothing to do has drained at once.
///
/// Source: client-go queue.go, ShutDownWithDrain
pub(crate) fn a_queue_with_nothing_to_do_has_drained(script: &mut Script) {
    let drain = script.subject.begin_drain();
    script.drained(&drain, Drained::Complete);
    script.closed();
}

/// A drain does not wait for delayed keys.
///
/// Source: client-go queue.go, ShutDownWithDrain
pub(crate) fn delayed_keys_are_not_waited_for(script: &mut Script) {
    script.add_after(1, 10, Added::Delayed);
    script.add(1, Added::Ready);
    let drain = script.subject.begin_drain();
    script.drained(&drain, Drained::Pending);
    script.run(1);
    script.drained(&drain, Drained::Complete);
    assert_eq!(script.subject.stats().delayed, 1);
}
