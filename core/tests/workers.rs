//! How workers judge the result of a run, and which hooks they call.
#![cfg(feature = "alloc")]
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::cell::Cell;
use std::sync::Mutex;
use std::time::Duration;

use requeue_core::binding::Runs;
use requeue_core::{Action, Failure, Instant, RunContext, Workers};

type Result = std::result::Result<Action, Failure<&'static str>>;

const MINUTE: Duration = Duration::from_secs(60);

/// A queue whose clock the test moves, and in which nothing else happens.
struct Keys(Cell<Instant>);

impl Runs<u8> for Keys {
    fn now(&self) -> Instant {
        self.0.get()
    }

    fn holds(&self, _: &u8) -> bool {
        true
    }
}

/// Judges the result of a key that had failed `requeues` times before, and reports it.
fn run(workers: &Workers<'_, u8, &'static str>, requeues: u32, result: Result) -> Action {
    let keys = Keys(Cell::new(Instant::EPOCH));
    run_in(&keys, workers, requeues, result)
}

fn run_in(
    keys: &Keys,
    workers: &Workers<'_, u8, &'static str>,
    requeues: u32,
    result: Result,
) -> Action {
    let begun = workers.begin(&7, RunContext::new(requeues.saturating_add(1)), keys);
    let (action, report) = workers.judge(&7, begun, result, keys);
    if let Some(report) = report {
        workers.report(&7, report);
    }
    action
}

#[test]
fn a_run_that_did_not_fail_ends_with_its_action_and_calls_no_hook() {
    let workers = Workers::new(1)
        .max_retries(0)
        .on_error(|_: &u8, failure, _| unreachable!("{failure}"))
        .on_give_up(|_, failure| unreachable!("{failure}"));
    for action in [
        Action::Success,
        Action::RequeueAfter(MINUTE),
        Action::RetryAfter(MINUTE),
        Action::Release,
    ] {
        assert_eq!(run(&workers, 9, Ok(action)), action);
    }
}

#[test]
fn each_failure_is_reported_and_the_last_one_gives_the_key_up() {
    let log = Mutex::new(Vec::new());
    let note = |line: String| log.lock().unwrap().push(line);
    let workers = Workers::new(1)
        .max_retries(2)
        .on_error(|key, failure, attempt| note(format!("{key}, {attempt}: {failure}")))
        .on_give_up(|key, failure| note(format!("gave {key} up: {failure}")));
    assert_eq!(run(&workers, 0, Err(Failure::Error("down"))), Action::Retry);
    assert_eq!(run(&workers, 1, Ok(Action::Retry)), Action::Retry);
    let panicked = Err(Failure::Panic(Box::new("index 3")));
    assert_eq!(run(&workers, 2, panicked), Action::Success, "forgotten");
    let expected = [
        "7, 1: down",
        "7, 2: asked for a retry",
        "7, 3: panicked: index 3",
        "gave 7 up: panicked: index 3",
    ];
    assert_eq!(*log.lock().unwrap(), expected);
}

/// A reconciler that asks for a retry has failed as one that returns an error.
#[test]
fn a_key_that_only_asks_for_retries_is_given_up_too() {
    let given_up = Mutex::new(Vec::new());
    let workers = Workers::new(1)
        .max_retries(0)
        .on_give_up(|key, failure| given_up.lock().unwrap().push((*key, failure)));
    assert_eq!(run(&workers, 0, Ok(Action::Retry)), Action::Success);
    let given_up = given_up.lock().unwrap();
    assert!(
        matches!(given_up[..], [(7, Failure::Retry)]),
        "{given_up:?}"
    );
}

#[test]
fn without_hooks_a_failure_still_counts() {
    let workers = Workers::new(1).max_retries(1);
    assert_eq!(run(&workers, 0, Err(Failure::Error("down"))), Action::Retry);
    assert_eq!(
        run(&workers, 1, Err(Failure::Error("down"))),
        Action::Success
    );
    let unlimited = Workers::new(1);
    assert_eq!(
        run(&unlimited, u32::MAX, Err(Failure::Error("down"))),
        Action::Retry
    );
}

#[test]
fn a_panic_shows_its_message() {
    let shown = |payload| Failure::<&str>::Panic(payload).to_string();
    assert_eq!(shown(Box::new("index 3")), "panicked: index 3");
    assert_eq!(
        shown(Box::new(String::from("index 3"))),
        "panicked: index 3"
    );
    assert_eq!(shown(Box::new(3)), "panicked: (no message)");
}

#[test]
fn a_run_learns_its_deadline_if_runs_have_a_timeout() {
    let keys = Keys(Cell::new(Instant::EPOCH + MINUTE));
    let deadline = |workers: Workers<'_, u8, &'static str>| {
        let begun = workers.begin(&7, RunContext::new(1), &keys);
        let deadline = begun.context().deadline;
        let _ = workers.judge(&7, begun, Ok(Action::Success), &keys);
        deadline
    };
    assert_eq!(deadline(Workers::new(1)), None);
    let timed = Workers::new(1).timeout(MINUTE);
    assert_eq!(deadline(timed), Some(Instant::EPOCH + 2 * MINUTE));
    assert_eq!(
        deadline(Workers::new(1).timeout(Duration::ZERO)),
        Some(keys.now())
    );
    let unlimited = Workers::new(1).timeout(MINUTE).timeout(Duration::MAX);
    assert_eq!(deadline(unlimited), None, "the last call counts");
}
