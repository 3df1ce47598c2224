use requeue_core::{Added, Rejected};

use super::{Script, ms};
use crate::subject::{Operate, Subject};

/// A key that is neither ready, active, delayed nor remembered takes no room.
///
/// Source: docs/design.md, Q4
/// Needs: Capacity
pub(crate) fn a_key_that_is_done_gives_its_room_back(script: &mut Script) {
    let new = script.fill();
    // More often than there is room, so that what is not given back runs out.
    for round in 0..2 * new {
        let oldest = round + 1;
        script.get(oldest);
        script.refused(oldest + new - 1, Rejected::Full(oldest + new - 1));
        script.done(oldest);
        script.add(oldest + new - 1, Added::Ready);
    }
}

/// A key that is cancelled takes no room unless it is active or has failed.
///
/// Source: docs/design.md, Q4
/// Needs: Capacity
pub(crate) fn a_cancelled_key_gives_its_room_back(script: &mut Script) {
    script.add(1, Added::Ready);
    script.add_after(1, 10, Added::Delayed);
    assert!(script.subject.cancel_key(1).is_some());
    assert_eq!(script.subject.stats().total, 0);
    script.fill();
}

/// A delayed key and an active one each take up room.
///
/// Source: docs/design.md, One slot per key
/// Needs: 2 keys, Capacity
pub(crate) fn delayed_and_active_keys_take_room(script: &mut Script) {
    let capacity = script.capacity();
    script.add(1, Added::Ready);
    script.get(1);
    for key in 2..=capacity {
        script.add_after(key, 10, Added::Delayed);
    }
    let new = capacity + 1;
    script.refused(new, Rejected::Full(new));
    let delayed = script.subject.add_after(new, ms(1));
    assert_eq!(delayed, Err(Rejected::Full(new)), "add_after {new}");
    assert_eq!(script.subject.stats().total, usize::from(capacity));
    script.done(1);
    script.add(new, Added::Ready);
}

/// If fewer keys fit than are held, all stay, and new ones are refused for so long.
///
/// Source: requeue-core, Queue::limit_keys
/// Needs: Limit
pub(crate) fn a_lowered_limit_keeps_what_is_held(script: &mut Script) {
    script.subject.limit_keys(3);
    script.add(1, Added::Ready);
    script.get(1);
    script.add(2, Added::Ready);
    script.add_after(3, 10, Added::Delayed);
    script.subject.limit_keys(1);
    assert_eq!(script.subject.capacity(), Some(1));
    script.refused(4, Rejected::Full(4));
    script.add(1, Added::Dirty);
    script.done(1);
    script.run(2);
    script.refused(4, Rejected::Full(4));
    script.run(1);
    // There is as much room as the delayed key takes.
    script.refused(4, Rejected::Full(4));
    script.advance(10);
    script.run(3);
    script.add(4, Added::Ready);
    script.refused(5, Rejected::Full(5));
}

/// If more keys fit than before, new ones are taken.
///
/// Source: requeue-core, Queue::limit_keys
/// Needs: Limit
pub(crate) fn a_raised_limit_makes_room(script: &mut Script) {
    script.subject.limit_keys(0);
    script.refused(1, Rejected::Full(1));
    script.subject.limit_keys(2);
    script.add(1, Added::Ready);
    script.add(2, Added::Ready);
    script.refused(3, Rejected::Full(3));
    script.subject.limit_keys(usize::MAX);
    assert_eq!(script.subject.capacity(), None);
    script.add(3, Added::Ready);
}
