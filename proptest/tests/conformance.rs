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
    tokio_with_aging: OnWorkQueue<Tasks<Groups<u8, Aged>>>;
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
fn not_tried<S: Subject + 'static>(name: &str) -> String {
    let mut reasons = BTreeMap::new();
    for NotTried { reason, .. } in rules_not_tried::<S>() {
        *reasons.entry(reason).or_insert(0) += 1;
    }
    let lines = reasons.iter();
    let lines = lines.map(|(why, count)| format!("  {count}: {why}\n"));
    format!("{name}\n{}\n", lines.collect::<String>())
}

#[test]
fn only_these_rules_are_not_tried() {
    let queues = [
        not_tried::<Direct<Plain, Growable>>("core, growable"),
        not_tried::<Direct<Plain, Growable, Figures, 64>>("core, growable, for 64 keys"),
        not_tried::<Direct<Leveled, Growable>>("core, growable, with levels"),
        not_tried::<Direct<WithSlack<WithSuspension>, Fixed<64>>>("core, fixed"),
        not_tried::<Direct<Plain, Fixed<64>>>("core, fixed, without policy"),
        not_tried::<Direct<Groups<u8, Plain, 2>, Fixed<64>>>("core, fixed, for two groups"),
        not_tried::<OnWorkQueue<Tasks>>("Tokio"),
        not_tried::<OnWorkQueue<Tasks<Grouped>>>("Tokio, with groups"),
        not_tried::<OnWorkQueue<Tasks<Aged>>>("Tokio, with aging"),
        not_tried::<OnWorkQueue<Embassy<64, WithSlack<WithSuspension>>>>("Embassy"),
        not_tried::<OnWorkQueue<Threads<Leveled>>>("threads, with levels"),
        not_tried::<OnWorkQueue<Loops<64, WithSuspension<WithSlack>>>>("bare loops"),
    ];
    assert_eq!(queues.concat(), include_str!("not_tried.txt"));
}

#[test]
fn a_rule_that_is_not_tried_says_why() {
    let not_tried = rules_not_tried::<Direct<WithSuspension, Fixed<2>>>();
    let why = not_tried.iter().find(|it| it.rule.group == "order");
    let expected = "order::keys_come_out_in_the_order_in_which_they_became_ready: \
                    there is room for 2 keys, which is too little";
    assert_eq!(why.map(NotTried::to_string).as_deref(), Some(expected));
}
