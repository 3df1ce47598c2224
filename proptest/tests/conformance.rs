//! The whole suite on each of our queues.

use requeue_core::{Fixed, Growable, Levels, NoMetrics, RandomState};
use requeue_proptest::Model;
use requeue_proptest::conformance;
use requeue_proptest::conformance::drawn;
use requeue_proptest::subject::{Bare, Direct, Embassy, OnWorkQueue, Tasks, Threads};

/// What fails for one queue is tried on all.
const REGRESSIONS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/proptest-regressions/suite.txt"
);

const HISTORIES: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/proptest-regressions/histories.txt"
);

/// The state machine, which leaves waiting to others, with room for so many keys.
macro_rules! core_fixed {
    ($($name:ident: $capacity:literal;)+) => {
        $(mod $name {
            use super::*;
            conformance!(Direct<Fixed<$capacity>>, steps);
        })+
    };
}

core_fixed! {
    core_fixed_1: 1;
    core_fixed_2: 2;
    core_fixed_3: 3;
    core_fixed_4: 4;
    core_fixed_64: 64;
}

mod core_growable {
    use super::*;
    conformance!(Direct<Growable>, steps);
}

mod std {
    use super::*;
    conformance!(OnWorkQueue<Threads>);
}

mod tokio {
    use super::*;
    conformance!(OnWorkQueue<Tasks>);
}

mod embassy {
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
    core_fixed_64_with_wide_numbers: Direct<Fixed<64, u16>>;
    core_fixed_3_without_metrics: Direct<Fixed<3>, NoMetrics>;
    core_growable_without_metrics: Direct<Growable, NoMetrics>;
    work_queue_fixed_2: OnWorkQueue<Bare<Fixed<2>>>;
    work_queue_growable: OnWorkQueue<Bare<Growable>>;
    embassy_3: OnWorkQueue<Embassy<3>>;
    core_fixed_4_with_levels: Direct<Fixed<4, u8, Levels<3>>>;
    core_fixed_3_with_levels_without_metrics: Direct<Fixed<3, u8, Levels<3>>, NoMetrics>;
}

/// Variants of more than one priority level, on which the rules of priorities are tried besides.
macro_rules! levels {
    ($($name:ident: $subject:ty;)+) => {
        $(mod $name {
            use super::*;
            conformance!($subject, steps);
        })+
    };
}

type Leveled = Growable<RandomState, Levels<3>>;

levels! {
    core_fixed_64_with_levels: Direct<Fixed<64, u8, Levels<3>>>;
    core_growable_with_levels: Direct<Leveled>;
    std_with_levels: OnWorkQueue<Threads<Leveled>>;
    tokio_with_levels: OnWorkQueue<Tasks<Leveled>>;
    embassy_with_levels: OnWorkQueue<Embassy<64, Levels<3>>>;
}

#[test]
fn core_fixed_20_crowded() {
    drawn::operations_on_many_keys::<Direct<Fixed<20>>>(REGRESSIONS);
}

#[test]
fn histories_on_tokio_with_levels() {
    drawn::histories_of_calls::<OnWorkQueue<Tasks<Leveled>>>(HISTORIES);
}

#[test]
fn histories_on_embassy_with_room_for_two_keys() {
    drawn::histories_of_calls::<OnWorkQueue<Embassy<2>>>(HISTORIES);
}
