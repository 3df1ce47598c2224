//! Rules about calls that wait.

#[doc(hidden)]
#[macro_export]
macro_rules! __rules_waits {
    (($($before:tt)*) { $($groups:tt)* } $($after:tt)*) => { $crate::__rules! {
        $($before)*
        {
            $($groups)*
            pauses {
                getters_wait_until_the_queue_is_unpaused: 1,
                "A call that waits for a key gets none while the queue is paused, and then does.",
                "requeue-core, Queue::unpause";
                a_deadline_that_passes_in_a_pause_is_noticed_after_it: 1,
                "A key whose deadline passes while the queue is paused is handed out after it.",
                "requeue-core, Queue::unpause";
                a_call_with_a_time_limit_gives_up_in_a_pause: 1,
                "A call with a time limit gives up at its time while the queue is paused.",
                "requeue-core, Queue::pause";
            }
            run_rates {
                a_getter_that_sleeps_is_the_timer_of_a_token: 4 policy,
                "While getters sleep, each key is handed out when there is a token for it.",
                "requeue-core, Policy::run_rate";
                after_shutdown_getters_wait_for_tokens_and_then_end: 4 policy,
                "After shutdown getters wait for the tokens of the last keys, and are then closed.",
                "requeue-core, Policy::run_rate";
                a_call_with_a_time_limit_gives_up_before_its_token: 3 policy,
                "A call with a time limit gives up before there is a token for a ready key.",
                "requeue-core, Policy::run_rate";
            }
            limited_groups {
                the_end_of_a_run_wakes_a_getter_of_its_group: 2,
                "The end of a run lets a key of its group pass, and wakes a call that waits.",
                "requeue-core, GroupLimits::max_active";
                a_sleeping_getter_is_the_timer_of_a_rate: 2,
                "A call that waits is the timer of a group whose rate allows no run yet.",
                "requeue-core, GroupLimits::rate";
                a_group_that_is_unpaused_wakes_a_getter: 1,
                "A group whose pause is over wakes a call that waits.",
                "requeue-core, Queue::unpause_group";
            }
            wake_obligations {
                a_ready_key_wakes_a_getter: 1,
                "While a call sleeps, a key that becomes ready wakes one.",
                "client-go queue.go, Add: cond.Signal; docs/design.md, Wake needed and W1";
                a_getter_that_is_served_wakes_the_next: 2,
                "One wake is under way at a time: a call that leaves with a key wakes the next.",
                "docs/design.md, One wake in flight, Wake needed";
                each_of_several_keys_reaches_a_sleeper: 3,
                "As many keys as become ready reach as many of those who sleep.",
                "client-go queue.go, Add: cond.Signal; docs/design.md, Wake needed";
                a_wake_for_a_key_that_is_gone_is_not_missed_later: 2,
                "A call that is woken for a key that another took waits again and is woken again.",
                "docs/design.md, One wake in flight";
                a_key_that_comes_back_wakes_a_getter: 1,
                "A key that was added while active wakes a sleeper when that run is over.",
                "client-go queue.go, Done: cond.Signal";
                a_dirty_key_reaches_a_getter_while_the_queue_drains: 1,
                "In a drain a call waits for a key that is dirty, and so the drain ends.",
                "docs/design.md, Differences from client-go";
                getters_end_when_the_last_dirty_key_is_cancelled: 1,
                "In a drain a call ends when no key is ready and none can become so.",
                "docs/design.md, Differences from client-go";
                a_drain_that_is_interrupted_sends_getters_home: 1,
                "A call that waits for a dirty key ends when a shutdown interrupts the drain.",
                "docs/design.md, Differences from client-go";
                a_worker_that_asks_for_more_leaves_nothing_behind: 2,
                "A worker that completes a key and waits for the next is woken like any other.",
                "client-go queue.go, Done and Get";
                shutting_down_wakes_every_call: 0,
                "A shutdown wakes all who sleep, and each learns that the queue is closed.",
                "client-go queue.go, ShutDown: cond.Broadcast";
                what_is_ready_is_handed_out_before_calls_end: 1,
                "After shutdown those who wait take what is ready before they are closed.",
                "client-go queue.go, Get";
                a_getter_polled_without_a_wake_keeps_waiting: 1,
                "A call that looks without having been woken loses no later wake.",
                "Rust's Future::poll: only the last waker is to be woken";
                a_call_that_finds_no_place_harms_no_other: 1,
                "A call that finds no place to wait is refused, and those who wait are served.",
                "docs/design.md, Waiting";
            }
            timer_owner_hand_over {
                a_deadline_wakes_a_getter: 1,
                "While a call sleeps, a key is handed out when its deadline comes.",
                "client-go delaying_queue.go, waitingLoop; docs/design.md, One timer owner";
                a_deadline_before_the_watched_one_is_watched: 2,
                "A deadline that comes before all others is watched at once.",
                "docs/design.md, Waiting";
                a_deadline_that_moves_forward_is_watched: 1,
                "A deadline that moves forward is watched at once.",
                "docs/design.md, Waiting";
                a_timer_owner_that_is_served_hands_the_timer_over: 2,
                "A call that watches the clock and leaves with a key hands the timer over.",
                "docs/design.md, One timer owner, Wake needed";
                a_timer_owner_that_times_out_hands_the_timer_over: 1,
                "A call that watches the clock and gives up hands the timer over.",
                "docs/design.md, One timer owner, Wake needed";
                keys_due_at_once_reach_as_many: 2,
                "Of several keys due at once each reaches one who sleeps.",
                "docs/design.md, Due keys, Wake needed";
                deadlines_come_one_after_another: 3,
                "Each of several deadlines is watched when the one before it has come.",
                "docs/design.md, One timer owner, Wake needed";
            }
            cancelled_getters {
                a_woken_getter_passes_the_wake_on: 1,
                "A call that was woken and is cancelled before it looks passes the wake on.",
                "requeue-core, Wait; docs/design.md, Wake needed";
                a_cancelled_timer_owner_hands_the_timer_over: 1,
                "A call that watches the clock and is cancelled hands the timer over.",
                "docs/design.md, One timer owner, Wake needed";
                a_sleeping_getter_takes_no_wake_along: 1,
                "A call that sleeps and is cancelled is not woken in place of another.",
                "requeue-core, Wait";
                every_woken_getter_passes_its_wake_on: 2,
                "However many are cancelled, each key reaches one of those who are left.",
                "docs/design.md, Wake needed";
                a_getter_cancelled_while_it_takes_a_key_gives_it_back: 1,
                "A call that is cancelled has either returned its key, or not taken it.",
                "requeue-core, Wait";
                a_place_is_given_back: 1,
                "A call that is cancelled gives its place to wait back.",
                "requeue-core, Getter";
                a_run_that_was_declared_over_is_completed: 1,
                "A call that is to complete a key does so even if it is dropped before it ran.",
                "docs/design.md, Waiting";
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
                the_end_of_the_last_run_wakes_every_waiter: 2,
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
                "Linux workqueue, cancel_work_sync; requeue-core, Session::cancel";
            }
            room_wakes {
                a_place_that_becomes_free_wakes_one_waiter: 1,
                "A call that waits for room adds its key when a key leaves the queue.",
                "requeue-core, Queue::poll_add";
                calls_that_wait_for_room_are_served_in_order: 1,
                "Each place goes to the call that has waited longest.",
                "requeue-core, Queue::poll_add";
                places_that_become_free_together_reach_as_many: 1,
                "As many places as become free reach as many of those who wait for room.",
                "requeue-core, Queue::poll_add";
                a_cancelled_wait_for_room_passes_the_place_on: 1,
                "A call that was woken for a place and is cancelled passes it on.",
                "requeue-core, Queue::leave";
                a_raised_limit_wakes_as_many_as_there_is_room_for: 3 limit,
                "If more keys fit than before, as many of those who wait for room add theirs.",
                "requeue-core, Queue::limit_keys";
                a_key_that_is_held_needs_no_room: 1,
                "An add of a key that the queue holds does not wait for room.",
                "requeue-core, Queue::poll_add";
                shutting_down_hands_the_key_back: 1,
                "A shutdown wakes those who wait for room, and each gets its key back.",
                "requeue-core, Queue::poll_add";
            }
            timed_getters {
                a_getter_gives_up_at_its_time_and_not_before: 0,
                "A call with a time limit gives up when its time has come, and not before.",
                "requeue-std, WorkQueue::get_timeout";
                no_time_is_no_wait: 1,
                "A call that waits for no time takes a key that is ready, or gives up at once.",
                "requeue-std, WorkQueue::get_timeout";
                a_key_that_comes_in_the_last_moment_is_handed_out: 1,
                "A call whose time has come looks once more before it gives up.",
                "requeue-std, WorkQueue::get_timeout";
                a_getter_that_gives_up_takes_no_wake_along: 1,
                "A call that gives up passes on a wake that was meant for it.",
                "docs/design.md, Wake needed";
            }
        }
        $($after)*
    }};
}
