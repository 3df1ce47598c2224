//! Every history of a few steps over two keys, against the reference model.

use requeue_core::priority::{Plain, WithSuspension};
use requeue_core::storage::{Fixed, Growable};
use requeue_proptest::histories::{Bounds, Operation, Scope, explore};
use requeue_proptest::rounds;
use requeue_proptest::subject::{Configuration, Direct, Subject};

/// So many states that the soak comes to their end.
const BOUNDS: Bounds = Bounds {
    failures: 1,
    tickets: 2,
    sleepers: 1,
    drains: 1,
};

/// The queues that are explored, beside their capacities: how many due keys an operation makes
/// ready, how many failure records are kept of what grows, and whether keys are held.
fn setups(capacity: Option<usize>) -> Vec<Configuration> {
    let setup = |(due_keys_max, failure_records_max)| Configuration {
        due_keys_max,
        failure_records_max,
        ..Configuration::exponential()
    };
    let setups = match capacity {
        // No more than one key can be due.
        Some(1) => &[(1, usize::MAX)][..],
        Some(_) => &[(1, usize::MAX), (2, usize::MAX)],
        None => &[(1, usize::MAX), (2, 1)],
    };
    let mut setups: Vec<Configuration> = setups.iter().copied().map(setup).collect();
    if capacity == Some(2) {
        let mut held = setups[0].clone();
        held.policy.cool_down_ns = 1;
        held.policy.hold_failures = true;
        setups.push(held);
    }
    setups
}

/// The depth in an ordinary test, and that in the soak.
const DEPTHS: [usize; 2] = [3, 5];
/// The same of states: in the soak until there is no new one.
const DEPTHS_OF_STATES: [usize; 2] = [5, usize::MAX];

#[expect(clippy::panic, reason = "this is how a test fails")]
fn explored<S: Subject + 'static>(
    name: &str,
    bounds: Option<Bounds>,
    [depth, in_soak]: [usize; 2],
) {
    let is_soak = rounds(1) > 1;
    let scope = Scope {
        steps: Operation::explored(2),
        depth: if is_soak { in_soak } else { depth },
        bounds,
    };
    for setup in setups(S::new(&Configuration::exponential()).capacity()) {
        let Configuration {
            due_keys_max,
            failure_records_max: records,
            ..
        } = setup;
        match explore::<S>(&setup, &scope) {
            Ok(explored) => println!("explored: {name}, {due_keys_max} released: {explored}"),
            Err(failure) => panic!("{name}, {due_keys_max}, {records}:\n{failure}"),
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
    core_fixed_1: Direct<WithSuspension, Fixed<1>>;
    core_fixed_2: Direct<WithSuspension, Fixed<2>>;
    core_growable: Direct<Plain, Growable>;
}
