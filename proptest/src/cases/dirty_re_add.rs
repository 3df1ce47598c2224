use requeue_core::Added;

use super::Script;

/// A key that is added while it is active is handed out only when that run is over.
///
/// Source: client-go queue.go, Add and Get: the processing set
/// Needs: 2 keys
pub(crate) fn an_active_key_is_handed_out_to_no_other_call(script: &mut Script) {
    script.add(1, Added::Ready);
    script.get(1);
    script.add(1, Added::Dirty);
    script.add(2, Added::Ready);
    script.get(2);
    script.nothing_to_get();
    script.done(1);
    script.get(1);
}

/// A key that is added while it is active comes back once, at the end of the queue.
///
/// Source: client-go queue.go, Done
/// Needs: 2 keys
pub(crate) fn a_key_added_while_active_comes_back_once(script: &mut Script) {
    script.add(1, Added::Ready);
    script.get(1);
    script.add(1, Added::Dirty);
    script.add(1, Added::Coalesced);
    script.add(2, Added::Ready);
    script.done(1);
    script.get(2);
    script.run(1);
    script.nothing_to_get();
}

/// A delay that ends while its key is active counts as an add.
///
/// Source: client-go delaying_queue.go, waitingLoop, and queue.go, Add
pub(crate) fn a_delay_that_ends_while_its_key_is_active_makes_one_more_run(script: &mut Script) {
    script.add_after(1, 10, Added::Delayed);
    script.add(1, Added::Ready);
    script.get(1);
    script.advance(10);
    script.nothing_to_get();
    script.done(1);
    script.run(1);
    script.nothing_to_get();
}
