//! The list of rules: each is a case of `cases`, whose documentation comment says what it is.

/// Calls a macro with every case there is: its group, its name, how many keys it needs room for and
/// what else of the queue.
///
/// The first argument is the macro in brackets, the second is handed on to it. The cases under
/// `steps` never wait; those under `waits` are histories of calls that do.
///
/// # Examples
///
/// ```
/// macro_rules! count {
///     ($what:ident $(
///         $kind:ident { $($group:ident { $($name:ident: $keys:literal $($need:ident)?;)+ })+ }
///     )+) => {
///         let $what = [$($($(stringify!($name)),+),+),+].len();
///     };
/// }
/// requeue_proptest::for_each_case!([count] cases);
/// assert_eq!(cases, requeue_proptest::conformance::RULES.len());
/// ```
#[macro_export]
macro_rules! for_each_case {
    ([$($call:tt)+] $args:tt) => { $($call)+! {
        $args
        steps {
            fifo {
                keys_come_out_in_the_order_in_which_they_became_ready: 3;
                a_key_that_was_worked_on_goes_to_the_end: 2;
            }
            batches {
                keys_added_together_keep_their_order: 3;
                a_batch_takes_what_is_ready: 3;
                runs_completed_together_are_each_completed: 2;
            }
            dedup {
                many_adds_make_one_run: 1;
                a_delayed_key_that_is_added_runs_now_and_once_more_later: 1;
                a_delay_that_ends_while_its_key_is_ready_makes_no_second_run: 1;
            }
            dirty_re_add {
                an_active_key_is_handed_out_to_no_other_call: 2;
                a_key_added_while_active_comes_back_once: 2;
                a_delay_that_ends_while_its_key_is_active_makes_one_more_run: 1;
            }
            delay_order {
                no_key_is_early: 1;
                keys_come_in_the_order_of_their_deadlines: 3;
                a_key_that_is_due_goes_behind_those_that_are_ready: 2;
                how_late_a_key_was_released_cannot_be_seen: 2;
            }
            earliest_wins {
                the_earlier_deadline_counts: 1;
                a_failure_does_not_put_an_earlier_deadline_off: 1;
            }
            merge {
                a_key_that_runs_once_runs_at_the_earlier_time: 1;
                the_later_deadline_counts: 1;
                the_new_deadline_counts: 1;
                the_present_deadline_counts: 1;
                a_deadline_that_moves_back_lets_others_come_first: 3;
                a_rule_takes_back_no_run: 1;
            }
            ties {
                equal_deadlines_leave_in_the_order_in_which_they_were_set: 3;
                a_deadline_that_moves_is_set_again: 3;
            }
            limiters {
                each_failure_of_a_key_doubles_its_delay: 2;
                the_first_failures_are_fast: 1;
                the_longest_of_several_delays_counts: 1;
                a_run_that_failed_is_charged: 1;
                a_run_that_is_put_off_is_not_charged: 1;
            }
            forget {
                a_key_that_is_forgotten_starts_again: 1;
                a_run_that_succeeded_forgets: 1;
                forgetting_leaves_the_delay: 1;
            }
            cancel {
                a_key_that_is_cancelled_is_not_handed_out: 3;
                a_run_goes_on_when_its_key_is_cancelled: 1;
                a_key_that_is_cancelled_and_added_goes_to_the_end: 4;
                failures_survive_a_cancel: 1;
                a_deadline_that_is_cancelled_never_comes: 2;
                a_run_knows_that_its_key_was_cancelled: 2;
                many_keys_are_cancelled_together: 5;
                a_drain_ends_when_the_last_key_is_cancelled: 2;
            }
            expedite {
                a_key_whose_delay_is_ended_is_ready: 3;
                all_delays_end_in_their_order: 4;
                no_delay_is_ended_after_shutdown: 1;
            }
            holds {
                a_key_that_failed_runs_as_often_as_its_backoff_says: 1 policy;
                an_add_without_a_delay_is_one_for_a_held_key_that_runs: 1 policy;
                an_add_now_takes_the_place_of_the_deadline_of_a_held_key_that_runs: 1 policy;
                a_hold_counts_when_the_run_has_ended: 1 policy;
                a_held_key_that_runs_is_expedited_at_once: 1 policy;
                an_add_says_what_its_hold_changes: 1 policy;
                a_key_cools_down_after_each_run: 1 policy;
                a_dirty_key_is_reported_to_run_when_it_has_cooled_down: 1 policy;
                a_deadline_in_a_hold_comes_at_its_end: 1 policy;
                a_ready_key_that_fails_is_held: 1 policy;
                a_hold_ends_early_only_if_it_is_forgotten: 1 policy;
                a_held_key_is_a_leftover: 1 policy;
                holds_that_are_over_take_no_room: 4 policy;
            }
            run_rate {
                a_token_is_taken_when_a_key_is_handed_out: 6 policy;
                a_queue_that_is_shut_down_keeps_its_rate: 4 policy;
            }
            debounce {
                each_add_of_a_burst_moves_its_deadline: 1 policy;
                a_burst_ends_at_its_maximum: 1 policy;
                a_burst_moves_no_deadline_but_its_own: 1 policy;
                a_burst_leaves_a_deadline_that_others_ask_for_too: 1 policy;
                a_burst_that_is_taken_back_is_over: 1 policy;
                an_add_that_need_not_wait_ends_its_burst: 1 policy;
            }
            pause {
                a_paused_queue_hands_out_nothing_and_loses_nothing: 2;
                runs_end_while_the_queue_is_paused: 1;
                shutdown_ends_a_pause: 1;
            }
            suspend {
                a_suspended_key_runs_when_it_is_resumed: 1 suspensions;
                a_timeout_ends_a_suspension_and_its_run_learns_so: 1 suspensions;
                a_resume_before_the_end_of_the_run_is_not_lost: 1 suspensions;
                a_resumed_key_that_nothing_asks_for_is_gone: 1 suspensions;
                a_suspended_key_is_a_leftover: 1 suspensions;
                cancel_ends_a_suspension: 1 suspensions;
            }
            poll {
                pauses_double_while_nothing_changes: 1 suspensions;
                what_cuts_a_pause_short_starts_them_again: 1 suspensions;
                a_key_that_polls_is_a_leftover: 1;
                a_success_is_timed_from_the_first_add: 1;
            }
            why {
                a_key_is_in_each_state_as_it_goes_round: 2;
                a_backoff_is_no_delay_that_was_asked_for: 1;
                a_hold_and_a_burst_differ_from_a_delay: 1 policy;
                a_ready_key_waits_for_the_end_of_a_pause_and_for_a_token: 3 policy;
                a_ready_key_waits_for_its_group: 3 groups;
                after_shutdown_only_what_is_ready_or_active_still_runs: 3;
            }
            shutdown {
                keys_that_are_ready_are_still_handed_out: 2;
                a_dirty_key_comes_back_after_shutdown: 1;
                a_delayed_key_does_not_become_ready_after_shutdown: 1;
            }
            drain {
                a_queue_with_nothing_to_do_has_drained: 0;
                delayed_keys_are_not_waited_for: 1;
            }
            leftovers {
                nothing_that_was_not_worked_on_is_lost: 4;
                an_active_key_is_no_leftover: 1;
            }
            restore {
                what_was_left_goes_on_as_it_was: 4;
                a_key_that_is_there_takes_the_sooner_time_and_the_larger_count: 2;
                a_leftover_that_is_refused_is_handed_back_whole: 1;
                a_restored_key_keeps_its_level: 2 levels;
            }
            snapshot {
                the_counts_are_those_of_the_snapshot: 4;
                each_key_is_seen_once_as_it_is: 4;
                a_key_that_is_due_is_seen_ready: 1;
            }
            capacity {
                a_cancelled_key_gives_its_room_back: 1 capacity;
                a_key_that_is_done_gives_its_room_back: 1 capacity;
                delayed_and_active_keys_take_room: 2 capacity;
                a_lowered_limit_keeps_what_is_held: 0 limit;
                a_raised_limit_makes_room: 0 limit;
            }
            reclaim {
                work_is_never_dropped_for_room: 1 capacity;
                a_failure_record_that_is_forgotten_is_not_dropped_twice: 2 capacity;
            }
            stale_tickets {
                a_run_is_completed_once: 1;
                a_stale_ticket_does_not_touch_the_next_run: 1;
            }
            lock {
                a_panic_under_the_lock_does_not_poison_it: 1 lock;
            }
            panicking_worker {
                its_key_comes_back_as_failed: 1 panics;
                its_key_is_kept_while_the_queue_shuts_down: 1 panics;
            }
            priorities {
                the_highest_level_comes_first: 3 levels;
                keys_of_a_level_keep_their_order: 3 levels;
                an_add_never_lowers_a_priority: 2 levels;
                a_raise_goes_to_the_end_of_its_level: 3 levels;
                a_delayed_key_keeps_its_priority: 2 levels;
                a_key_of_the_lowest_level_makes_way_for_a_higher_one: 3 levels;
                a_priority_survives_retries: 2 levels;
            }
            groups {
                groups_are_served_in_turn: 6 groups;
                a_weight_is_so_many_keys_in_a_turn: 5 groups;
                a_group_at_its_limit_waits_for_the_end_of_a_run: 3 groups;
                a_limit_can_be_changed_while_keys_wait: 3 groups;
                a_paused_group_keeps_its_keys: 2 groups;
                a_rate_is_charged_when_a_key_is_handed_out: 2 groups;
                a_group_with_a_token_does_not_wait_behind_keys_that_are_due: 8 groups;
                shutdown_ends_the_pause_of_a_group: 1 groups;
                a_group_without_ready_keys_is_not_blocked_by_its_rate: 2 groups;
                a_group_with_a_token_runs_a_key_once_for_a_deadline_that_has_passed: 4 groups;
                a_drain_honours_limits_and_ends: 3 groups;
            }
            aging {
                a_key_that_has_waited_too_long_comes_first: 4 aging;
                of_keys_that_have_waited_too_long_the_oldest_comes_first: 3 aging;
                a_key_that_has_aged_runs_once_for_a_deadline_that_has_passed: 5 aging;
                a_deadline_that_raises_a_key_that_has_aged_does_so_before_it_runs: 5 aging;
            }
            client_go {
                basic: 51;
                add_while_processing: 50;
                len: 2;
                reinsert: 1;
                collapse: 1;
                collapse_while_processing: 1;
                queue_drainage_using_shut_down_with_drain: 2;
                no_queue_drainage_using_shut_down: 2;
                force_queue_shutdown_using_shut_down: 2;
                queue_drainage_using_shut_down_with_drain_with_dirty_item: 1;
                garbage_collection: 1;
                simple_queue: 1;
                deduping: 1;
                add_two_fire_early: 3;
                copy_shifting: 3;
                rate_limiting_queue: 2;
            }
            differences {
                drain_waits_for_ready_keys: 2;
                drain_waits_for_dirty_keys: 1;
                getters_wait_for_dirty_keys: 1;
                every_drainer_is_woken: 1;
                shut_down_interrupts_drain: 1;
                done_of_inactive_key_is_an_error: 2;
                done_of_a_queued_key_does_not_queue_it_twice: 1;
                done_with_a_stale_ticket_does_nothing: 1;
                add_after_shutdown_is_an_error: 1;
                limiter_not_charged_after_shutdown: 1;
                delayed_keys_are_handed_back_after_shutdown: 3;
                ready_keys_can_be_taken_back_after_shutdown: 1;
                a_retry_after_shutdown_is_kept_among_the_delayed: 1;
                delays_saturate: 1;
                duration_max_is_never: 1;
                equal_deadlines_leave_in_insertion_order: 10;
                a_full_queue_hands_the_key_back: 1 capacity;
                a_key_that_is_held_is_never_refused: 1 capacity;
                the_oldest_failure_record_makes_room: 1 capacity;
                failure_records_can_be_limited: 3 growth;
            }
        }
        waits {
            pauses {
                getters_wait_until_the_queue_is_unpaused: 1;
                a_deadline_that_passes_in_a_pause_is_noticed_after_it: 1;
                a_call_with_a_time_limit_gives_up_in_a_pause: 1;
            }
            run_rates {
                a_getter_that_sleeps_is_the_timer_of_a_token: 4 policy;
                after_shutdown_getters_wait_for_tokens_and_then_end: 4 policy;
                a_call_with_a_time_limit_gives_up_before_its_token: 3 policy;
            }
            limited_groups {
                the_end_of_a_run_wakes_a_getter_of_its_group: 2;
                a_sleeping_getter_is_the_timer_of_a_rate: 2;
                a_group_that_is_unpaused_wakes_a_getter: 1;
            }
            wake_obligations {
                a_ready_key_wakes_a_getter: 1;
                a_getter_that_is_served_wakes_the_next: 2;
                each_of_several_keys_reaches_a_sleeper: 3;
                a_wake_for_a_key_that_is_gone_is_not_missed_later: 2;
                a_key_that_comes_back_wakes_a_getter: 1;
                a_dirty_key_reaches_a_getter_while_the_queue_drains: 1;
                getters_end_when_the_last_dirty_key_is_cancelled: 1;
                a_drain_that_is_interrupted_sends_getters_home: 1;
                a_worker_that_asks_for_more_leaves_nothing_behind: 2;
                shutting_down_wakes_every_call: 0;
                what_is_ready_is_handed_out_before_calls_end: 1;
                a_getter_polled_without_a_wake_keeps_waiting: 1;
                a_call_that_finds_no_place_harms_no_other: 1;
            }
            timer_owner_hand_over {
                a_deadline_wakes_a_getter: 1;
                a_deadline_before_the_watched_one_is_watched: 2;
                a_deadline_that_moves_forward_is_watched: 1;
                a_timer_owner_that_is_served_hands_the_timer_over: 2;
                a_timer_owner_that_times_out_hands_the_timer_over: 1;
                keys_due_at_once_reach_as_many: 2;
                deadlines_come_one_after_another: 3;
            }
            cancelled_getters {
                a_woken_getter_passes_the_wake_on: 1;
                a_cancelled_timer_owner_hands_the_timer_over: 1;
                a_sleeping_getter_takes_no_wake_along: 1;
                every_woken_getter_passes_its_wake_on: 2;
                a_getter_cancelled_while_it_takes_a_key_gives_it_back: 1;
                a_place_is_given_back: 1;
                a_run_that_was_declared_over_is_completed: 1;
            }
            drain_wakes {
                the_last_active_key_ends_the_drain: 1;
                every_call_that_waits_for_the_drain_is_woken: 1;
                the_last_key_that_is_taken_back_ends_the_drain: 1;
                a_worker_that_asks_for_more_ends_the_drain: 1;
                shutting_down_ends_the_wait_for_the_drain: 1;
                a_drain_that_takes_too_long_is_given_up: 1;
                a_cancelled_wait_for_the_drain_harms_no_other: 1;
            }
            watch_wakes {
                the_end_of_the_last_run_wakes_every_waiter: 2;
                delayed_keys_are_waited_for_until_they_are_settled: 1;
                a_ready_key_keeps_a_paused_queue_from_being_idle: 1;
                a_queue_may_be_waited_for_after_shutdown: 1;
                a_key_is_waited_for_until_its_run_has_ended: 2;
                a_dirty_key_is_waited_for_until_it_has_run_once_more: 1;
                work_that_is_taken_back_is_waited_for_no_longer: 1;
                a_cancelled_key_is_waited_for_until_its_run_has_ended: 1;
            }
            room_wakes {
                a_place_that_becomes_free_wakes_one_waiter: 1;
                calls_that_wait_for_room_are_served_in_order: 1;
                places_that_become_free_together_reach_as_many: 1;
                a_cancelled_wait_for_room_passes_the_place_on: 1;
                a_raised_limit_wakes_as_many_as_there_is_room_for: 3 limit;
                a_key_that_is_held_needs_no_room: 1;
                shutting_down_hands_the_key_back: 1;
            }
            timed_getters {
                a_getter_gives_up_at_its_time_and_not_before: 0;
                no_time_is_no_wait: 1;
                a_key_that_comes_in_the_last_moment_is_handed_out: 1;
                a_getter_that_gives_up_takes_no_wake_along: 1;
            }
        }
    } };
}
