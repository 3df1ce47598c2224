//! The whole suite on each of our queues.

use ::std::collections::BTreeMap;

use requeue_core::priority::{Aging, Groups, Levels, Plain, WithSlack, WithSuspension};
use requeue_core::storage::{Fixed, Growable};
use requeue_proptest::conformance::{NotTried, drawn, rules_not_tried};
use requeue_proptest::histories::{Crowd, Draw};
use requeue_proptest::subject::{Direct, Embassy, Loops, OnWorkQueue, Subject, Tasks, Threads};
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

type Leveled = Levels<3>;
type Aged = Aging<Levels<3>>;
type Grouped = Groups<u8>;
type GroupedLevels = Groups<u8, Levels<3>>;
type GovernedLevels = WithSlack<WithSuspension<Levels<3>>>;
type AgingGroups = Groups<u8, Aging<GovernedLevels>, 4>;

macro_rules! conform {
    ($($name:ident: $subject:ty;)+) => {
        $(mod $name {
            use super::*;
            requeue_proptest::conformance!($subject);
        })+
    };
}

// The state machine, which leaves waiting to others, without a policy too, as most queues of a
// fixed size are; the runtimes; the model.
conform! {
    core_fixed_1: Direct<WithSlack<WithSuspension>, Fixed<1>>;
    core_fixed_2: Direct<WithSlack<WithSuspension>, Fixed<2>>;
    core_fixed_3: Direct<Plain, Fixed<3>>;
    core_fixed_64: Direct<WithSlack<WithSuspension>, Fixed<64>>;
    core_fixed_64_without_policy: Direct<Plain, Fixed<64>>;
    core_fixed_64_with_levels: Direct<GovernedLevels, Fixed<64>>;
    core_fixed_64_with_groups: Direct<Groups<u8, WithSlack<WithSuspension>>, Fixed<64>>;
    core_fixed_64_with_aging: Direct<Aging<GovernedLevels>, Fixed<64>>;
    core_growable: Direct<Plain, Growable>;
    core_growable_for_64: Direct<Plain, Growable, Figures, 64>;
    core_growable_with_levels: Direct<Leveled, Growable>;
    core_growable_with_aging: Direct<Aged, Growable>;
    core_growable_with_groups: Direct<GroupedLevels, Growable>;
    core_growable_with_groups_and_aging: Direct<AgingGroups, Growable>;
    std: OnWorkQueue<Threads>;
    std_for_64: OnWorkQueue<Threads, 64>;
    std_with_levels: OnWorkQueue<Threads<Leveled>>;
    std_with_groups: OnWorkQueue<Threads<Grouped>>;
    std_with_aging: OnWorkQueue<Threads<Aged>>;
    tokio: OnWorkQueue<Tasks>;
    tokio_for_64: OnWorkQueue<Tasks, 64>;
    tokio_with_levels: OnWorkQueue<Tasks<Leveled>>;
    tokio_with_groups: OnWorkQueue<Tasks<Grouped>>;
    tokio_with_aging: OnWorkQueue<Tasks<Aged>>;
    embassy: OnWorkQueue<Embassy<64, WithSlack<WithSuspension>>>;
    embassy_without_policy: OnWorkQueue<Embassy<64, Plain, ()>>;
    embassy_with_levels: OnWorkQueue<Embassy<64, GovernedLevels>>;
    embassy_with_groups: OnWorkQueue<Embassy<64, Groups<u8, WithSuspension>>>;
    embassy_with_aging: OnWorkQueue<Embassy<64, WithSuspension<Aging<Levels<3>>>>>;
    bare: OnWorkQueue<Loops<64, WithSuspension<WithSlack>>>;
    bare_without_policy: OnWorkQueue<Loops<64>>;
    bare_with_levels: OnWorkQueue<Loops<64, GovernedLevels>>;
    bare_with_groups: OnWorkQueue<Loops<64, Groups<u8, WithSuspension>>>;
    model: Model;
}

macro_rules! drawn {
    ($draw:expr, $regressions:ident: $($name:ident: $subject:ty;)+) => {
        $(
            #[test]
            fn $name() {
                drawn::<$subject>($draw, $regressions);
            }
        )+
    };
}

// Variants that no combination of options has, on which only histories are drawn.
drawn! { Draw::Operations(Crowd::Few), REGRESSIONS:
    core_fixed_64_with_wide_numbers: Direct<WithSlack<WithSuspension>, Fixed<64, u16>>;
    core_fixed_64_with_groups_without_policy: Direct<Grouped, Fixed<64>>;
}

drawn! { Draw::Operations(Crowd::Many), REGRESSIONS:
    core_fixed_20_crowded: Direct<WithSlack<WithSuspension>, Fixed<20>>;
}

drawn! { Draw::Calls, HISTORIES:
    histories_on_embassy_with_room_for_two_keys: OnWorkQueue<Embassy<2, WithSuspension>>;
    histories_on_std_with_room_for_two_keys: OnWorkQueue<Threads<WithSuspension, Fixed<2>>>;
    histories_on_tokio_with_room_for_two_keys: OnWorkQueue<Tasks<WithSuspension, Fixed<2>>>;
    histories_on_std_for_at_most_two_keys: OnWorkQueue<Threads, 2>;
    histories_on_tokio_for_at_most_two_keys: OnWorkQueue<Tasks, 2>;
}

/// Why rules are not tried on a queue, and how many of them.
#[track_caller]
fn assert_not_tried<S: Subject + 'static>(expected: &[(&str, usize)]) {
    let mut reasons = BTreeMap::new();
    for NotTried { reason, .. } in rules_not_tried::<S>() {
        *reasons.entry(reason).or_insert(0) += 1;
    }
    let expected = expected
        .iter()
        .map(|(why, count)| (String::from(*why), *count));
    assert_eq!(reasons, expected.collect());
}

const NO_LIMIT: (&str, usize) = ("how many keys fit into the queue cannot be changed", 2);
const NO_RECORDS: (&str, usize) = ("the queue has a capacity, and no limit to its records", 1);
const NO_LEVELS: (&str, usize) = ("the queue has too few priority levels", 8);
const NO_AGING: (&str, usize) = ("the keys of the queue do not age", 4);
const NO_GROUPS: (&str, usize) = ("the queue has no groups", 5);
const NO_POLICY: (&str, usize) = ("the queue can have no policy", 23);
const NO_SLACK: (&str, usize) = ("the delays of the queue are exact", 7);
const NO_SUSPENSION: (&str, usize) = ("the queue suspends no keys", 5);
const NO_PANICS: (&str, usize) = ("the queue has no workers that panic", 2);
const NO_LOCK: (&str, usize) = ("the queue has no lock", 1);
const NO_CALLS: (&str, usize) = ("the queue has no calls that wait", 63);

#[test]
fn only_these_rules_are_not_tried_on_core() {
    let on_core = [NO_PANICS, NO_LOCK, NO_CALLS, NO_GROUPS, NO_AGING];
    let with = |more: &[_]| [&on_core, more].concat();
    assert_not_tried::<Direct<Plain, Growable>>(&with(&[NO_LEVELS]));
    assert_not_tried::<Direct<Plain, Growable, Figures, 64>>(&with(&[NO_LEVELS]));
    assert_not_tried::<Direct<Leveled, Growable>>(&with(&[]));
    let of_fixed = [NO_RECORDS, NO_LIMIT, NO_LEVELS];
    assert_not_tried::<Direct<WithSlack<WithSuspension>, Fixed<64>>>(&with(&of_fixed));
    let of_plain = [&of_fixed[..], &[NO_POLICY, NO_SLACK, NO_SUSPENSION]].concat();
    assert_not_tried::<Direct<Plain, Fixed<64>>>(&with(&of_plain));
}

#[test]
fn only_these_rules_are_not_tried_on_runtimes() {
    // Getters wait for groups, too.
    let no_groups = (NO_GROUPS.0, 8);
    assert_not_tried::<OnWorkQueue<Tasks>>(&[NO_LEVELS, NO_AGING, no_groups]);
    assert_not_tried::<OnWorkQueue<Tasks<Grouped>>>(&[NO_LEVELS, NO_AGING]);
    assert_not_tried::<OnWorkQueue<Tasks<Aged>>>(&[no_groups]);
    // Its room is in the type.
    let no_limit = (NO_LIMIT.0, 3);
    let of_embassy = [NO_RECORDS, no_limit, NO_LEVELS, NO_AGING, no_groups];
    assert_not_tried::<OnWorkQueue<Embassy<64, WithSlack<WithSuspension>>>>(&of_embassy);
    let of_threads = [
        NO_AGING,
        no_groups,
        ("its calls cannot be cancelled", 10),
        ("its calls run by themselves", 3),
    ];
    assert_not_tried::<OnWorkQueue<Threads<Leveled>>>(&of_threads);
    // A loop waits for keys and for the end, and never for what it does itself.
    let of_loops = [
        NO_RECORDS,
        NO_LIMIT,
        NO_LEVELS,
        NO_AGING,
        no_groups,
        ("its calls cannot be cancelled", 9),
        ("its calls run by themselves", 3),
        ("the queue has no call AddWait", 7),
        ("the queue has no call CancelAndWait", 1),
        ("the queue has no call DrainTimeout", 1),
        ("the queue has no call Flush", 3),
        ("the queue has no call WaitIdle", 3),
        ("the queue has no call WaitSettled", 1),
    ];
    assert_not_tried::<OnWorkQueue<Loops<64, WithSuspension<WithSlack>>>>(&of_loops);
}

#[test]
fn a_rule_that_is_not_tried_says_why() {
    let not_tried = rules_not_tried::<Direct<WithSuspension, Fixed<2>>>();
    let why = not_tried.iter().find(|it| it.rule.group == "order");
    let expected = "order::keys_come_out_in_the_order_in_which_they_became_ready: \
                    there is room for 2 keys, which is too little";
    assert_eq!(why.map(NotTried::to_string).as_deref(), Some(expected));
}
