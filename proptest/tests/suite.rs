//! Drawn sequences of operations, on each of our queues.

use requeue_core::{Fixed, Growable, NoMetrics};
use requeue_proptest::subject::{Bare, Direct, OnWorkQueue, Threads};
use requeue_proptest::{Model, suite};

/// What fails for one queue is tried on all.
const REGRESSIONS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/proptest-regressions/suite.txt"
);

macro_rules! suite {
    ($($name:ident: $subject:ty,)+) => {
        $(
            #[test]
            fn $name() {
                suite::run::<$subject>(REGRESSIONS);
            }
        )+
    };
}

suite! {
    core_fixed_1: Direct<Fixed<1>>,
    core_fixed_2: Direct<Fixed<2>>,
    core_fixed_3: Direct<Fixed<3>>,
    core_fixed_4: Direct<Fixed<4>>,
    core_fixed_8: Direct<Fixed<8>>,
    core_fixed_64_with_wide_numbers: Direct<Fixed<64, u16>>,
    core_fixed_3_without_metrics: Direct<Fixed<3>, NoMetrics>,
    core_growable: Direct<Growable>,
    core_growable_without_metrics: Direct<Growable, NoMetrics>,
    work_queue_fixed_2: OnWorkQueue<Bare<Fixed<2>>>,
    work_queue_growable: OnWorkQueue<Bare<Growable>>,
    std: OnWorkQueue<Threads>,
    the_model_itself: Model,
}
