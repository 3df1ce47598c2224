use std::time::Duration;

use requeue_core::Added;

use super::{Script, ms};
use crate::subject::Operate;

/// A delay that is ended early is an add, and is not ended once more.
///
/// Source: requeue-core, Queue::expedite
/// Needs: 3 keys
pub(crate) fn a_key_whose_delay_is_ended_is_ready(script: &mut Script) {
    script.add_after(1, 10, Added::Delayed);
    script.add(2, Added::Ready);
    let never = script.subject.add_after(3, Duration::MAX);
    assert_eq!(never, Ok(Added::Delayed));
    for key in [3, 1] {
        assert!(script.subject.expedite(key));
        assert!(!script.subject.expedite(key), "it is not delayed any more");
    }
    assert!(!script.subject.expedite(2), "it was not delayed");
    for key in [2, 3, 1] {
        script.get(key);
    }
    script.add_after(1, 10, Added::Delayed);
    assert!(script.subject.expedite(1));
    script.nothing_to_get();
    script.done(1);
    script.get(1);
    script.advance(10);
    script.nothing_to_get();
}

/// Delays that are ended together end in the order of their deadlines.
///
/// Source: requeue-core, Queue::expedite_some
/// Needs: 4 keys
pub(crate) fn all_delays_end_in_their_order(script: &mut Script) {
    for (key, millis) in [(1, 30), (2, 10), (3, 20), (4, 10)] {
        script.add_after(key, millis, Added::Delayed);
    }
    script.advance(10);
    for _ in 0..2 {
        script.subject.expedite_all();
        assert_eq!(script.subject.stats().delayed, 0);
    }
    for key in [2, 4, 3, 1] {
        script.get(key);
    }
}

/// After shutdown no delay is ended early, as none ends by itself.
///
/// Source: requeue-core, Queue::expedite
pub(crate) fn no_delay_is_ended_after_shutdown(script: &mut Script) {
    script.add_after(1, 10, Added::Delayed);
    script.subject.shut_down();
    assert!(!script.subject.expedite(1));
    script.subject.expedite_all();
    script.closed();
    let left = script.subject.take_delayed();
    assert_eq!(left.map(|left| left.left), Some(ms(10)));
}
