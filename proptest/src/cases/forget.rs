use requeue_core::{Action, Added, Finished};

use super::{Script, ms};
use crate::subject::Operate;

/// A key whose failures are forgotten waits as after its first.
///
/// Source: client-go default_rate_limiters.go, Forget
pub(crate) fn a_key_that_is_forgotten_starts_again(script: &mut Script) {
    assert_eq!(script.subject.forget(1), 0, "it has not failed yet");
    script.fail(1, 1);
    script.fail(1, 2);
    assert_eq!(script.subject.forget(1), 2);
    script.failures(1, 0);
    script.fail(1, 1);
}

/// A run that is completed as succeeded forgets the failures of its key.
///
/// Source: controller-runtime controller.go, reconcileHandler: Forget
pub(crate) fn a_run_that_succeeded_forgets(script: &mut Script) {
    script.fail(1, 1);
    script.advance(1);
    let ticket = script.get(1);
    let again = Action::RequeueAfter(ms(5));
    script.finish(ticket, again, Finished::Delayed(ms(5)));
    script.failures(1, 0);

    script.fail(1, 1);
    script.advance(5);
    let ticket = script.get(1);
    script.finish(ticket, Action::Success, Finished::Idle);
    assert_eq!(script.subject.stats().total, 0);
}

/// Forgetting the failures of a key leaves the delay that it has.
///
/// Source: client-go default_rate_limiters.go, Forget
pub(crate) fn forgetting_leaves_the_delay(script: &mut Script) {
    script.add_after(1, 10, Added::Delayed);
    script.fail(1, 1);
    assert_eq!(script.subject.forget(1), 1);
    script.nothing_to_get();
    script.advance(1);
    script.get(1);
}
