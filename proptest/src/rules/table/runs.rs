//! Rules about the end of a run, and about priorities.

#[doc(hidden)]
#[macro_export]
macro_rules! __rules_runs {
    (($($before:tt)*) { $($groups:tt)* } $($after:tt)*) => { $crate::__rules! {
        $($before)*
        {
            $($groups)*
            stale_tickets {
                a_run_is_completed_once: 1,
                "A ticket whose run was completed by name is stale and changes nothing.",
                "docs/design.md, done_with_a_stale_ticket_does_nothing";
                a_stale_ticket_does_not_touch_the_next_run: 1,
                "A ticket of an earlier run does not complete a later one of the same key.",
                "docs/design.md, done_with_a_stale_ticket_does_nothing";
            }
            lock {
                a_panic_under_the_lock_does_not_poison_it: 1 lock,
                "A panic while the lock is held leaves a queue that works.",
                "requeue-core, Lock";
            }
            panicking_worker {
                its_key_comes_back_as_failed: 1 panics,
                "A key whose worker panics counts a failure and comes back after its delay.",
                "requeue-core, Guard";
                its_key_is_kept_while_the_queue_shuts_down: 1 panics,
                "A key whose worker panics after shutdown is kept among the delayed.",
                "docs/design.md, a_retry_after_shutdown_is_kept_among_the_delayed";
            }
            priorities {
                the_highest_level_comes_first: 3 levels,
                "Of keys that are ready the one with the highest priority is handed out first.",
                "controller-runtime priorityqueue.go, less";
                keys_of_a_level_keep_their_order: 3 levels,
                "Keys of one priority are handed out in the order in which they came to it.",
                "controller-runtime priorityqueue.go, less: AddedCounter";
                an_add_never_lowers_a_priority: 2 levels,
                "An add with a lower priority leaves the one that a key has.",
                "controller-runtime priorityqueue.go, AddWithOpts";
                a_raise_goes_to_the_end_of_its_level: 3 levels,
                "A key whose priority is raised stands behind those that had it before.",
                "controller-runtime priorityqueue.go, AddWithOpts";
                a_delayed_key_keeps_its_priority: 2 levels,
                "A key that is added with a delay and a priority has it when its time comes.",
                "controller-runtime priorityqueue.go, AddWithOpts";
                a_key_of_the_lowest_level_makes_way_for_a_higher_one: 3 levels,
                "On request, the newest ready key of the lowest level makes way in a full queue.",
                "requeue-core, Queue::add_displacing";
                a_priority_survives_retries: 2 levels,
                "A key that failed comes back with the priority of its run.",
                "controller-runtime controller.go, reconcileHandler";
            }
        }
        $($after)*
    }};
}
