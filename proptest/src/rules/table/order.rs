//! Rules about the order in which keys are handed out, and about what adds of one key become.

#[doc(hidden)]
#[macro_export]
macro_rules! __rules_order {
    (($($before:tt)*) { $($groups:tt)* } $($after:tt)*) => { $crate::__rules! {
        $($before)*
        {
            $($groups)*
            fifo {
                keys_come_out_in_the_order_in_which_they_became_ready: 3,
                "Keys are handed out in the order in which they became ready.",
                "client-go queue.go, Add and Get";
                a_key_that_was_worked_on_goes_to_the_end: 2,
                "A key that was worked on has no better place than a new one.",
                "client-go queue.go, Add and Get";
            }
            batches {
                keys_added_together_keep_their_order: 3,
                "Keys that are added together are each added, in order.",
                "requeue-core, Queue::add_many";
                a_batch_takes_what_is_ready: 3,
                "A batch hands out the first ready keys, at most as many as asked for.",
                "requeue-core, Queue::poll_get_many";
                runs_completed_together_are_each_completed: 2,
                "Of runs that are completed together each is, whatever the others are.",
                "requeue-core, Queue::finish_many";
            }
            dedup {
                many_adds_make_one_run: 1,
                "A key that is ready and is added again is handed out once.",
                "client-go queue.go, Add: the dirty set";
                a_delayed_key_that_is_added_runs_now_and_once_more_later: 1,
                "An add does not end the delay that a key has.",
                "client-go delaying_queue.go, AddAfter";
                a_delay_that_ends_while_its_key_is_ready_makes_no_second_run: 1,
                "A key whose delay ends while it is ready is handed out once.",
                "client-go queue.go, Add: the dirty set";
            }
            dirty_re_add {
                an_active_key_is_handed_out_to_no_other_call: 2,
                "A key that is added while it is active is handed out only when that run is over.",
                "client-go queue.go, Add and Get: the processing set";
                a_key_added_while_active_comes_back_once: 2,
                "A key that is added while it is active comes back once, at the end of the queue.",
                "client-go queue.go, Done";
                a_delay_that_ends_while_its_key_is_active_makes_one_more_run: 1,
                "A delay that ends while its key is active counts as an add.",
                "client-go delaying_queue.go, waitingLoop, and queue.go, Add";
            }
            delay_order {
                no_key_is_early: 1,
                "A delayed key is not handed out before its time.",
                "client-go delaying_queue.go, waitingLoop";
                keys_come_in_the_order_of_their_deadlines: 3,
                "Delayed keys become ready in the order of their deadlines.",
                "client-go delaying_queue.go, waitForPriorityQueue";
                a_key_that_is_due_goes_behind_those_that_are_ready: 2,
                "A key that becomes due stands behind those that were ready before.",
                "client-go delaying_queue.go, waitingLoop: Add";
                how_late_a_key_was_released_cannot_be_seen: 2,
                "A key that became due stands before one that is added later, looked at or not.",
                "docs/design.md, Due keys";
            }
            earliest_wins {
                the_earlier_deadline_counts: 1,
                "Of two delays of a key the one that ends first counts.",
                "client-go delaying_queue.go, insert";
                a_failure_does_not_put_an_earlier_deadline_off: 1,
                "A failure whose delay ends later leaves the deadline that the key has.",
                "client-go rate_limiting_queue.go, AddRateLimited, and delaying_queue.go, insert";
            }
            merge {
                a_key_that_runs_once_runs_at_the_earlier_time: 1,
                "Once: an add ends the delay that a key has, and a ready key gets none.",
                "controller-runtime priorityqueue.go, AddWithOpts";
                the_later_deadline_counts: 1,
                "Latest: an add can move a deadline back, and not forward.",
                "requeue-core, Merge::Latest";
                the_new_deadline_counts: 1,
                "Replace: an add moves a deadline to its own time, which may be now.",
                "Linux workqueue.c, mod_delayed_work; Zephyr work.c, k_work_reschedule";
                the_present_deadline_counts: 1,
                "Keep: an add leaves a deadline where it is.",
                "Linux workqueue.c, queue_delayed_work; Zephyr work.c, k_work_schedule";
                a_deadline_that_moves_back_lets_others_come_first: 3,
                "A deadline that moves back counts as set then, and others keep theirs.",
                "docs/design.md, equal_deadlines_leave_in_insertion_order";
                a_rule_takes_back_no_run: 1,
                "A key that is ready or active stays so, whatever becomes of its deadline.",
                "requeue-core, Merge";
            }
            ties {
                equal_deadlines_leave_in_the_order_in_which_they_were_set: 3,
                "Of keys with equal deadlines the one whose deadline was set first leaves first.",
                "docs/design.md, equal_deadlines_leave_in_insertion_order";
                a_deadline_that_moves_is_set_again: 3,
                "A deadline that moves forward counts as set then.",
                "docs/design.md, equal_deadlines_leave_in_insertion_order";
            }
        }
        $($after)*
    }};
}
