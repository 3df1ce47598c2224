//! Ends a test that does not come back, and reports how far it got.
//!
//! A call that never lets go of its thread, a `poll` that loops say, cannot be stopped. So the work
//! is done on a thread of its own, which is left to itself if it does not get on: it ends with the
//! process, and the other tests are reported.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// What the work has begun since the last history began.
#[derive(Debug, Default)]
struct Begun {
    count: u64,
    steps: Vec<String>,
}

thread_local! {
    static BEGUN: RefCell<Option<Arc<Mutex<Begun>>>> = const { RefCell::new(None) };
}

/// Does `work`, and fails if it begins nothing for as long as `patience`.
///
/// # Panics
///
/// As `work` does; or with the steps that it has begun, if it does not get on.
#[expect(clippy::panic, reason = "this is how a test fails")]
pub(crate) fn watched<T: Send + 'static>(
    patience: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> T {
    let begun = Arc::new(Mutex::default());
    let (sender, outcome) = channel();
    let at_work = Arc::clone(&begun);
    thread::spawn(move || {
        BEGUN.set(Some(at_work));
        // The receiver is gone if the wait was given up.
        let _ = sender.send(catch_unwind(AssertUnwindSafe(work)));
    });
    let mut seen = 0;
    loop {
        match outcome.recv_timeout(patience) {
            Ok(outcome) => return outcome.unwrap_or_else(|panic| resume_unwind(panic)),
            Err(RecvTimeoutError::Timeout) if locked(&begun).gets_on(&mut seen) => {}
            Err(_) => panic!("{}", locked(&begun).report()),
        }
    }
}

impl Begun {
    /// Whether something has begun since this was last asked.
    fn gets_on(&self, seen: &mut u64) -> bool {
        std::mem::replace(seen, self.count) < self.count
    }

    fn report(&self) -> String {
        let steps = self.steps.join("\n");
        format!("the last of these steps does not come to an end:\n{steps}")
    }
}

/// Another history begins.
pub(crate) fn restarts() {
    with(|begun| begun.steps.clear());
}

/// A step begins.
pub(crate) fn begins(step: impl FnOnce() -> String) {
    with(|begun| {
        begun.count += 1;
        begun.steps.push(step());
    });
}

fn with(change: impl FnOnce(&mut Begun)) {
    BEGUN.with_borrow(|begun| {
        if let Some(begun) = begun {
            change(&mut locked(begun));
        }
    });
}

fn locked(begun: &Mutex<Begun>) -> MutexGuard<'_, Begun> {
    begun.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caught::guarded;

    #[test]
    fn what_does_not_come_back_is_given_up() {
        let stuck = || {
            watched(Duration::from_millis(1), || {
                loop {
                    thread::park();
                }
            })
        };
        let report = guarded(stuck).map(|()| "it came back").unwrap_err();
        assert!(report.starts_with("the last of these steps does not come to an end"));
    }

    #[test]
    fn what_does_not_get_on_is_reported_by_the_steps_of_its_last_history() {
        let begun = Arc::new(Mutex::default());
        BEGUN.set(Some(Arc::clone(&begun)));
        let mut seen = 0;
        begins(|| String::from("of another history"));
        restarts();
        begins(|| String::from("Add(1)"));
        begins(|| String::from("Start(Get)"));
        assert!(locked(&begun).gets_on(&mut seen));
        assert!(!locked(&begun).gets_on(&mut seen));
        let report = locked(&begun).report();
        assert!(
            report.ends_with("to an end:\nAdd(1)\nStart(Get)"),
            "{report}"
        );
    }

    #[test]
    fn what_comes_back_answers_or_panics_as_it_would_have() {
        assert_eq!(watched(Duration::MAX, || 7), 7);
        let panicked = guarded(|| watched(Duration::MAX, || assert_eq!(1 + 1, 3, "no")));
        assert!(panicked.unwrap_err().contains("no"));
    }
}
