//! Drawn sequences of operations, on each of our queues.

use std::time::Duration;

use requeue_core::{Fixed, Growable, Levels, NoMetrics, RandomState};
use requeue_proptest::Model;
use requeue_proptest::subject::{Bare, Direct, Embassy, OnWorkQueue, Setup, Tasks, Threads};
use requeue_proptest::suite::{self, Crowd, Looks, Op};

/// What fails for one queue is tried on all.
const REGRESSIONS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/proptest-regressions/suite.txt"
);

macro_rules! suite {
    ($($name:ident: $subject:ty, $crowd:ident;)+) => {
        $(
            #[test]
            fn $name() {
                suite::run::<$subject>(Crowd::$crowd, REGRESSIONS);
            }
        )+
    };
}

suite! {
    core_fixed_1: Direct<Fixed<1>>, Few;
    core_fixed_2: Direct<Fixed<2>>, Few;
    core_fixed_3: Direct<Fixed<3>>, Few;
    core_fixed_4: Direct<Fixed<4>>, Few;
    core_fixed_8: Direct<Fixed<8>>, Few;
    core_fixed_64_with_wide_numbers: Direct<Fixed<64, u16>>, Few;
    core_fixed_64_crowded: Direct<Fixed<64>>, Many;
    core_fixed_20_crowded: Direct<Fixed<20>>, Many;
    core_fixed_3_without_metrics: Direct<Fixed<3>, NoMetrics>, Few;
    core_growable: Direct<Growable>, Few;
    core_growable_crowded: Direct<Growable>, Many;
    core_growable_without_metrics: Direct<Growable, NoMetrics>, Few;
    work_queue_fixed_2: OnWorkQueue<Bare<Fixed<2>>>, Few;
    work_queue_growable: OnWorkQueue<Bare<Growable>>, Few;
    std: OnWorkQueue<Threads>, Few;
    tokio: OnWorkQueue<Tasks>, Few;
    embassy_3: OnWorkQueue<Embassy<3>>, Few;
    the_model_itself: Model, Few;
    core_fixed_4_with_levels: Direct<Fixed<4, u8, Levels<3>>>, Few;
    core_fixed_64_with_levels: Direct<Fixed<64, u8, Levels<3>>>, Many;
    core_growable_with_levels: Direct<Growable<RandomState, Levels<3>>>, Few;
    core_growable_with_levels_crowded: Direct<Growable<RandomState, Levels<3>>>, Many;
    core_fixed_3_with_levels_without_metrics: Direct<Fixed<3, u8, Levels<3>>, NoMetrics>, Few;
    std_with_levels: OnWorkQueue<Threads<Growable<RandomState, Levels<3>>>>, Few;
    tokio_with_levels: OnWorkQueue<Tasks<Growable<RandomState, Levels<3>>>>, Few;
    embassy_4_with_levels: OnWorkQueue<Embassy<4, Levels<3>>>, Few;
}

/// Found by the suite: the ready list was damaged where ready keys and memories share their links.
#[test]
fn a_delay_leaves_a_ready_key_in_its_place() {
    let ops = [
        Op::Add(1),
        Op::Add(2),
        Op::AddAfter(2, Duration::from_nanos(1)),
        Op::TryGet,
        Op::TryGet,
    ];
    let setup = Setup::exponential();
    assert_eq!(
        suite::check::<Direct<Fixed<2>>>(&setup, &ops, Looks::Always),
        Ok(())
    );
    assert_eq!(
        suite::check::<Direct<Growable>>(&setup, &ops, Looks::Always),
        Ok(())
    );
}
