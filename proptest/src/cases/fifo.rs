use requeue_core::Added;

use super::Script;

/// Keys are handed out in the order in which they became ready.
///
/// Source: client-go queue.go, Add and Get
/// Needs: 3 keys
pub(crate) fn keys_come_out_in_the_order_in_which_they_became_ready(script: &mut Script) {
    for key in [3, 1, 2] {
        script.add(key, Added::Ready);
    }
    for key in [3, 1, 2] {
        script.get(key);
    }
    script.nothing_to_get();
}

/// A key that was worked on has no better place than a new one.
///
/// Source: client-go queue.go, Add and Get
/// Needs: 2 keys
pub(crate) fn a_key_that_was_worked_on_goes_to_the_end(script: &mut Script) {
    script.add(1, Added::Ready);
    script.add(2, Added::Ready);
    script.run(1);
    script.add(1, Added::Ready);
    script.get(2);
    script.get(1);
}
