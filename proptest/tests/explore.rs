//! Every history of a few steps over two keys, against the reference model.

use std::time::Duration;

use requeue_core::{Action, Fixed, Growable};
use requeue_proptest::histories::{Bounds, Scope, Step, explore};
use requeue_proptest::rounds;
use requeue_proptest::subject::{Direct, Setup, Subject};

/// Every kind of step that a program of one thread can take.
fn steps() -> Vec<Step> {
    let delay = Duration::from_nanos;
    let mut steps = vec![
        Step::Get,
        Step::LookAgain(0),
        Step::Leave(0),
        Step::Complete(0, Action::Release),
        Step::Complete(0, Action::Success),
        Step::Complete(0, Action::Retry),
        Step::Complete(0, Action::RequeueAfter(delay(1))),
        Step::Complete(0, Action::RetryAfter(delay(2))),
        Step::Next(0, Action::Release),
        Step::Advance(delay(1)),
        Step::ShutDown,
        Step::BeginDrain,
        Step::TakeDelayed,
        Step::TakeReady,
    ];
    for key in 1..=2 {
        steps.extend([
            Step::Add(key),
            Step::AddAfter(key, delay(1)),
            Step::AddAfter(key, delay(2)),
            Step::AddRateLimited(key),
            Step::Forget(key),
            Step::DoneKey(key),
        ]);
    }
    steps
}

/// So many states that the soak comes to their end.
const BOUNDS: Bounds = Bounds {
    failures: 1,
    tickets: 2,
    sleepers: 1,
    drains: 1,
};

/// The queues that are explored: one more parameter of a queue is one more loop here.
fn setups() -> Vec<Setup> {
    let setup = |failure_records_max| Setup {
        failure_records_max,
        ..Setup::exponential()
    };
    [usize::MAX, 1].map(setup).to_vec()
}

/// The depth in an ordinary test, and that in the soak.
const DEPTHS: [usize; 2] = [4, 5];
/// The same of states: in the soak until there is no new one.
const DEPTHS_OF_STATES: [usize; 2] = [5, usize::MAX];

fn explored<S: Subject + 'static>(
    name: &str,
    bounds: Option<Bounds>,
    [depth, in_soak]: [usize; 2],
) {
    let is_soak = rounds(1) > 1;
    let scope = Scope {
        steps: steps(),
        depth: if is_soak { in_soak } else { depth },
        bounds,
    };
    // A queue with a capacity keeps as many failures as fit.
    let has_capacity = S::new(&Setup::exponential()).capacity().is_some();
    let setups = setups().into_iter();
    for setup in setups.filter(|it| !has_capacity || it.failure_records_max == usize::MAX) {
        match explore::<S>(&setup, &scope) {
            Ok(explored) => println!("explored: {name}: {explored}"),
            Err(failure) => panic!("{name}, {setup:?}:\n{failure}"),
        }
    }
}

macro_rules! explored {
    ($($name:ident: $subject:ty;)+) => {$(
        mod $name {
            use super::*;

            #[test]
            fn every_history() {
                explored::<$subject>(stringify!($name), None, DEPTHS);
            }

            #[test]
            fn every_state() {
                explored::<$subject>(stringify!($name), Some(BOUNDS), DEPTHS_OF_STATES);
            }
        }
    )+};
}

explored! {
    core_fixed_1: Direct<Fixed<1>>;
    core_fixed_2: Direct<Fixed<2>>;
    core_growable: Direct<Growable>;
}
