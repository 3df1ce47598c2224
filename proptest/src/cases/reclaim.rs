use requeue_core::{Added, Rejected};

use super::Script;
use crate::subject::Operate;

/// A key that is ready, active or delayed is not dropped, whatever its failures.
///
/// Source: docs/design.md, One slot per key
/// Needs: Capacity
pub(crate) fn work_is_never_dropped_for_room(script: &mut Script) {
    let new = script.fill();
    // Each has failed and is also delayed, ready or active.
    for key in 1..new {
        script.fail(key, 1);
    }
    script.refused(new, Rejected::Full(new));
    script.get(1);
    script.refused(new, Rejected::Full(new));
    script.done(1);
    script.refused(new, Rejected::Full(new));
    for key in 1..new {
        script.failures(key, 1);
    }
}

/// A key that failed and is forgotten gives its room back.
///
/// Source: docs/design.md, Q5
/// Needs: 2 keys, Capacity
pub(crate) fn a_failure_record_that_is_forgotten_is_not_dropped_twice(script: &mut Script) {
    let capacity = script.capacity();
    for key in 1..=capacity {
        script.fail(key, 1);
        script.advance(1);
        script.run(key);
    }
    // All are failure records. The oldest but one gives its room back by itself.
    assert_eq!(script.subject.forget(2), 1);
    script.add(capacity + 1, Added::Ready);
    script.failures(1, 1);
    script.add(capacity + 2, Added::Ready);
    script.failures(1, 0);
}
