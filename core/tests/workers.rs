//! How workers judge the result of a run, and which hooks they call.

use std::cell::Cell;
use std::sync::Mutex;
use std::time::Duration;

use requeue_core::binding::Runs;
use requeue_core::{Action, Failure, Instant, RunContext, RunEvent, Workers};

type Result = std::result::Result<Action, Failure<&'static str>>;

const MINUTE: Duration = Duration::from_secs(60);

/// A queue whose clock the test moves, and in which nothing else happens.
struct Keys(Cell<Instant>, Cell<bool>);

impl Keys {
    fn new() -> Self {
        Self(Cell::new(Instant::EPOCH), Cell::new(true))
    }

    fn advance(&self, by: Duration) {
        self.0.set(self.0.get() + by);
    }
}

impl Runs<u8> for Keys {
    fn now(&self) -> Instant {
        self.0.get()
    }

    fn contains(&self, _: &u8) -> bool {
        self.1.get()
    }
}

/// Judges the result of a key that had failed `failures` times before, and reports it.
fn run(workers: &Workers<'_, u8, &'static str>, failures: u32, result: Result) -> Action {
    let keys = Keys::new();
    run_in(&keys, workers, failures, result)
}

fn run_in(
    keys: &Keys,
    workers: &Workers<'_, u8, &'static str>,
    failures: u32,
    result: Result,
) -> Action {
    let begun = workers.begin(&7, RunContext::new(failures.saturating_add(1)), keys);
    workers.end(&7, begun, result, keys)
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
        Action::Snooze(MINUTE),
        Action::Snooze(MINUTE).with_priority(1),
        Action::poll(MINUTE, MINUTE),
        Action::Release,
    ] {
        assert_eq!(run(&workers, 9, Ok(action)), action);
    }
}

#[test]
fn a_retry_keeps_its_priority_and_observers_see_plain_actions() {
    let log = Mutex::new(Vec::new());
    let workers = Workers::new(1)
        .max_retries(1)
        .on_event(|_: &u8, event| match event {
            RunEvent::Finished { action, .. } => log.lock().unwrap().push(*action),
            RunEvent::Failed { failure, .. } => assert!(matches!(failure, Failure::Retry)),
            _ => {}
        });
    let retry = Action::Retry.with_priority(1);
    assert_eq!(run(&workers, 0, Ok(retry)), retry);
    assert_eq!(run(&workers, 1, Ok(retry)), Action::GiveUp);
    assert_eq!(
        run(&workers, 0, Ok(Action::Snooze(MINUTE).with_priority(1))),
        Action::Snooze(MINUTE).with_priority(1)
    );
    assert_eq!(*log.lock().unwrap(), [Action::Snooze(MINUTE)]);
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
    assert_eq!(run(&workers, 2, panicked), Action::GiveUp, "forgotten");
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
    assert_eq!(run(&workers, 0, Ok(Action::Retry)), Action::GiveUp);
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
        Action::GiveUp
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
fn each_run_that_starts_has_one_end_with_its_time() {
    let log = Mutex::new(Vec::new());
    let note = |who: &str, event: &RunEvent<'_, &str>| {
        let line = match event {
            RunEvent::Started(run) => format!("started {}", run.attempt),
            RunEvent::Finished { action, took, .. } => format!("{action:?} {took:?}"),
            RunEvent::Failed {
                failure,
                attempt,
                is_given_up,
                took,
                ..
            } => format!("{failure} {attempt} {is_given_up} {took:?}"),
            other => format!("{other:?}"),
        };
        log.lock().unwrap().push(format!("{who}: {line}"));
    };
    let workers = Workers::new(1)
        .max_retries(1)
        .timeout(MINUTE)
        .on_give_up(|_, failure| log.lock().unwrap().push(format!("hook: {failure}")))
        .on_event(|_: &u8, event| note("1st", event))
        .on_event(|_, event| note("2nd", event));
    let keys = Keys::new();
    let results: [(u32, Result); 3] = [
        (0, Ok(Action::RequeueAfter(MINUTE))),
        (0, Ok(Action::Retry)),
        (1, Err(Failure::TimedOut(MINUTE))),
    ];
    for (failures, result) in results {
        let begun = workers.begin(&7, RunContext::new(failures + 1), &keys);
        keys.advance(MINUTE);
        let _ = workers.end(&7, begun, result, &keys);
    }
    drop(workers);
    let log = log.lock().unwrap();
    let of = |who: &str| {
        let lines = log.iter().filter_map(|line| line.strip_prefix(who));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let expected = [
        "started 1",
        "RequeueAfter(60s) 60s",
        "started 1",
        "asked for a retry 1 false 60s",
        "started 2",
        "took longer than 60s 2 true 60s",
    ];
    assert_eq!(of("1st: "), expected);
    assert_eq!(of("2nd: "), expected);
    assert_eq!(
        log.last().unwrap(),
        "hook: took longer than 60s",
        "hooks come last"
    );
}

#[test]
fn a_run_learns_its_deadline_if_runs_have_a_timeout() {
    let keys = Keys::new();
    keys.advance(MINUTE);
    let deadline = |workers: Workers<'_, u8, &'static str>| {
        let begun = workers.begin(&7, RunContext::new(1), &keys);
        let deadline = begun.context().deadline;
        let _ = workers.end(&7, begun, Ok(Action::Success), &keys);
        deadline
    };
    assert_eq!(deadline(Workers::new(1)), None);
    let timed = Workers::new(1).timeout(MINUTE);
    assert_eq!(deadline(timed), Some(Instant::EPOCH + 2 * MINUTE));
    assert_eq!(
        deadline(Workers::new(1).timeout(Duration::ZERO)),
        Some(keys.0.get())
    );
    let unlimited = Workers::new(1).timeout(MINUTE).timeout(Duration::MAX);
    assert_eq!(deadline(unlimited), None, "the last call counts");
}

#[cfg(feature = "std")]
mod by_age {
    use super::*;

    const DOWN: Result = Err(Failure::Error("down"));

    fn fail(keys: &Keys, workers: &Workers<'_, u8, &'static str>, failures: u32) -> Action {
        run_in(keys, workers, failures, DOWN)
    }

    #[test]
    fn a_key_is_given_up_once_it_has_failed_for_too_long() {
        let (keys, workers) = (Keys::new(), Workers::new(1).give_up_after(2 * MINUTE));
        assert_eq!(fail(&keys, &workers, 0), Action::Retry);
        keys.advance(2 * MINUTE - Duration::from_nanos(1));
        assert_eq!(fail(&keys, &workers, 1), Action::Retry);
        keys.advance(Duration::from_nanos(1));
        assert_eq!(fail(&keys, &workers, 2), Action::GiveUp, "given up");
        // It starts as a new key.
        assert_eq!(fail(&keys, &workers, 0), Action::Retry);
        keys.advance(MINUTE);
        assert_eq!(fail(&keys, &workers, 1), Action::Retry);
    }

    #[test]
    fn a_key_that_has_worked_or_was_forgotten_begins_again() {
        let (keys, workers) = (Keys::new(), Workers::new(1).give_up_after(2 * MINUTE));
        for action in [Action::Success, Action::RequeueAfter(MINUTE)] {
            assert_eq!(fail(&keys, &workers, 0), Action::Retry);
            keys.advance(3 * MINUTE);
            assert_eq!(run_in(&keys, &workers, 1, Ok(action)), action);
            assert_eq!(fail(&keys, &workers, 1), Action::Retry, "after {action:?}");
            keys.advance(3 * MINUTE);
            // Its failures were forgotten by another.
            assert_eq!(fail(&keys, &workers, 0), Action::Retry);
        }
        // What neither worked nor failed changes nothing.
        for action in [Action::Release, Action::Snooze(MINUTE)] {
            assert_eq!(fail(&keys, &workers, 0), Action::Retry);
            assert_eq!(run_in(&keys, &workers, 1, Ok(action)), action);
            keys.advance(2 * MINUTE);
            assert_eq!(fail(&keys, &workers, 1), Action::GiveUp, "after {action:?}");
        }
    }

    #[test]
    fn what_comes_first_counts() {
        let workers = |age| Workers::new(1).max_retries(1).give_up_after(age);
        let (keys, at_once, never) = (Keys::new(), workers(Duration::ZERO), workers(Duration::MAX));
        assert_eq!(fail(&keys, &at_once, 0), Action::GiveUp);
        assert_eq!(fail(&keys, &never, 0), Action::Retry);
        assert_eq!(fail(&keys, &never, 1), Action::GiveUp);
        let workers = workers(MINUTE);
        assert_eq!(fail(&keys, &workers, 0), Action::Retry);
        assert_eq!(fail(&keys, &workers, 1), Action::GiveUp);
    }

    /// Of thousands of keys that failed once and were let go by the queue, only some are kept.
    #[test]
    fn keys_that_the_queue_has_let_go_are_not_kept() {
        struct Counted(u32, std::sync::Arc<()>);
        impl PartialEq for Counted {
            fn eq(&self, other: &Self) -> bool {
                self.0 == other.0
            }
        }
        impl Eq for Counted {}
        impl std::hash::Hash for Counted {
            fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
                self.0.hash(state);
            }
        }
        impl Clone for Counted {
            fn clone(&self) -> Self {
                Self(self.0, std::sync::Arc::clone(&self.1))
            }
        }
        impl Runs<Counted> for Keys {
            fn now(&self) -> Instant {
                self.0.get()
            }

            fn contains(&self, key: &Counted) -> bool {
                key.0.is_multiple_of(1000)
            }
        }
        let (keys, alive) = (Keys::new(), std::sync::Arc::new(()));
        let workers: Workers<'_, Counted, &str> = Workers::new(1).give_up_after(MINUTE);
        for name in 0..if cfg!(miri) { 200 } else { 10_000 } {
            let key = Counted(name, std::sync::Arc::clone(&alive));
            let begun = workers.begin(&key, RunContext::new(1), &keys);
            let _ = workers.end(&key, begun, Err(Failure::Error("down")), &keys);
        }
        let kept = std::sync::Arc::strong_count(&alive) - 1;
        assert!((10..=64).contains(&kept), "{kept} keys are kept");
    }
}

#[cfg(feature = "std")]
mod dead {
    use std::sync::Arc;

    use requeue_core::{AddOptions, Added, DeadKeys, Producer, Rejected, Scheduled};

    use super::*;

    type Log = Arc<Mutex<Vec<(u8, u32)>>>;

    fn list(capacity: usize) -> (DeadKeys<u8, u32>, Log) {
        let log = Log::default();
        let dropped = Arc::clone(&log);
        let dead = DeadKeys::new(capacity, move |key, why| {
            dropped.lock().unwrap().push((key, why))
        });
        (dead, log)
    }

    fn shown(dead: &DeadKeys<u8, u32>) -> Vec<(u8, u32)> {
        dead.map(usize::MAX, |key, why| (*key, *why))
    }

    #[test]
    fn the_oldest_makes_room_and_is_handed_over() {
        let (dead, dropped) = list(2);
        assert_eq!([dead.insert(1, 10), dead.insert(2, 20)], [None; 2]);
        assert_eq!(dead.insert(1, 11), Some(10), "it is the newest now");
        assert!(dropped.lock().unwrap().is_empty());
        assert_eq!(dead.insert(3, 30), None);
        assert_eq!(*dropped.lock().unwrap(), [(2, 20)]);
        assert_eq!(shown(&dead), [(1, 11), (3, 30)]);
        assert_eq!(dead.map(1, |key, _| *key), [1]);
        assert_eq!(dead.remove(&2), None);
        assert_eq!(dead.take_all().collect::<Vec<_>>(), [(1, 11), (3, 30)]);
        assert!(dead.is_empty());
        assert_eq!(dead.insert(4, 40), None);
        assert_eq!(dead.remove(&4), Some(40));
        assert!(dead.is_empty());
    }

    #[test]
    fn a_list_without_room_hands_every_key_over() {
        let (dead, dropped) = list(0);
        assert_eq!(dead.insert(1, 10), None);
        assert_eq!(*dropped.lock().unwrap(), [(1, 10)]);
        assert_eq!(dead.len(), 0);
    }

    /// Whether a queue accepts a key, and whether the key runs at once and fails again.
    struct Hasty(DeadKeys<u8, u32>, bool, bool);

    impl Producer<u8> for Hasty {
        fn add(&self, key: u8) -> std::result::Result<Added, Rejected<u8>> {
            if self.2 {
                self.0.insert(key, 99);
            }
            if self.1 {
                return Ok(Added::Ready);
            }
            Err(Rejected::Closed(key))
        }

        fn add_after(&self, _: u8, _: Duration) -> std::result::Result<Added, Rejected<u8>> {
            unreachable!()
        }

        fn add_rate_limited(&self, _: u8) -> std::result::Result<Scheduled, Rejected<u8>> {
            unreachable!()
        }

        fn add_with(&self, _: u8, _: AddOptions) -> std::result::Result<Scheduled, Rejected<u8>> {
            unreachable!()
        }
    }

    #[test]
    fn a_key_that_dies_again_while_it_is_retried_is_in_the_list() {
        for accepts in [true, false] {
            let (dead, dropped) = list(2);
            let _ = (dead.insert(1, 10), dead.insert(2, 20));
            let queue = Hasty(dead.clone(), accepts, true);
            assert!(dead.retry(&3, &queue).is_none());
            assert_eq!(dead.retry(&1, &queue).unwrap().is_ok(), accepts);
            assert_eq!(shown(&dead), [(2, 20), (1, 99)]);
            assert!(dropped.lock().unwrap().is_empty());
        }
    }

    #[test]
    fn a_key_that_is_refused_keeps_its_place_in_the_list() {
        let (dead, _) = list(2);
        let _ = (dead.insert(1, 10), dead.insert(2, 20));
        let queue = Hasty(dead.clone(), false, false);
        assert!(dead.retry(&1, &queue).unwrap().is_err());
        assert_eq!(shown(&dead), [(1, 10), (2, 20)]);
    }
}
