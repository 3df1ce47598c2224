//! What a shutdown hands back and another queue restores goes on as if there had been no shutdown.
//! This is said of the model and of one queue of core. The drawn histories of the suite compare
//! every other queue with the model, in what a shutdown hands back and in what is restored.

use std::time::Duration;

use proptest::prelude::*;
use requeue_core::priority::Levels;
use requeue_core::storage::Growable;
use requeue_core::{Action, AddOptions, Merge};
use requeue_proptest::histories::{Operation, at_once};
use requeue_proptest::limiter::LimiterSpec;
use requeue_proptest::subject::{Configuration, Direct, Key, Left, Operate, Subject};
use requeue_proptest::{Model, rounds};

const KEYS: Key = 6;

/// Adds, runs from their begin to their end, and what time and failures do to them.
fn ops() -> impl Strategy<Value = Vec<Operation>> {
    at_once(0..80, KEYS, false, Duration::from_millis(1)).prop_map(|mut drawn| {
        drawn.retain(|operation| match operation {
            Operation::Add(_)
            | Operation::AddAfter(..)
            | Operation::AddRateLimited(_)
            | Operation::Forget(_)
            | Operation::Advance(_) => true,
            Operation::AddWith(_, options) => {
                options.merge == Merge::Earliest && options.slack == 0
            }
            Operation::Complete(_, action) => matches!(
                action,
                Action::Release
                    | Action::Success
                    | Action::Retry
                    | Action::GiveUp
                    | Action::RequeueAfter(_)
                    | Action::Snooze(_)
            ),
            _ => false,
        });
        drawn
    })
}

/// What an operation says that does not depend on the time of day.
fn apply(subject: &mut dyn Subject, operation: &Operation) -> String {
    match *operation {
        Operation::Complete(_, action) => match subject.try_get() {
            Some(handed) => format!("{handed}: {:?}", subject.finish(handed.ticket, action)),
            None => String::from("no key"),
        },
        Operation::Advance(by) => {
            subject.advance(by);
            String::new()
        }
        ref other => subject.apply(other).to_string(),
    }
}

/// The keys that a shutdown hands back, in order.
fn shut_down(subject: &mut dyn Subject) -> Vec<Left> {
    subject.shut_down();
    let mut leftovers: Vec<Left> = std::iter::from_fn(|| subject.take_ready()).collect();
    leftovers.extend(std::iter::from_fn(|| subject.take_delayed()));
    leftovers
}

/// Makes a queue that is not shut down into what the leftovers say: a ready key has lost its delay,
/// whose level it keeps, and a failure record without work is not handed back.
fn settle_for(model: &mut Model, leftovers: &[Left]) {
    for left in leftovers.iter().filter(|left| left.left.is_zero()) {
        let _ = model.cancel_delay(left.key);
        let at_its_level = AddOptions {
            priority: Some(left.priority),
            ..AddOptions::new()
        };
        assert!(model.add_with(left.key, at_its_level).is_ok());
    }
    for key in (1..=KEYS).filter(|key| leftovers.iter().all(|left| left.key != *key)) {
        let _ = model.forget(key);
    }
}

fn goes_on<S: Subject>(before: &[Operation], after: &[Operation]) -> Result<(), TestCaseError> {
    let setup = Configuration::new(LimiterSpec::Exponential {
        base_ns: 1_000_000,
        max_ns: 5_000_000,
    });
    let mut old = S::new(&setup);
    let mut model = Model::new(&setup, None).with_abilities(&old.abilities());
    for op in before {
        prop_assert_eq!(apply(&mut old, op), apply(&mut model, op));
    }
    let leftovers = shut_down(&mut old);
    settle_for(&mut model, &leftovers);

    let mut new = S::new(&setup);
    for left in leftovers {
        prop_assert!(new.restore(left).is_ok());
        new.assert_valid();
    }
    for op in after {
        prop_assert_eq!(apply(&mut new, op), apply(&mut model, op), "{:?}", op);
        new.assert_valid();
    }
    Ok(())
}

#[test]
fn what_was_handed_back_goes_on() {
    let any = ProptestConfig::default();
    let cases = any.cases * rounds(1);
    proptest!(ProptestConfig { cases, ..any }, |(before in ops(), after in ops())| {
        goes_on::<Model>(&before, &after)?;
        goes_on::<Direct<Levels<3>, Growable>>(&before, &after)?;
    });
}
