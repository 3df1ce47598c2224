use requeue_core::{Added, Rejected};

use super::{Script, ms};
use crate::subject::Subject;

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

pub(crate) fn a_cancelled_key_gives_its_room_back(script: &mut Script) {
    script.add(1, Added::Ready);
    script.add_after(1, 10, Added::Delayed);
    assert!(script.subject.cancel_key(1).is_some());
    assert_eq!(script.subject.totals().held, 0);
    script.fill();
}

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
    assert_eq!(script.subject.totals().held, usize::from(capacity));
    script.done(1);
    script.add(new, Added::Ready);
}
