//! Hooks that panic: each is contained.

use std::panic::resume_unwind;
use std::sync::Mutex;
use std::thread;

use requeue_core::{Action, Failure, RunContext, RunEvent, Workers};

use crate::common::idle::Idle;

/// Panics without a message on the screen, with a payload whose `Drop` panics.
fn fail() {
    struct Fragile;
    impl Drop for Fragile {
        fn drop(&mut self) {
            if !thread::panicking() {
                resume_unwind(Box::new("again"));
            }
        }
    }
    resume_unwind(Box::new(Fragile));
}

/// An error whose `Debug`, which logs it, and whose `Drop` panic.
struct Fragile(&'static str);

impl std::fmt::Debug for Fragile {
    fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        fail();
        Ok(())
    }
}

impl Drop for Fragile {
    fn drop(&mut self) {
        if !thread::panicking() {
            resume_unwind(Box::new("dropped"));
        }
    }
}

/// One run of a key that has failed `failures` times before.
fn run<E>(
    workers: &Workers<'_, u8, E>,
    failures: u32,
    result: Result<Action, Failure<E>>,
) -> Action {
    let begun = workers.begin(&7, RunContext::new(failures + 1), &Idle);
    workers.end(&7, begun, result, &Idle)
}

#[test]
fn a_hook_that_panics_keeps_no_other_from_being_called() {
    let log = Mutex::new(Vec::new());
    let note = |line: String| log.lock().unwrap().push(line);
    let workers = Workers::new(1)
        .max_retries(1)
        .on_event(|_, _| fail())
        .on_event(|_, event: &RunEvent<'_, &str>| match event {
            RunEvent::Started(run) => note(format!("started {}", run.attempt)),
            RunEvent::Failed { .. } => note(String::from("failed")),
            RunEvent::Finished { .. } => note(String::from("finished")),
            other => note(format!("{other:?}")),
        })
        .on_error(|_: &u8, failure, _| {
            note(format!("on_error: {failure}"));
            fail();
        })
        .on_give_up(|key, failure| {
            note(format!("gave up {key}: {failure}"));
            fail();
        })
        .on_overdue(|_, _| fail());
    assert_eq!(run(&workers, 0, Err(Failure::Error("down"))), Action::Retry);
    let last = run(&workers, 1, Err(Failure::Error("down")));
    assert_eq!(last, Action::GiveUp);
    assert_eq!(run(&workers, 0, Ok(Action::Success)), Action::Success);
    workers.overdue(&7);
    workers.aborted(&7);
    let expected = [
        "started 1",
        "failed",
        "on_error: down",
        "started 2",
        "failed",
        "on_error: down",
        "gave up 7: down",
        "started 1",
        "finished",
        "Overdue(0ns)",
        "Aborted",
    ];
    drop(workers);
    assert_eq!(log.into_inner().unwrap(), expected);
}

#[test]
fn an_error_that_panics_when_it_is_logged_or_dropped_fails_its_run() {
    let workers = Workers::new(1).max_retries(1);
    for (failures, action) in [(0, Action::Retry), (1, Action::GiveUp)] {
        let failure = Failure::Error(Fragile("down"));
        assert_eq!(run(&workers, failures, Err(failure)), action);
    }
    let given_up = Mutex::new(Vec::new());
    let workers = workers.on_give_up(|_, failure| {
        if let Failure::Error(error) = failure {
            given_up.lock().unwrap().push(error.0);
        }
    });
    let failure = Failure::Error(Fragile("down"));
    assert_eq!(run(&workers, 1, Err(failure)), Action::GiveUp);
    drop(workers);
    assert_eq!(*given_up.lock().unwrap(), ["down"]);
}
