use requeue_core::{Added, Instant};

use super::{Script, ms};
use crate::subject::Operate;

/// Of keys with equal deadlines the one whose deadline was set first leaves first.
///
/// Source: docs/design.md, equal_deadlines_leave_in_insertion_order
/// Needs: 3 keys
pub(crate) fn equal_deadlines_leave_in_the_order_in_which_they_were_set(script: &mut Script) {
    script.add_after(2, 10, Added::Delayed);
    script.advance(5);
    script.add_after(3, 5, Added::Delayed);
    let due = Instant::EPOCH + ms(10);
    assert_eq!(
        script.subject.add_at(1, due),
        Ok(Added::Delayed),
        "add_at 1"
    );
    script.advance(5);
    for key in [2, 3, 1] {
        script.get(key);
    }
}

/// A deadline that moves forward counts as set then.
///
/// Source: docs/design.md, equal_deadlines_leave_in_insertion_order
/// Needs: 3 keys
pub(crate) fn a_deadline_that_moves_is_set_again(script: &mut Script) {
    script.add_after(1, 20, Added::Delayed);
    script.add_after(2, 10, Added::Delayed);
    script.add_after(3, 10, Added::Delayed);
    script.add_after(1, 10, Added::Sooner);
    script.add_after(2, 10, Added::Coalesced);
    script.advance(10);
    for key in [2, 3, 1] {
        script.get(key);
    }
}
