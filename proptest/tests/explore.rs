//! Every history of a few steps over two keys, against the reference model.

use std::time::Duration;

use requeue_core::priority::{Plain, WithSuspension};
use requeue_core::storage::{Fixed, Growable};
use requeue_core::{Action, AddOptions, Merge};
use requeue_proptest::histories::{Bounds, Operation, Run, Scope, Sleeper, explore};
use requeue_proptest::rounds;
use requeue_proptest::subject::{Configuration, Direct, Key, Left, Subject, left_over};

/// Every kind of step that a program of one thread can take.
fn steps() -> Vec<Operation> {
    let delay = Duration::from_nanos;
    let mut steps = vec![
        Operation::Get(Sleeper::New),
        Operation::LookAgain(0),
        Operation::Leave(Sleeper::Pick(0)),
        Operation::Complete(Run::Pick(0), Action::Release),
        Operation::Complete(Run::Pick(0), Action::Success),
        Operation::Complete(Run::Pick(0), Action::Retry),
        Operation::Complete(Run::Pick(0), Action::GiveUp),
        Operation::Complete(Run::Pick(0), Action::RequeueAfter(delay(1))),
        Operation::Complete(Run::Pick(0), Action::Snooze(delay(2))),
        Operation::Complete(Run::Pick(0), Action::Suspend(delay(1))),
        Operation::Next(Run::Pick(0), Action::Release, Sleeper::New),
        Operation::Advance(delay(1)),
        Operation::ShutDown,
        Operation::BeginDrain,
        Operation::TakeDelayed,
        Operation::TakeReady,
        Operation::ExpediteAll,
        Operation::Pause,
        Operation::Unpause,
        Operation::RetainBelow(2),
        Operation::Snapshot,
    ];
    for key in 1..=2 {
        steps.extend([
            Operation::Add(key),
            Operation::AddAfter(key, delay(1)),
            Operation::AddAfter(key, delay(2)),
            Operation::AddRateLimited(key),
            Operation::AddDebounced(key, delay(1), delay(2)),
            Operation::Forget(key),
            Operation::DoneKey(key),
            Operation::Why(key),
            Operation::CancelKey(key),
            Operation::CancelDelay(key),
            Operation::Expedite(key),
            Operation::Suspend(key, delay(2)),
            Operation::Resume(key),
            Operation::Restore(left(key)),
            Operation::AddWith(key, replacing(key)),
        ]);
    }
    steps
}

/// A key that has failed once: the first is ready, the second delayed.
fn left(key: Key) -> Left {
    left_over(key, Duration::from_nanos(u64::from(key) - 1), 1, 0)
}

/// An add that replaces a deadline: for the first key now, for the second by one 2 ns away.
const fn replacing(key: Key) -> AddOptions {
    AddOptions {
        after: match key {
            1 => None,
            _ => Some(Duration::from_nanos(2)),
        },
        merge: Merge::Replace,
        ..AddOptions::new()
    }
}

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
        steps: steps(),
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
