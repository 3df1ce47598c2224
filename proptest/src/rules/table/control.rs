//! Rules about work that is taken back, put off, sped up or held up.

#[doc(hidden)]
#[macro_export]
macro_rules! __rules_control {
    (($($before:tt)*) { $($groups:tt)* } $($after:tt)*) => { $crate::__rules! {
        $($before)*
        {
            $($groups)*
            cancel {
                a_key_that_is_cancelled_is_not_handed_out: 3,
                "A key that is cancelled leaves the ready and the delayed keys; the others stay.",
                "requeue-core, Queue::cancel";
                a_run_goes_on_when_its_key_is_cancelled: 1,
                "A cancelled key is not handed out again after its run, unless it is added.",
                "requeue-core, Queue::cancel";
                a_key_that_is_cancelled_and_added_goes_to_the_end: 4,
                "A key that is added after it was cancelled has the place of a new one.",
                "requeue-core, Queue::cancel";
                failures_survive_a_cancel: 1,
                "Cancelling a key keeps its failures, and none is counted.",
                "requeue-core, Queue::cancel";
                a_deadline_that_is_cancelled_never_comes: 2,
                "A deadline that is cancelled never comes; its key stays ready, dirty or active.",
                "requeue-core, Queue::cancel_delay";
                a_run_knows_that_its_key_was_cancelled: 2,
                "A key that is cancelled while it is active is known as such until its run ends.",
                "requeue-core, Queue::is_cancelled";
                many_keys_are_cancelled_together: 5,
                "The keys that are not retained are cancelled, and the others keep their order.",
                "requeue-core, Queue::retain_some";
                a_drain_ends_when_the_last_key_is_cancelled: 2,
                "After shutdown keys can be cancelled, and a drain ends when nothing is left.",
                "requeue-core, Queue::cancel";
            }
            expedite {
                a_key_whose_delay_is_ended_is_ready: 3,
                "A delay that is ended early is an add, and is not ended once more.",
                "requeue-core, Queue::expedite";
                all_delays_end_in_their_order: 4,
                "Delays that are ended together end in the order of their deadlines.",
                "requeue-core, Queue::expedite_some";
                no_delay_is_ended_after_shutdown: 1,
                "After shutdown no delay is ended early, as none ends by itself.",
                "requeue-core, Queue::expedite";
            }
            holds {
                a_key_that_failed_runs_as_often_as_its_backoff_says: 1 policy,
                "A key whose failures are held does not run before its backoff is over, if added.",
                "requeue-core, Policy::hold_failures";
                an_add_without_a_delay_is_one_for_a_held_key_that_runs: 1 policy,
                "A delay of zero is an add: an active key is dirty, though it is held.",
                "requeue-core, Queue::add_after";
                an_add_now_takes_the_place_of_the_deadline_of_a_held_key_that_runs: 1 policy,
                "An add now that replaces a deadline makes an active key dirty, though it is held.",
                "requeue-core, Merge";
                a_hold_counts_when_the_run_has_ended: 1 policy,
                "An active key is not held: its deadlines obey a hold when its run has ended.",
                "requeue-core, Policy";
                a_held_key_that_runs_is_expedited_at_once: 1 policy,
                "An active key is not held: it is dirty once it is expedited.",
                "requeue-core, Policy";
                an_add_says_what_its_hold_changes: 1 policy,
                "A rate-limited add says whether its hold moved a deadline or a ready key.",
                "requeue-core, Added";
                a_key_cools_down_after_each_run: 1 policy,
                "A key that cools down does not run before that is over, and then once.",
                "requeue-core, Policy::cool_down";
                a_dirty_key_is_reported_to_run_when_it_has_cooled_down: 1 policy,
                "The end of a run returns when the key runs: a dirty key once it has cooled down.",
                "requeue-core, Finished::Delayed";
                a_deadline_in_a_hold_comes_at_its_end: 1 policy,
                "A deadline in a hold moves to its end; a later one stays.",
                "requeue-core, Policy";
                a_ready_key_that_fails_is_held: 1 policy,
                "A key that fails while it is ready is delayed if its failures are held.",
                "requeue-core, Policy::hold_failures";
                a_hold_ends_early_only_if_it_is_forgotten: 1 policy,
                "A hold is not ended by expediting the key, but by forgetting its failures.",
                "requeue-core, Policy";
                a_held_key_is_a_leftover: 1 policy,
                "After shutdown a held key that would run again is left over, and no drain waits.",
                "requeue-core, Policy";
                holds_that_are_over_take_no_room: 4 policy,
                "Runs that end drop the records of other keys whose holds are over.",
                "requeue-core, Policy";
            }
            run_rate {
                a_token_is_taken_when_a_key_is_handed_out: 6 policy,
                "Keys wait for tokens in their order, and an add that coalesces takes none.",
                "requeue-core, Policy::run_rate";
                a_queue_that_is_shut_down_keeps_its_rate: 4 policy,
                "After shutdown keys are handed out at the same rate; leftovers take no token.",
                "requeue-core, Policy::run_rate";
            }
            debounce {
                each_add_of_a_burst_moves_its_deadline: 1 policy,
                "A debounced key runs once, when no debounced add has come for a while.",
                "requeue-core, Queue::add_debounced";
                a_burst_ends_at_its_maximum: 1 policy,
                "However many debounced adds come, the key runs a time after the first.",
                "requeue-core, Queue::add_debounced";
                a_burst_moves_no_deadline_but_its_own: 1 policy,
                "A deadline that is not that of the burst is not moved back.",
                "requeue-core, Queue::add_debounced";
                a_burst_leaves_a_deadline_that_others_ask_for_too: 1 policy,
                "A burst no longer moves its deadline once another call asks for the same time.",
                "requeue-core, Queue::add_debounced";
                a_burst_that_is_taken_back_is_over: 1 policy,
                "A burst ends when its key is cancelled, and leaves nothing behind.",
                "requeue-core, Queue::add_debounced";
                an_add_that_need_not_wait_ends_its_burst: 1 policy,
                "A debounced add without a quiet time is an add, and ends the burst.",
                "requeue-core, Queue::add_debounced";
            }
            pause {
                a_paused_queue_hands_out_nothing_and_loses_nothing: 2,
                "While a queue is paused keys are added, and none is handed out.",
                "requeue-core, Queue::pause";
                runs_end_while_the_queue_is_paused: 1,
                "A run that began before the pause ends as usual, and its key comes back after it.",
                "requeue-core, Queue::pause";
                shutdown_ends_a_pause: 1,
                "A shutdown or a drain ends a pause, and none begins after it.",
                "requeue-core, Queue::pause";
            }
            suspend {
                a_suspended_key_runs_when_it_is_resumed: 1 suspensions,
                "A suspended key is not handed out, however it is added, until it is resumed.",
                "requeue-core, Queue::suspend";
                a_timeout_ends_a_suspension_and_its_run_learns_so: 1 suspensions,
                "A suspended key runs in any case when its timeout ends, and its run learns so.",
                "requeue-core, Queue::suspend";
                a_resume_before_the_end_of_the_run_is_not_lost: 1 suspensions,
                "A key that is resumed during its run is not suspended at its end.",
                "requeue-core, Queue::resume";
                a_resumed_key_that_nothing_asks_for_is_gone: 1 suspensions,
                "A resumed key runs only if it was added, or its action asked for it.",
                "requeue-core, Queue::resume";
                a_suspended_key_is_a_leftover: 1 suspensions,
                "After shutdown a suspended key is handed back with the time left of its timeout.",
                "requeue-core, Queue::suspend";
                cancel_ends_a_suspension: 1 suspensions,
                "A key that is cancelled is no longer suspended.",
                "requeue-core, Queue::suspend";
            }
            why {
                a_key_is_in_each_state_as_it_goes_round: 2,
                "A key that does not run is idle or ready, and one that runs says since when.",
                "requeue-core, Queue::why";
                a_backoff_is_no_delay_that_was_asked_for: 1,
                "A key backs off until another call sets its deadline, whatever its failures.",
                "requeue-core, Queue::why";
                a_hold_and_a_burst_differ_from_a_delay: 1 policy,
                "A delayed key says whether a hold or a burst of debounced adds delays it.",
                "requeue-core, Queue::why";
                a_ready_key_waits_for_the_end_of_a_pause_and_for_a_token: 3 policy,
                "A ready key names the pause of the queue, and else the time of the next token.",
                "requeue-core, Queue::why";
                a_ready_key_waits_for_its_group: 3 groups,
                "A ready key names the pause, the limit or the next token of its group.",
                "requeue-core, Queue::why";
                after_shutdown_only_what_is_ready_or_active_still_runs: 3,
                "After shutdown a key that is neither ready nor active says that it will not run.",
                "requeue-core, Queue::why";
            }
        }
        $($after)*
    }};
}
