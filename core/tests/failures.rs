//! What a failure is, and which are the last.

use std::cell::Cell;
use std::error::Error;
use std::fmt;
use std::num::ParseIntError;
use std::sync::Mutex;
use std::time::Duration;

use requeue_core::{Action, Failure, RunContext, RunEvent, Workers};

use crate::common::idle::Idle;

const MINUTE: Duration = Duration::from_secs(60);

/// What it shows is what its error shows, and so is what caused it.
#[test]
fn a_failure_is_an_error_with_the_cause_of_its_own() {
    let timed_out: Failure<std::io::Error> = Failure::TimedOut(MINUTE);
    let timed_out: Box<dyn Error> = Box::new(timed_out);
    assert_eq!(timed_out.to_string(), "took longer than 60s");
    assert!(timed_out.source().is_none());

    #[derive(Debug)]
    struct Unreachable(ParseIntError);
    impl fmt::Display for Unreachable {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("unreachable")
        }
    }
    impl Error for Unreachable {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&self.0)
        }
    }
    let failure = Failure::Error(Unreachable("x".parse::<u8>().unwrap_err()));
    assert_eq!(failure.to_string(), "unreachable");
    let source = Error::source(&failure).unwrap();
    assert!(source.is::<ParseIntError>());
}

type Outcome = Result<Action, Failure<&'static str>>;

fn end(workers: &Workers<'_, u8, &'static str>, key: u8, result: Outcome) -> Action {
    let begun = workers.begin(&key, RunContext::new(1), &Idle);
    workers.end(&key, begun, result, &Idle)
}

#[test]
fn an_error_that_no_retry_helps_gives_its_key_up_at_once() {
    let (log, asked) = (Mutex::new(Vec::new()), Mutex::new(Cell::new(0)));
    let note = |line: String| log.lock().unwrap().push(line);
    let workers = Workers::new(1)
        .give_up_if(|key, error: &&str| {
            let asked = asked.lock().unwrap();
            asked.set(asked.get() + 1);
            *key == 1 && *error == "deleted"
        })
        .on_error(|key, failure, attempt| note(format!("{key}, {attempt}: {failure}")))
        .on_give_up(|key, failure| note(format!("gave {key} up: {failure}")));
    let failed = |error| Err(Failure::Error(error));
    assert_eq!(end(&workers, 1, failed("down")), Action::Retry);
    assert_eq!(end(&workers, 2, failed("deleted")), Action::Retry);
    assert_eq!(end(&workers, 1, failed("deleted")), Action::GiveUp);
    assert_eq!(asked.lock().unwrap().get(), 3);
    // What is no error is not asked about.
    assert_eq!(end(&workers, 1, Ok(Action::Retry)), Action::Retry);
    let timed_out = Err(Failure::TimedOut(MINUTE));
    assert_eq!(end(&workers, 1, timed_out), Action::Retry);
    assert_eq!(end(&workers, 1, Ok(Action::Release)), Action::Release);
    assert_eq!(end(&workers, 1, Ok(Action::GiveUp)), Action::GiveUp);
    assert_eq!(asked.lock().unwrap().get(), 3);
    drop(workers);
    let expected = [
        "1, 1: down",
        "2, 1: deleted",
        "1, 1: deleted",
        "gave 1 up: deleted",
        "1, 1: asked for a retry",
        "1, 1: took longer than 60s",
        "1, 1: asked to be given up",
        "gave 1 up: asked to be given up",
    ];
    assert_eq!(log.into_inner().unwrap(), expected);
}

#[test]
fn a_reconciler_gives_its_key_up_with_an_action() {
    let log = Mutex::new(Vec::new());
    let workers = Workers::new(1)
        .on_event(|_: &u8, event: &RunEvent<'_, &str>| {
            if let RunEvent::Failed {
                failure,
                is_given_up,
                ..
            } = event
            {
                let is_asked = matches!(failure, Failure::GiveUp);
                log.lock().unwrap().push((is_asked, *is_given_up));
            }
        })
        .on_error(|_, failure, attempt| {
            assert_eq!(
                (failure.to_string().as_str(), attempt),
                ("asked to be given up", 1)
            );
        });
    assert_eq!(end(&workers, 1, Ok(Action::GiveUp)), Action::GiveUp);
    drop(workers);
    assert_eq!(log.into_inner().unwrap(), [(true, true)]);
}

#[cfg(feature = "std")]
#[test]
fn a_question_that_panics_gives_no_key_up() {
    let workers = Workers::new(1)
        .give_up_if(|_, _: &&str| std::panic::resume_unwind(Box::new("quietly")))
        .on_give_up(|_, _| unreachable!());
    let failed = Err(Failure::Error("down"));
    assert_eq!(end(&workers, 1, failed), Action::Retry);
}
