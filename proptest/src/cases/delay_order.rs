use std::time::Duration;

use requeue_core::Added;

use super::{Script, ms};
use crate::subject::Subject;

/// A delayed key is not handed out before its time.
///
/// Source: client-go delaying_queue.go, waitingLoop
pub(crate) fn no_key_is_early(script: &mut Script) {
    script.add_after(1, 10, Added::Delayed);
    script.subject.advance(ms(10) - Duration::from_nanos(1));
    script.nothing_to_get();
    script.len(0);
    script.subject.advance(Duration::from_nanos(1));
    script.get(1);
}

/// Delayed keys become ready in the order of their deadlines.
///
/// Source: client-go delaying_queue.go, waitForPriorityQueue
/// Needs: 3 keys
pub(crate) fn keys_come_in_the_order_of_their_deadlines(script: &mut Script) {
    script.add_after(1, 30, Added::Delayed);
    script.add_after(2, 10, Added::Delayed);
    script.add_after(3, 20, Added::Delayed);
    script.advance(40);
    for key in [2, 3, 1] {
        script.get(key);
    }
}

/// A key that becomes due stands behind those that were ready before.
///
/// Source: client-go delaying_queue.go, waitingLoop: Add
/// Needs: 2 keys
pub(crate) fn a_key_that_is_due_goes_behind_those_that_are_ready(script: &mut Script) {
    script.add_after(1, 10, Added::Delayed);
    script.add(2, Added::Ready);
    script.advance(10);
    script.get(2);
    script.get(1);
}

/// A key that became due stands before one that is added later, looked at or not.
///
/// Source: docs/design.md, Due keys
/// Needs: 2 keys
pub(crate) fn how_late_a_key_was_released_cannot_be_seen(script: &mut Script) {
    script.add_after(1, 10, Added::Delayed);
    script.advance(20);
    script.add(2, Added::Ready);
    script.get(1);
    script.get(2);
}
