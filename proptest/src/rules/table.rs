//! The table.

/// Calls a macro with every case there is: its group, its name, how many keys it needs room for and
/// what else of the queue, the rule in a line, and where the rule comes from.
///
/// The first argument is the macro in brackets, the second is handed on to it. The cases under
/// `steps` never wait; those under `waits` are histories of calls that do.
///
/// # Examples
///
/// ```
/// macro_rules! count {
///     ($what:ident $(
///         $kind:ident {
///             $($group:ident {
///                 $($name:ident: $keys:literal $($need:ident)?, $rule:literal, $source:literal;)+
///             })+
///         }
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
                "requeue-core, Queue::get_many";
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
                "docs/design.md, Release";
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
            limiters {
                each_failure_of_a_key_doubles_its_delay: 2,
                "Each failure of a key doubles its own delay, up to the longest.",
                "client-go default_rate_limiters.go, ItemExponentialFailureRateLimiter";
                the_first_failures_are_fast: 1,
                "The first failures of a key take the short delay, the others the long one.",
                "client-go default_rate_limiters.go, ItemFastSlowRateLimiter";
                the_longest_of_several_delays_counts: 1,
                "Of the delays of several limiters the longest counts.",
                "client-go default_rate_limiters.go, MaxOfRateLimiter";
                a_run_that_failed_is_charged: 1,
                "A run that is completed as failed counts a failure, and its key comes back.",
                "controller-runtime controller.go, reconcileHandler: AddRateLimited";
                a_run_that_is_put_off_is_not_charged: 1,
                "A run that is put off counts no failure and forgets none.",
                "requeue-core, Action::RetryAfter";
            }
            forget {
                a_key_that_is_forgotten_starts_again: 1,
                "A key whose failures are forgotten waits as after its first.",
                "client-go default_rate_limiters.go, Forget";
                a_run_that_succeeded_forgets: 1,
                "A run that is completed as succeeded forgets the failures of its key.",
                "controller-runtime controller.go, reconcileHandler: Forget";
                forgetting_leaves_the_delay: 1,
                "Forgetting the failures of a key leaves the delay that it has.",
                "client-go default_rate_limiters.go, Forget";
            }
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
                a_key_that_failed_runs_as_often_as_its_backoff_says: 1,
                "A key whose failures are held does not run before its backoff is over, if added.",
                "requeue-core, WithHolds::hold_failures";
                a_key_cools_down_after_each_run: 1,
                "A key that cools down does not run before that is over, and then once.",
                "requeue-core, WithHolds::cool_down";
                a_deadline_in_a_hold_comes_at_its_end: 1,
                "A deadline in a hold moves to its end; a later one stays.",
                "requeue-core, WithHolds";
                a_ready_key_that_fails_is_held: 1,
                "A key that fails while it is ready is delayed if its failures are held.",
                "requeue-core, WithHolds::hold_failures";
                a_hold_ends_early_only_if_it_is_forgotten: 1,
                "A hold is not ended by expediting the key, but by forgetting its failures.",
                "requeue-core, WithHolds";
                a_held_key_is_a_leftover: 1,
                "After shutdown a held key that would run again is left over, and no drain waits.",
                "requeue-core, WithHolds";
                holds_that_are_over_take_no_room: 4,
                "Runs that end drop the records of other keys whose holds are over.",
                "requeue-core, WithHolds";
            }
            run_rate {
                a_token_is_taken_when_a_key_is_handed_out: 6,
                "Keys wait for tokens in their order, and an add that coalesces takes none.",
                "requeue-core, WithRunRate";
                a_queue_that_is_shut_down_keeps_its_rate: 4,
                "After shutdown keys are handed out at the same rate; leftovers take no token.",
                "requeue-core, WithRunRate";
            }
            debounce {
                each_add_of_a_burst_moves_its_deadline: 1,
                "A debounced key runs once, when no debounced add has come for a while.",
                "requeue-core, Queue::add_debounced";
                a_burst_ends_at_its_maximum: 1,
                "However many debounced adds come, the key runs a time after the first.",
                "requeue-core, Queue::add_debounced";
                a_burst_moves_no_deadline_but_its_own: 1,
                "A deadline that is not that of the burst is not moved back.",
                "requeue-core, Queue::add_debounced";
                a_burst_that_is_taken_back_is_over: 1,
                "A burst ends when its key is cancelled, and leaves nothing behind.",
                "requeue-core, Queue::add_debounced";
                an_add_that_need_not_wait_ends_its_burst: 1,
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
            shutdown {
                keys_that_are_ready_are_still_handed_out: 2,
                "After shutdown keys that are ready are handed out, and then no more.",
                "client-go queue.go, Get";
                a_dirty_key_comes_back_after_shutdown: 1,
                "A key that is dirty when the queue shuts down is handed out once more.",
                "client-go queue.go, Done";
                a_delayed_key_does_not_become_ready_after_shutdown: 1,
                "After shutdown no delay ends.",
                "client-go delaying_queue.go, waitingLoop: stopCh";
            }
            drain {
                a_queue_with_nothing_to_do_has_drained: 0,
                "A queue with nothing to do has drained at once.",
                "client-go queue.go, ShutDownWithDrain";
                delayed_keys_are_not_waited_for: 1,
                "A drain does not wait for delayed keys.",
                "client-go queue.go, ShutDownWithDrain";
            }
            leftovers {
                nothing_that_was_not_worked_on_is_lost: 4,
                "After shutdown ready keys come back in order, then delayed ones by deadline.",
                "requeue-core, Queue::take_ready and take_delayed";
                an_active_key_is_no_leftover: 1,
                "An active key is not taken back.",
                "requeue-core, Queue::take_ready";
            }
            restore {
                what_was_left_goes_on_as_it_was: 4,
                "Leftovers that are restored keep their order, delays and failures.",
                "requeue-core, Queue::restore";
                a_key_that_is_there_takes_the_sooner_time_and_the_larger_count: 2,
                "A restored key that is there is added; the larger count of failures counts.",
                "requeue-core, Queue::restore";
                a_leftover_that_is_refused_is_handed_back_whole: 1,
                "A leftover for which there is no room comes back as it was.",
                "requeue-core, Queue::restore";
                a_restored_key_keeps_its_level: 2 levels,
                "A key is restored at its level, and refused if there is no such level.",
                "requeue-core, Queue::restore";
            }
            snapshot {
                each_key_is_seen_once_as_it_is: 4,
                "A snapshot shows each key that the queue holds once, as its state is.",
                "requeue-core, Queue::snapshot_some";
                a_key_that_is_due_is_seen_ready: 1,
                "A key whose deadline has passed is ready in a snapshot, and is handed out.",
                "requeue-core, Queue::snapshot_some; docs/design.md, Release";
            }
            capacity {
                a_cancelled_key_gives_its_room_back: 1 capacity,
                "A key that is cancelled takes no room unless it is active or has failed.",
                "docs/design.md, Q4";
                a_key_that_is_done_gives_its_room_back: 1 capacity,
                "A key that is neither ready, active, delayed nor remembered takes no room.",
                "docs/design.md, Q4";
                delayed_and_active_keys_take_room: 2 capacity,
                "A delayed key and an active one each take up room.",
                "docs/design.md, One slot per key";
            }
            reclaim {
                work_is_never_dropped_for_room: 1 capacity,
                "A key that is ready, active or delayed is not dropped, whatever its failures.",
                "docs/design.md, One slot per key";
                a_memory_that_is_forgotten_is_not_dropped_twice: 2 capacity,
                "A key that failed and is forgotten gives its room back.",
                "docs/design.md, Q5";
            }
            stale_tickets {
                a_run_is_completed_once: 1,
                "A ticket whose run was completed by name is stale and changes nothing.",
                "docs/design.md, done_with_a_stale_ticket_is_an_error";
                a_stale_ticket_does_not_touch_the_next_run: 1,
                "A ticket of an earlier run does not complete a later one of the same key.",
                "docs/design.md, done_with_a_stale_ticket_is_an_error";
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
            groups {
                groups_are_served_in_turn: 6 groups,
                "Groups that have ready keys are served in turn, however many each of them has.",
                "requeue-core, Groups";
                a_weight_is_so_many_keys_in_a_turn: 5 groups,
                "In each of its turns a group gives as many keys as its weight says.",
                "requeue-core, GroupLimits::weight";
                a_group_at_its_limit_waits_for_the_end_of_a_run: 3 groups,
                "Of a group no more keys are active than its limit; the next waits for a run to end.",
                "requeue-core, GroupLimits::max_active";
                a_limit_can_be_changed_while_keys_wait: 3 groups,
                "A limit of a group that changes holds for the keys that are ready.",
                "requeue-core, Queue::limit_group";
                a_paused_group_keeps_its_keys: 2 groups,
                "Of a paused group no key is handed out, and none is lost.",
                "requeue-core, Queue::pause_group";
                a_rate_is_charged_when_a_key_is_handed_out: 2 groups,
                "A rate of a group is charged when a key is handed out, and adds that are coalesced cost nothing.",
                "requeue-core, GroupLimits::rate";
                a_drain_honours_limits_and_ends: 3 groups,
                "A drain honours the limits of groups, and lifts those that would keep it from ending.",
                "requeue-core, Groups";
            }
            client_go {
                basic: 51,
                "Of ten workers no two have a key at once; what is added too late comes back.",
                "client-go queue_test.go, TestBasic";
                add_while_processing: 50,
                "Each of fifty keys that is added once more while active is worked on twice.",
                "client-go queue_test.go, TestAddWhileProcessing";
                len: 2,
                "A second add of a key does not count.",
                "client-go queue_test.go, TestLen";
                reinsert: 1,
                "A key that is added while active comes back.",
                "client-go queue_test.go, TestReinsert";
                collapse: 1,
                "Two adds make one run.",
                "client-go queue_test.go, TestCollapse";
                collapse_while_processing: 1,
                "Two adds while active make one more run, and not before the present one is over.",
                "client-go queue_test.go, TestCollapseWhileProcessing";
                queue_drainage_using_shut_down_with_drain: 2,
                "A drain lasts until the active keys are done.",
                "client-go queue_test.go, TestQueueDrainageUsingShutDownWithDrain";
                no_queue_drainage_using_shut_down: 2,
                "A shutdown does not wait for active keys.",
                "client-go queue_test.go, TestNoQueueDrainageUsingShutDown";
                force_queue_shutdown_using_shut_down: 2,
                "A shutdown ends a drain.",
                "client-go queue_test.go, TestForceQueueShutdownUsingShutDown";
                queue_drainage_using_shut_down_with_drain_with_dirty_item: 1,
                "A key that is dirty when the drain begins is worked on once more.",
                "client-go queue_test.go, TestQueueDrainageUsingShutDownWithDrainWithDirtyItem";
                garbage_collection: 1,
                "Nothing is kept of a key that is done.",
                "client-go queue_test.go, TestGarbageCollection";
                simple_queue: 1,
                "A delayed key comes once.",
                "client-go delaying_queue_test.go, TestSimpleQueue";
                deduping: 1,
                "Of two delays the one that ends first counts, whichever was asked for first.",
                "client-go delaying_queue_test.go, TestDeduping";
                add_two_fire_early: 3,
                "Keys come in the order of their deadlines, whichever was asked for first.",
                "client-go delaying_queue_test.go, TestAddTwoFireEarly";
                copy_shifting: 3,
                "Three keys that were asked for in the opposite order come together.",
                "client-go delaying_queue_test.go, TestCopyShifting";
                rate_limiting_queue: 2,
                "Each failure doubles the delay of its key, until it is forgotten.",
                "client-go rate_limiting_queue_test.go, TestRateLimitingQueue";
            }
            differences {
                drain_waits_for_ready_keys: 2,
                "A drain waits for ready keys; client-go's ends once no key is active.",
                "docs/design.md, differences";
                drain_waits_for_dirty_keys: 1,
                "A drain waits for dirty keys; client-go's ends although one is queued again.",
                "docs/design.md, differences";
                every_drainer_is_woken: 1,
                "Every call that waits for the drain is woken; client-go wakes one.",
                "docs/design.md, differences";
                shut_down_interrupts_drain: 1,
                "Every shutdown ends a drain; of client-go's delaying queue only the first does.",
                "docs/design.md, differences";
                done_of_inactive_key_is_an_error: 2,
                "Completing a key that is not active is an error; client-go says nothing.",
                "docs/design.md, differences";
                done_of_a_queued_key_does_not_queue_it_twice: 1,
                "Completing a queued key does not queue it twice, as client-go does.",
                "docs/design.md, differences";
                done_with_a_stale_ticket_is_an_error: 1,
                "A worker that is late cannot complete another's run; client-go has no tickets.",
                "docs/design.md, differences";
                add_after_shutdown_is_an_error: 1,
                "A key added after shutdown is handed back; client-go drops it silently.",
                "docs/design.md, differences";
                limiter_not_charged_after_shutdown: 1,
                "A rate-limited add after shutdown is not charged, as client-go does.",
                "docs/design.md, differences";
                delayed_keys_are_handed_back_after_shutdown: 3,
                "Delayed keys can be taken back after shutdown; client-go drops them.",
                "docs/design.md, differences";
                ready_keys_can_be_taken_back_after_shutdown: 1,
                "Ready keys can be taken back after shutdown; client-go's have to be worked on.",
                "docs/design.md, differences";
                a_retry_after_shutdown_is_kept_among_the_delayed: 1,
                "A key that fails after shutdown is kept among the delayed; client-go drops it.",
                "docs/design.md, differences";
                delays_saturate: 1,
                "Delays saturate; client-go's overflow into the past.",
                "docs/design.md, differences";
                duration_max_is_never: 1,
                "The longest delay never ends and arms no timer; client-go has no such delay.",
                "docs/design.md, differences";
                equal_deadlines_leave_in_insertion_order: 10,
                "Equal deadlines leave in the order in which they were set, unlike client-go's.",
                "docs/design.md, differences";
                a_full_queue_hands_the_key_back: 1 capacity,
                "A new key for which there is no room comes back, and nothing changes.",
                "docs/design.md, One slot per key";
                a_key_that_is_held_is_never_refused: 1 capacity,
                "Whatever happens to a key that has room needs no more.",
                "docs/design.md, One slot per key";
                the_oldest_memory_of_failures_makes_room: 1 capacity,
                "Where room is short the oldest mere record of failures goes.",
                "docs/design.md, One slot per key";
                memories_of_failures_can_be_limited: 3 growth,
                "A queue that grows can limit how many mere records of failures it keeps.",
                "docs/design.md, One slot per key";
            }
        }
        waits {
            pauses {
                getters_wait_until_the_queue_is_resumed: 1,
                "A call that waits for a key gets none while the queue is paused, and then does.",
                "requeue-core, Queue::resume";
                a_deadline_that_passes_in_a_pause_is_noticed_after_it: 1,
                "A key whose deadline passes while the queue is paused is handed out after it.",
                "requeue-core, Queue::resume";
                a_call_with_a_time_limit_gives_up_in_a_pause: 1,
                "A call with a time limit gives up at its time while the queue is paused.",
                "requeue-core, Queue::pause";
            }
            run_rates {
                a_getter_that_sleeps_is_the_timer_of_a_token: 4,
                "While getters sleep, each key is handed out when there is a token for it.",
                "requeue-core, WithRunRate";
                after_shutdown_getters_wait_for_tokens_and_then_end: 4,
                "After shutdown getters wait for the tokens of the last keys, and are then closed.",
                "requeue-core, WithRunRate";
                a_call_with_a_time_limit_gives_up_before_its_token: 3,
                "A call with a time limit gives up before there is a token for a ready key.",
                "requeue-core, WithRunRate";
            }
            limited_groups {
                the_end_of_a_run_wakes_one_who_waits_for_its_group: 2,
                "The end of a run lets a key of its group pass, and wakes a call that waits.",
                "requeue-core, GroupLimits::max_active";
                one_who_sleeps_is_the_timer_of_a_rate: 2,
                "A call that waits is the timer of a group whose rate allows no run yet.",
                "requeue-core, GroupLimits::rate";
                a_group_that_is_resumed_wakes_one_who_waits: 1,
                "A group that is resumed wakes a call that waits.",
                "requeue-core, Queue::resume_group";
            }
            wake_obligations {
                a_key_that_is_ready_wakes_one_who_sleeps: 1,
                "While a call sleeps, a key that becomes ready wakes one.",
                "client-go queue.go, Add: cond.Signal; docs/design.md, The duty and W1";
                a_getter_that_is_served_wakes_the_next: 2,
                "One wake is under way at a time: a call that leaves with a key wakes the next.",
                "docs/design.md, One wake in flight, The duty";
                each_of_several_keys_reaches_a_sleeper: 3,
                "As many keys as become ready reach as many of those who sleep.",
                "client-go queue.go, Add: cond.Signal; docs/design.md, The duty";
                a_wake_for_a_key_that_is_gone_is_not_missed_later: 2,
                "A call that is woken for a key that another took sleeps on and is woken again.",
                "docs/design.md, One wake in flight";
                a_key_that_comes_back_wakes_one_who_sleeps: 1,
                "A key that was added while active wakes a sleeper when that run is over.",
                "client-go queue.go, Done: cond.Signal";
                a_worker_that_asks_for_more_leaves_nothing_behind: 2,
                "A worker that completes a key and waits for the next is woken like any other.",
                "client-go queue.go, Done and Get";
                shutting_down_wakes_every_call: 0,
                "A shutdown wakes all who sleep, and each learns that the queue is closed.",
                "client-go queue.go, ShutDown: cond.Broadcast";
                what_is_ready_is_handed_out_before_calls_end: 1,
                "After shutdown those who wait take what is ready before they are sent home.",
                "client-go queue.go, Get";
                one_who_is_polled_without_a_wake_sleeps_on: 1,
                "A call that looks without having been woken loses no later wake.",
                "Rust's Future::poll: only the last waker is to be woken";
                a_call_that_finds_no_place_harms_no_other: 1,
                "A call that finds no place to wait is refused, and those who wait are served.",
                "docs/design.md, Waiting";
            }
            timekeeper_hand_over {
                a_deadline_wakes_one_who_sleeps: 1,
                "While a call sleeps, a key is handed out when its deadline comes.",
                "client-go delaying_queue.go, waitingLoop; docs/design.md, One keeper";
                a_deadline_before_the_watched_one_is_watched: 2,
                "A deadline that comes before all others is watched at once.",
                "docs/design.md, Waiting: a deadline that moves forward";
                a_deadline_that_moves_forward_is_watched: 1,
                "A deadline that moves forward is watched at once.",
                "docs/design.md, Waiting: a deadline that moves forward";
                a_keeper_that_is_served_hands_the_watch_over: 2,
                "A call that watches the clock and leaves with a key hands the watch over.",
                "docs/design.md, One keeper, The duty";
                a_keeper_that_times_out_hands_the_watch_over: 1,
                "A call that watches the clock and gives up hands the watch over.",
                "docs/design.md, One keeper, The duty";
                keys_due_at_once_reach_as_many: 2,
                "Of several keys due at once each reaches one who sleeps.",
                "docs/design.md, Release, The duty";
                deadlines_come_one_after_another: 3,
                "Each of several deadlines is watched when the one before it has come.",
                "docs/design.md, One keeper, The duty";
            }
            cancelled_getters {
                one_who_was_woken_passes_the_wake_on: 1,
                "A call that was woken and is cancelled before it looks passes the wake on.",
                "requeue-core, Waker; docs/design.md, The duty";
                a_keeper_hands_the_watch_over: 1,
                "A call that watches the clock and is cancelled hands the watch over.",
                "docs/design.md, One keeper, The duty";
                one_who_sleeps_takes_no_wake_along: 1,
                "A call that sleeps and is cancelled is not woken in place of another.",
                "requeue-core, Waker and Getter";
                all_who_were_woken_pass_their_wakes_on: 2,
                "However many are cancelled, each key reaches one of those who are left.",
                "docs/design.md, The duty";
                a_place_is_given_back: 1,
                "A call that is cancelled gives its place to wait back.",
                "requeue-core, Getter";
                a_run_that_was_declared_over_is_completed: 1,
                "A call that is to complete a key does so even if it is dropped before it ran.",
                "docs/design.md, Waiting: nothing is lost when a future is dropped";
            }
            drain_wakes {
                the_last_active_key_ends_the_drain: 1,
                "A call that waits for the drain is woken by the last key that is completed.",
                "client-go queue.go, Done and waitForProcessing";
                every_call_that_waits_for_the_drain_is_woken: 1,
                "Every call that waits for the drain is woken when it is over.",
                "docs/design.md, every_drainer_is_woken";
                the_last_key_that_is_taken_back_ends_the_drain: 1,
                "A call that waits for the drain is woken by the last key that is taken back.",
                "docs/design.md, ready_keys_can_be_taken_back_after_shutdown";
                a_worker_that_asks_for_more_ends_the_drain: 1,
                "A worker that completes the last key and asks for more ends the drain.",
                "client-go queue.go, Done and waitForProcessing";
                shutting_down_ends_the_wait_for_the_drain: 1,
                "A shutdown wakes those who wait for the drain.",
                "client-go queue.go, ShutDown; docs/design.md, shut_down_interrupts_drain";
                a_drain_that_takes_too_long_is_given_up: 1,
                "A wait for the drain ends at its time and not before.",
                "requeue-std, WorkQueue::drain_timeout";
                a_cancelled_wait_for_the_drain_harms_no_other: 1,
                "Of those who wait for the drain one may be cancelled, and the others are woken.",
                "docs/design.md, every_drainer_is_woken";
            }
            watch_wakes {
                the_end_of_the_last_run_wakes_those_who_wait_for_it: 2,
                "Every call that waits until the queue is idle is woken when the last run ends.",
                "requeue-core, Queue::poll_idle";
                delayed_keys_are_waited_for_until_they_are_settled: 1,
                "A delayed key leaves a queue idle; it is settled once nothing is delayed either.",
                "requeue-core, Queue::poll_settled";
                a_ready_key_keeps_a_paused_queue_from_being_idle: 1,
                "A paused queue with a ready key is not idle until the key is cancelled or runs.",
                "requeue-core, Queue::is_idle";
                a_queue_may_be_waited_for_after_shutdown: 1,
                "A call that waits until the queue is idle is woken after shutdown, too.",
                "requeue-core, Queue::poll_idle";
                a_key_is_waited_for_until_its_run_has_ended: 2,
                "A wait for the work of a key ends with the run that does it, and not before.",
                "Linux workqueue, flush_work; requeue-core, Queue::begin_flush";
                a_dirty_key_is_waited_for_until_it_has_run_once_more: 1,
                "A wait for the work of a dirty key ends with the run after the present one.",
                "Linux workqueue, flush_work; requeue-core, Queue::begin_flush";
                work_that_is_taken_back_is_waited_for_no_longer: 1,
                "A wait for the work of a key ends when the key is cancelled before it runs.",
                "requeue-core, Queue::begin_flush";
                a_cancelled_key_is_waited_for_until_its_run_has_ended: 1,
                "A cancel that waits ends with the present run, whatever is added meanwhile.",
                "Linux workqueue, cancel_work_sync; requeue-core, Queue::begin_cancel";
            }
            room_wakes {
                a_place_that_becomes_free_wakes_one_who_waits_for_it: 1,
                "A call that waits for room adds its key when a key leaves the queue.",
                "requeue-core, Queue::poll_add";
                those_who_wait_for_room_are_served_in_their_order: 1,
                "Each place goes to the call that has waited longest.",
                "requeue-core, Queue::poll_add";
                places_that_become_free_together_reach_as_many: 1,
                "As many places as become free reach as many of those who wait for room.",
                "requeue-core, Queue::poll_add";
                a_cancelled_wait_for_room_passes_the_place_on: 1,
                "A call that was woken for a place and is cancelled passes it on.",
                "requeue-core, Queue::leave";
                a_key_that_is_held_needs_no_room: 1,
                "An add of a key that the queue holds does not wait for room.",
                "requeue-core, Queue::poll_add";
                shutting_down_hands_the_key_back: 1,
                "A shutdown wakes those who wait for room, and each gets its key back.",
                "requeue-core, Queue::poll_add";
            }
            timed_getters {
                one_gives_up_at_its_time_and_not_before: 0,
                "A call with a time limit gives up when its time has come, and not before.",
                "requeue-std, WorkQueue::get_timeout";
                no_time_is_no_wait: 1,
                "A call that waits for no time takes a key that is ready, or gives up at once.",
                "requeue-std, WorkQueue::get_timeout";
                a_key_that_comes_in_the_last_moment_is_handed_out: 1,
                "A call whose time has come looks once more before it gives up.",
                "requeue-std, WorkQueue::get_timeout";
                one_who_gives_up_takes_no_wake_along: 1,
                "A call that gives up passes on a wake that was meant for it.",
                "docs/design.md, The duty";
            }
        }
    }};
}
