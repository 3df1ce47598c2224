use requeue_core::Added;

use super::Script;

/// A key that is ready and is added again is handed out once.
///
/// Source: client-go queue.go, Add: the dirty set
pub(crate) fn many_adds_make_one_run(script: &mut Script) {
    script.add(1, Added::Ready);
    script.add(1, Added::Coalesced);
    script.add(1, Added::Coalesced);
    script.len(1);
    script.get(1);
    script.nothing_to_get();
    script.done(1);
    script.nothing_to_get();
}

/// An add does not end the delay that a key has.
///
/// Source: client-go delaying_queue.go, AddAfter
pub(crate) fn a_delayed_key_that_is_added_runs_now_and_once_more_later(script: &mut Script) {
    script.add_after(1, 10, Added::Delayed);
    script.add(1, Added::Ready);
    script.run(1);
    script.nothing_to_get();
    script.advance(10);
    script.run(1);
    script.nothing_to_get();
}

/// A key whose delay ends while it is ready is handed out once.
///
/// Source: client-go queue.go, Add: the dirty set
pub(crate) fn a_delay_that_ends_while_its_key_is_ready_makes_no_second_run(script: &mut Script) {
    script.add_after(1, 10, Added::Delayed);
    script.add(1, Added::Ready);
    script.advance(10);
    script.run(1);
    script.nothing_to_get();
}
