//! Rules about groups, and about age.

#[doc(hidden)]
#[macro_export]
macro_rules! __rules_groups {
    (($($before:tt)*) { $($groups:tt)* } $($after:tt)*) => { $crate::__rules! {
        $($before)*
        {
            $($groups)*
            groups {
                groups_are_served_in_turn: 6 groups,
                "Groups that have ready keys are served in turn, however many each of them has.",
                "requeue-core, Groups";
                a_weight_is_so_many_keys_in_a_turn: 5 groups,
                "In each of its turns a group gives as many keys as its weight says.",
                "requeue-core, GroupLimits::weight";
                a_group_at_its_limit_waits_for_the_end_of_a_run: 3 groups,
                "Of a group no more keys are active than its limit: the next waits for an end.",
                "requeue-core, GroupLimits::max_active";
                a_limit_can_be_changed_while_keys_wait: 3 groups,
                "A limit of a group that changes holds for the keys that are ready.",
                "requeue-core, Queue::limit_group";
                a_paused_group_keeps_its_keys: 2 groups,
                "Of a paused group no key is handed out, and none is lost.",
                "requeue-core, Queue::pause_group";
                a_rate_is_charged_when_a_key_is_handed_out: 2 groups,
                "A rate of a group is charged when a key is handed out; a coalesced add is free.",
                "requeue-core, GroupLimits::rate";
                a_group_with_a_token_does_not_wait_behind_keys_that_are_due: 8 groups,
                "A group whose rate allows a run takes its turn, however many keys are due.",
                "requeue-core, Groups";
                shutdown_ends_the_pause_of_a_group: 1 groups,
                "Shutdown ends the pause of a group, in its figures too, and none begins after it.",
                "requeue-core, GroupState::paused";
                a_group_without_ready_keys_is_not_blocked_by_its_rate: 2 groups,
                "A group without a token is blocked only while it has ready keys.",
                "requeue-core, GroupState::blocked";
                a_group_with_a_token_runs_a_key_once_for_a_deadline_that_has_passed: 4 groups,
                "A key whose own deadline has passed runs once, though its group had to wait.",
                "requeue-core, Queue::limit_due_keys";
                a_drain_honours_limits_and_ends: 3 groups,
                "A drain honours limits of groups, but for those that would keep it from ending.",
                "requeue-core, Groups";
            }
            aging {
                a_key_that_has_waited_too_long_comes_first: 4 aging,
                "A key that has waited for too long comes before younger keys of higher levels.",
                "requeue-core, Aging";
                of_keys_that_have_waited_too_long_the_oldest_comes_first: 3 aging,
                "Of the keys that have waited for too long, the oldest comes first.",
                "requeue-core, Aging";
                a_key_that_has_aged_runs_once_for_a_deadline_that_has_passed: 5 aging,
                "A key whose own deadline has passed runs once, though it comes first by its age.",
                "requeue-core, Queue::limit_due_keys";
                a_deadline_that_raises_a_key_that_has_aged_does_so_before_it_runs: 5 aging,
                "A deadline that has passed raises its key before the key is handed out.",
                "requeue-core, Queue::limit_due_keys";
            }
        }
        $($after)*
    }};
}
