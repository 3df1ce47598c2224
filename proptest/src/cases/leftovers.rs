use requeue_core::Added;

use super::{Script, ms};
use crate::subject::{Key, Operate, left_over};

/// After shutdown ready keys come back in order, then delayed ones by deadline.
///
/// Source: requeue-core, Queue::take_ready and take_delayed
/// Needs: 4 keys
pub(crate) fn nothing_that_was_not_worked_on_is_lost(script: &mut Script) {
    script.add_after(1, 20, Added::Delayed);
    script.fail(2, 1);
    script.add(4, Added::Ready);
    script.add(3, Added::Ready);
    assert_eq!(script.subject.take_ready(), None, "not before shutdown");
    assert_eq!(script.subject.take_delayed(), None, "not before shutdown");
    script.subject.shut_down();
    let left = |key: Key, millis, failures| Some(left_over(key, ms(millis), failures, 0));
    assert_eq!(script.subject.take_ready(), left(4, 0, 0));
    assert_eq!(script.subject.take_ready(), left(3, 0, 0));
    assert_eq!(script.subject.take_ready(), None);
    assert_eq!(script.subject.take_delayed(), left(2, 1, 1));
    assert_eq!(script.subject.take_delayed(), left(1, 20, 0));
    assert_eq!(script.subject.take_delayed(), None);
}

/// An active key is not taken back.
///
/// Source: requeue-core, Queue::take_ready
pub(crate) fn an_active_key_is_no_leftover(script: &mut Script) {
    script.add(1, Added::Ready);
    script.get(1);
    script.add(1, Added::Dirty);
    script.subject.shut_down();
    assert_eq!(script.subject.take_ready(), None);
    script.done(1);
    let left = script.subject.take_ready();
    assert_eq!(left.map(|left| left.key), Some(1), "it was dirty");
    assert_eq!(script.subject.stats().total, 0);
}
