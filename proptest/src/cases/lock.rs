use requeue_core::Added;

use super::Script;
use crate::subject::Operate;

/// A panic while the lock is held leaves a queue that works.
///
/// Source: requeue-core, Lock
/// Needs: Lock
pub(crate) fn a_panic_under_the_lock_does_not_poison_it(script: &mut Script) {
    script.subject.panic_under_lock();
    // This takes the lock and nothing else. An add wakes all calls if it panics, which would be a
    // second panic while the first unwinds, and end the process without a report.
    script.subject.stats();
    script.add(1, Added::Ready);
    script.get(1);
    script.subject.panic_under_lock();
    script.done(1);
    script.len(0);
}
