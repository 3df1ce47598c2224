use requeue_core::Added;

use super::{Script, ms};
use crate::subject::{Operate, left_over};

/// A key whose worker panics counts a failure and comes back after its delay.
///
/// Source: requeue-core, Guard
/// Needs: Panics
pub(crate) fn its_key_comes_back_as_failed(script: &mut Script) {
    script.add(1, Added::Ready);
    for (failures, delay) in [(1, 1), (2, 2)] {
        script.subject.panic_at_work();
        script.failures(1, failures);
        assert_eq!(script.subject.stats().active, 0, "no worker has it");
        script.not_before(delay);
    }
    script.get(1);
}

/// A key whose worker panics after shutdown is kept among the delayed.
///
/// Source: docs/design.md, a_retry_after_shutdown_is_kept_among_the_delayed
/// Needs: Panics
pub(crate) fn its_key_is_kept_while_the_queue_shuts_down(script: &mut Script) {
    script.add(1, Added::Ready);
    script.subject.shut_down();
    script.subject.panic_at_work();
    script.closed();
    let left = left_over(1, ms(1), 1, 0);
    assert_eq!(script.subject.take_delayed(), Some(left));
}
