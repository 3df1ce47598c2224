//! The whole suite on each of our queues.

use ::std::collections::BTreeSet;

use requeue_core::priority::{Aging, Groups, Levels, Plain, WithPolicy, WithSuspension};
use requeue_core::storage::{Fixed, Growable};
use requeue_proptest::conformance;
use requeue_proptest::conformance::{NotTried, RULES, drawn, rules_not_tried};
use requeue_proptest::subject::{Bare, Direct, Embassy, OnWorkQueue, Subject, Tasks, Threads};
use requeue_proptest::{Figures, Model};

/// What fails for one queue is tried on all.
const REGRESSIONS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../proptest-regressions/suite.txt"
);

const HISTORIES: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../proptest-regressions/histories.txt"
);

/// The state machine, which leaves waiting to others, with room for so many keys.
macro_rules! core_fixed {
    ($($name:ident: $capacity:literal;)+) => {
        $(mod $name {
            use super::*;
            conformance!(Direct<WithSuspension, Fixed<$capacity>>, steps);
        })+
    };
}

core_fixed! {
    core_fixed_1: 1;
    core_fixed_2: 2;
    core_fixed_4: 4;
    core_fixed_64: 64;
}

/// Without a policy, as most queues of a fixed size are.
mod core_fixed_3 {
    use super::*;
    conformance!(Direct<Plain, Fixed<3>>, steps);
}

mod core_fixed_64_without_policy {
    use super::*;
    conformance!(Direct<Plain, Fixed<64>>, steps);
}

mod core_growable {
    use super::*;
    conformance!(Direct<Plain, Growable>, steps);
}

mod core_growable_for_64 {
    use super::*;
    conformance!(Direct<Plain, Growable, Figures, 64>, steps);
}

mod std {
    use super::*;
    conformance!(OnWorkQueue<Threads>);
}

mod std_for_64 {
    use super::*;
    conformance!(OnWorkQueue<Threads, 64>);
}

mod tokio {
    use super::*;
    conformance!(OnWorkQueue<Tasks>);
}

mod tokio_for_64 {
    use super::*;
    conformance!(OnWorkQueue<Tasks, 64>);
}

mod embassy {
    use super::*;
    conformance!(OnWorkQueue<Embassy<64, WithSuspension>>);
}

mod embassy_without_policy {
    use super::*;
    conformance!(OnWorkQueue<Embassy<64>>);
}

mod model {
    use super::*;
    conformance!(Model, steps);
}

/// Variants, on which only sequences are drawn.
macro_rules! drawn {
    ($($name:ident: $subject:ty;)+) => {
        $(
            #[test]
            fn $name() {
                drawn::operations_on_a_few_keys::<$subject>(REGRESSIONS);
            }
        )+
    };
}

drawn! {
    core_fixed_64_with_wide_numbers: Direct<WithSuspension, Fixed<64, u16>>;
    core_fixed_3_without_metrics: Direct<WithPolicy, Fixed<3>, ()>;
    core_growable_without_metrics: Direct<Plain, Growable, ()>;
    core_growable_for_1: Direct<Plain, Growable, (), 1>;
    core_growable_for_3: Direct<Plain, Growable, Figures, 3>;
    core_growable_for_4_with_groups_and_levels: Direct<GroupedLevels, Growable, Figures, 4>;
    core_growable_for_4_with_aging: Direct<Aged, Growable, Figures, 4>;
    work_queue_growable_for_2: OnWorkQueue<Bare<Plain, Growable>, 2>;
    work_queue_fixed_2: OnWorkQueue<Bare<WithSuspension, Fixed<2>>>;
    work_queue_growable: OnWorkQueue<Bare<Plain, Growable>>;
    embassy_3: OnWorkQueue<Embassy<3, WithSuspension>>;
    core_fixed_4_with_levels: Direct<GovernedLevels, Fixed<4>>;
    core_fixed_3_with_levels_without_metrics: Direct<GovernedLevels, Fixed<3>, ()>;
    core_fixed_4_with_groups_and_levels: Direct<Groups<u8, GovernedLevels, 4>, Fixed<4>>;
    core_fixed_4_with_aging: Direct<Aging<GovernedLevels>, Fixed<4>>;
    core_growable_with_aging_without_metrics: Direct<Aged, Growable, ()>;
    core_fixed_4_with_groups_and_aging: Direct<AgingGroups, Fixed<4>>;
    core_growable_with_groups_without_metrics: Direct<Grouped, Growable, ()>;
}

/// Variants of more than one priority level, on which the rules of priorities are also tried.
macro_rules! kinds {
    ($($name:ident: $subject:ty;)+) => {
        $(mod $name {
            use super::*;
            conformance!($subject, steps);
        })+
    };
}

type Leveled = Levels<3>;
type Aged = Aging<Levels<3>>;
type Grouped = Groups<u8>;
type GroupedLevels = Groups<u8, Levels<3>>;
type GovernedLevels = WithSuspension<Levels<3>>;
type AgingGroups = Groups<u8, Aging<GovernedLevels>, 4>;

kinds! {
    core_fixed_64_with_levels: Direct<GovernedLevels, Fixed<64>>;
    core_growable_with_levels: Direct<Leveled, Growable>;
    std_with_levels: OnWorkQueue<Threads<Leveled>>;
    tokio_with_levels: OnWorkQueue<Tasks<Leveled>>;
    embassy_with_levels: OnWorkQueue<Embassy<64, GovernedLevels>>;
    core_fixed_64_with_groups: Direct<Groups<u8, WithSuspension>, Fixed<64>>;
    core_fixed_64_with_aging: Direct<Aging<GovernedLevels>, Fixed<64>>;
    core_growable_with_aging: Direct<Aged, Growable>;
    core_growable_with_groups: Direct<GroupedLevels, Growable>;
    core_growable_with_groups_and_aging: Direct<AgingGroups, Growable>;
    std_with_groups: OnWorkQueue<Threads<Grouped>>;
    tokio_with_groups: OnWorkQueue<Tasks<Grouped>>;
    std_with_aging: OnWorkQueue<Threads<Aged>>;
    tokio_with_aging: OnWorkQueue<Tasks<Aged>>;
    embassy_with_aging: OnWorkQueue<Embassy<64, WithSuspension<Aging<Levels<3>>>>>;
    embassy_with_groups: OnWorkQueue<Embassy<64, Groups<u8, WithSuspension>>>;
}

#[test]
fn core_fixed_20_crowded() {
    drawn::operations_on_many_keys::<Direct<WithSuspension, Fixed<20>>>(REGRESSIONS);
}

#[test]
fn histories_on_tokio_with_levels() {
    drawn::histories_of_calls::<OnWorkQueue<Tasks<Leveled>>>(HISTORIES);
}

#[test]
fn histories_on_embassy_with_room_for_two_keys() {
    drawn::histories_of_calls::<OnWorkQueue<Embassy<2, WithSuspension>>>(HISTORIES);
}

#[test]
fn histories_on_std_with_room_for_two_keys() {
    drawn::histories_of_calls::<OnWorkQueue<Threads<WithSuspension, Fixed<2>>>>(HISTORIES);
}

#[test]
fn histories_on_tokio_with_room_for_two_keys() {
    drawn::histories_of_calls::<OnWorkQueue<Tasks<WithSuspension, Fixed<2>>>>(HISTORIES);
}

#[test]
fn histories_on_std_for_at_most_two_keys() {
    drawn::histories_of_calls::<OnWorkQueue<Threads, 2>>(HISTORIES);
}

#[test]
fn histories_on_tokio_for_at_most_two_keys() {
    drawn::histories_of_calls::<OnWorkQueue<Tasks, 2>>(HISTORIES);
}

const OF_CAPACITY: &[&str] = &[
    "capacity::a_cancelled_key_gives_its_room_back",
    "capacity::a_key_that_is_done_gives_its_room_back",
    "capacity::delayed_and_active_keys_take_room",
    "reclaim::work_is_never_dropped_for_room",
    "reclaim::a_failure_record_that_is_forgotten_is_not_dropped_twice",
    "differences::a_full_queue_hands_the_key_back",
    "differences::a_key_that_is_held_is_never_refused",
    "differences::the_oldest_failure_record_makes_room",
];
const OF_LIMITS: &[&str] = &[
    "capacity::a_lowered_limit_keeps_what_is_held",
    "capacity::a_raised_limit_makes_room",
];
const OF_LIMITED_CALLS: &[&str] =
    &["room_wakes::a_raised_limit_wakes_as_many_as_there_is_room_for"];
const OF_GROWING: &[&str] = &["differences::failure_records_can_be_limited"];
const OF_LEVELS: &[&str] = &[
    "priorities::the_highest_level_comes_first",
    "priorities::keys_of_a_level_keep_their_order",
    "priorities::an_add_never_lowers_a_priority",
    "priorities::a_raise_goes_to_the_end_of_its_level",
    "priorities::a_delayed_key_keeps_its_priority",
    "priorities::a_key_of_the_lowest_level_makes_way_for_a_higher_one",
    "priorities::a_priority_survives_retries",
    "restore::a_restored_key_keeps_its_level",
];
const OF_AGING: &[&str] = &[
    "aging::a_key_that_has_waited_too_long_comes_first",
    "aging::of_keys_that_have_waited_too_long_the_oldest_comes_first",
    "aging::a_key_that_has_aged_runs_once_for_a_deadline_that_has_passed",
    "aging::a_deadline_that_raises_a_key_that_has_aged_does_so_before_it_runs",
];
const OF_GROUPS: &[&str] = &[
    "groups::groups_are_served_in_turn",
    "groups::a_weight_is_so_many_keys_in_a_turn",
    "groups::a_group_at_its_limit_waits_for_the_end_of_a_run",
    "groups::a_limit_can_be_changed_while_keys_wait",
    "groups::a_paused_group_keeps_its_keys",
    "groups::a_rate_is_charged_when_a_key_is_handed_out",
    "groups::a_group_with_a_token_runs_a_key_once_for_a_deadline_that_has_passed",
    "groups::a_group_with_a_token_does_not_wait_behind_keys_that_are_due",
    "groups::shutdown_ends_the_pause_of_a_group",
    "groups::a_group_without_ready_keys_is_not_blocked_by_its_rate",
    "groups::a_drain_honours_limits_and_ends",
    "why::a_ready_key_waits_for_its_group",
];
const OF_POLICIES: &[&str] = &[
    "holds::a_key_that_failed_runs_as_often_as_its_backoff_says",
    "holds::an_add_without_a_delay_is_one_for_a_held_key_that_runs",
    "holds::an_add_now_takes_the_place_of_the_deadline_of_a_held_key_that_runs",
    "holds::a_hold_counts_when_the_run_has_ended",
    "holds::a_held_key_that_runs_is_expedited_at_once",
    "holds::an_add_says_what_its_hold_changes",
    "holds::a_key_cools_down_after_each_run",
    "holds::a_dirty_key_is_reported_to_run_when_it_has_cooled_down",
    "holds::a_deadline_in_a_hold_comes_at_its_end",
    "holds::a_ready_key_that_fails_is_held",
    "holds::a_hold_ends_early_only_if_it_is_forgotten",
    "holds::a_held_key_is_a_leftover",
    "holds::holds_that_are_over_take_no_room",
    "run_rate::a_token_is_taken_when_a_key_is_handed_out",
    "run_rate::a_queue_that_is_shut_down_keeps_its_rate",
    "debounce::each_add_of_a_burst_moves_its_deadline",
    "debounce::a_burst_ends_at_its_maximum",
    "debounce::a_burst_moves_no_deadline_but_its_own",
    "debounce::a_burst_leaves_a_deadline_that_others_ask_for_too",
    "debounce::a_burst_that_is_taken_back_is_over",
    "debounce::an_add_that_need_not_wait_ends_its_burst",
    "why::a_hold_and_a_burst_differ_from_a_delay",
    "why::a_ready_key_waits_for_the_end_of_a_pause_and_for_a_token",
];
const OF_SUSPENSIONS: &[&str] = &[
    "suspend::a_suspended_key_runs_when_it_is_resumed",
    "suspend::a_timeout_ends_a_suspension_and_its_run_learns_so",
    "suspend::a_resume_before_the_end_of_the_run_is_not_lost",
    "suspend::a_resumed_key_that_nothing_asks_for_is_gone",
    "suspend::a_suspended_key_is_a_leftover",
    "suspend::cancel_ends_a_suspension",
    "poll::pauses_double_while_nothing_changes",
    "poll::what_cuts_a_pause_short_starts_them_again",
];
const OF_PANICS: &[&str] = &[
    "panicking_worker::its_key_comes_back_as_failed",
    "panicking_worker::its_key_is_kept_while_the_queue_shuts_down",
];
const OF_LOCK: &[&str] = &["lock::a_panic_under_the_lock_does_not_poison_it"];
const OF_PLACES: &[&str] = &["wake_obligations::a_call_that_finds_no_place_harms_no_other"];
const OF_FUTURES: &[&str] = &[
    "wake_obligations::a_getter_polled_without_a_wake_keeps_waiting",
    "cancelled_getters::a_woken_getter_passes_the_wake_on",
    "cancelled_getters::a_cancelled_timer_owner_hands_the_timer_over",
    "cancelled_getters::a_sleeping_getter_takes_no_wake_along",
    "cancelled_getters::every_woken_getter_passes_its_wake_on",
    "cancelled_getters::a_getter_cancelled_while_it_takes_a_key_gives_it_back",
    "cancelled_getters::a_place_is_given_back",
    "cancelled_getters::a_run_that_was_declared_over_is_completed",
    "drain_wakes::a_cancelled_wait_for_the_drain_harms_no_other",
    "room_wakes::a_cancelled_wait_for_room_passes_the_place_on",
];

/// The groups of rules about calls that wait.
const OF_CALLS: &[&str] = &[
    "wake_obligations",
    "timer_owner_hand_over",
    "cancelled_getters",
    "drain_wakes",
    "timed_getters",
    "pauses",
    "watch_wakes",
    "room_wakes",
    "run_rates",
    "limited_groups",
];

/// These rules, and no others, are not tried; of a queue without calls none of calls is.
#[track_caller]
fn assert_only<S: Subject + 'static>(waits: bool, groups: &[&[&str]]) {
    let is_of_calls = |it: &NotTried| OF_CALLS.contains(&it.rule.group);
    let not_tried = rules_not_tried::<S>();
    let (of_calls, of_steps): (Vec<_>, Vec<_>) = not_tried.iter().partition(|it| is_of_calls(it));
    if !waits {
        let all = RULES.iter().filter(|rule| OF_CALLS.contains(&rule.group));
        assert_eq!(of_calls.len(), all.count());
        let reason = |it: &&NotTried| it.reason == "the queue has no calls that wait";
        assert!(of_calls.iter().all(reason), "{of_calls:?}");
    }
    let tried_for = if waits {
        not_tried.iter().collect()
    } else {
        of_steps
    };
    let name = |it: &NotTried| format!("{}::{}", it.rule.group, it.rule.name);
    let names: BTreeSet<String> = tried_for.into_iter().map(name).collect();
    let expected = groups.concat().into_iter().map(String::from);
    assert_eq!(names, expected.collect());
}

#[test]
fn only_these_rules_are_not_tried_on_core() {
    assert_only::<Direct<Plain, Growable>>(
        false,
        &[
            OF_CAPACITY,
            OF_LEVELS,
            OF_AGING,
            OF_GROUPS,
            OF_PANICS,
            OF_LOCK,
        ],
    );
    assert_only::<Direct<WithSuspension, Fixed<64>>>(
        false,
        &[
            OF_GROWING, OF_LIMITS, OF_LEVELS, OF_AGING, OF_GROUPS, OF_PANICS, OF_LOCK,
        ],
    );
    assert_only::<Direct<Plain, Fixed<64>>>(
        false,
        &[
            OF_GROWING,
            OF_LIMITS,
            OF_LEVELS,
            OF_AGING,
            OF_GROUPS,
            OF_POLICIES,
            OF_SUSPENSIONS,
            OF_PANICS,
            OF_LOCK,
        ],
    );
    assert_only::<Direct<Plain, Growable, Figures, 64>>(
        false,
        &[OF_LEVELS, OF_AGING, OF_GROUPS, OF_PANICS, OF_LOCK],
    );
    assert_only::<Direct<Leveled, Growable>>(
        false,
        &[OF_CAPACITY, OF_AGING, OF_GROUPS, OF_PANICS, OF_LOCK],
    );
}

#[test]
fn only_these_rules_are_not_tried_on_threads() {
    let of_calls = [OF_FUTURES, OF_PLACES];
    let of_steps = [OF_CAPACITY, OF_LEVELS, OF_AGING, OF_GROUPS];
    let of_both = [&of_calls[..], &of_steps].concat();
    assert_only::<OnWorkQueue<Threads>>(true, &of_both);
    assert_only::<OnWorkQueue<Threads<Leveled>>>(
        true,
        &[&of_calls[..], &[OF_CAPACITY, OF_AGING, OF_GROUPS]].concat(),
    );
}

#[test]
fn only_these_rules_are_not_tried_on_tasks() {
    assert_only::<OnWorkQueue<Tasks>>(true, &[OF_CAPACITY, OF_LEVELS, OF_AGING, OF_GROUPS]);
    assert_only::<OnWorkQueue<Tasks<Leveled>>>(true, &[OF_CAPACITY, OF_AGING, OF_GROUPS]);
    assert_only::<OnWorkQueue<Tasks<Grouped>>>(true, &[OF_CAPACITY, OF_LEVELS, OF_AGING]);
    assert_only::<OnWorkQueue<Tasks<Aged>>>(true, &[OF_CAPACITY, OF_GROUPS]);
}

#[test]
fn only_these_rules_are_not_tried_on_embassy() {
    // Its room is in the type.
    let of_room = [OF_GROWING, OF_LIMITS, OF_LIMITED_CALLS];
    let with = |more: &[&'static [&'static str]]| [&of_room[..], more].concat();
    assert_only::<OnWorkQueue<Embassy<64, WithSuspension>>>(
        true,
        &with(&[OF_LEVELS, OF_AGING, OF_GROUPS]),
    );
    assert_only::<OnWorkQueue<Embassy<64, WithSuspension<Levels<3>>>>>(
        true,
        &with(&[OF_AGING, OF_GROUPS]),
    );
}

#[test]
fn a_rule_that_is_not_tried_says_why() {
    let not_tried = rules_not_tried::<Direct<WithSuspension, Fixed<2>>>();
    let why = not_tried.iter().find(|it| it.rule.group == "fifo");
    let expected = "fifo::keys_come_out_in_the_order_in_which_they_became_ready: \
                    there is room for 2 keys, which is too little";
    assert_eq!(why.map(NotTried::to_string).as_deref(), Some(expected));
}

/// Core's guard would keep the rules of panics, whatever that of the runtime does.
#[test]
fn what_a_binding_does_not_override_is_not_tried() {
    let not_tried = rules_not_tried::<OnWorkQueue<Bare<Plain, Growable>>>();
    let mut of_panics = not_tried
        .iter()
        .filter(|it| it.rule.group == "panicking_worker");
    let reason = "the binding does not override panic_at_work";
    assert!(of_panics.all(|it| it.reason == reason), "{not_tried:?}");
    assert_eq!(
        not_tried.iter().filter(|it| it.reason == reason).count(),
        OF_PANICS.len()
    );
}
