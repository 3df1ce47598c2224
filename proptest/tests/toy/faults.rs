//! Faults, and what the suite reports of each: a short history, and the rules that are broken.

use std::panic::catch_unwind;

use proptest::strategy::Strategy;
use requeue_proptest::conformance::{drawn, hold, hold_all, rules_broken};
use requeue_proptest::histories::{Draw, calls, find};
use requeue_proptest::subject::OnWorkQueue;

use super::{
    FORGETS_THE_DRAIN, HANDS_OUT_TWICE, KEEPS_THE_OLD_ALARM, LEAKS_THE_RUN, LOSES_THE_WAKE,
    OVERLOOKS_PANICS, POISONS_ITS_LOCK, ROUNDS_TIME_DOWN, Toy, YIELDS_WITH_A_KEY,
};

type Faulty<const F: u8> = OnWorkQueue<Toy<F>>;

/// The message of a test that must fail.
#[track_caller]
fn failure_of<T>(test: impl FnOnce() -> T + std::panic::UnwindSafe) -> String {
    match catch_unwind(test) {
        Ok(_) => panic!("the fault is not found"),
        Err(failure) => *failure.downcast().unwrap(),
    }
}

#[track_caller]
fn assert_shows(report: &str, phrases: &[&str]) {
    for phrase in phrases {
        assert!(report.contains(phrase), "no {phrase:?} in\n{report}");
    }
}

/// What is reported of a fault that drawn histories show: a history of at most so many steps.
#[track_caller]
fn draws<const F: u8>(steps: usize, phrases: &[&str]) {
    let failure = find::<Faulty<F>>(Some(calls().boxed())).unwrap();
    let report = failure.to_string();
    assert_shows(&report, phrases);
    assert!(failure.timeline.len() <= steps, "{report}");
    assert!(report.lines().count() <= steps + 3, "{report}");
}

/// What is reported of a fault that breaks a rule.
#[track_caller]
fn breaks<const F: u8>(group: &str, name: &str, phrases: &[&str]) {
    let report = failure_of(|| hold::<Faulty<F>>(group, name));
    assert_shows(&report, phrases);
    assert!(report.lines().count() < 12, "{report}");
}

#[test]
fn drawing_finds_faults_in_a_few_steps() {
    draws::<LOSES_THE_WAKE>(4, &["is cancelled", "still waiting"]);
    draws::<FORGETS_THE_DRAIN>(4, &["Drain", "should have ended", "still waiting"]);
    let phrases = [
        "Delayed",
        "Advance",
        "call #1 should have answered key",
        "still waiting",
    ];
    draws::<KEEPS_THE_OLD_ALARM>(6, &phrases);
    draws::<HANDS_OUT_TWICE>(3, &["key 1"]);
    draws::<LEAKS_THE_RUN>(6, &["dropped before it runs"]);
    draws::<YIELDS_WITH_A_KEY>(5, &["is still active"]);
}

#[test]
fn each_fault_breaks_a_rule() {
    let rule = "a_woken_getter_passes_the_wake_on";
    breaks::<LOSES_THE_WAKE>("waits", rule, &["passes the wake on"]);

    let rule = "the_last_active_key_ends_the_drain";
    let phrases = ["should have ended: Drained(Complete)"];
    breaks::<FORGETS_THE_DRAIN>("shutdown", rule, &phrases);

    let rule = "a_deadline_that_moves_forward_is_watched";
    let phrases = ["): Sooner", "moves forward is watched at once"];
    breaks::<KEEPS_THE_OLD_ALARM>("waits", rule, &phrases);

    let rule = "a_getter_that_is_served_wakes_the_next";
    breaks::<HANDS_OUT_TWICE>("waits", rule, &["key 1"]);

    let rule = "a_run_that_was_declared_over_is_completed";
    let phrases = ["even if it is dropped before its first poll"];
    breaks::<LEAKS_THE_RUN>("waits", rule, &phrases);

    let rule = "a_getter_cancelled_while_it_takes_a_key_gives_it_back";
    let lines = "
  5. call #1 is cancelled
  6. call #2: Get: call #2 should have answered key 1, but it is still waiting; \
key 1 is still active
Expected state at 0ns: ready 1";
    breaks::<YIELDS_WITH_A_KEY>("waits", rule, &[lines]);

    let rule = "a_panic_under_the_lock_does_not_poison_it";
    let lines = "
  1. PanicUnderLock: it is caught
  2. panic_under_lock: the queue panicked: called `Result::unwrap()` on an `Err` value: PoisonError";
    breaks::<POISONS_ITS_LOCK>("runs", rule, &[lines]);

    // A story that never waits.
    let rule = "a_key_whose_worker_panics_comes_back_as_failed";
    let lines = "\
runs::a_key_whose_worker_panics_comes_back_as_failed
  1. Add(1): Ready
  2. PanicAtWork: key 1 is: expected due 1ms, failures 1, got none
Expected state at 0ns: delayed 1 until 1ms; failures of 1 with 1
In proptest/src/stories/runs.txt:";
    let phrases = [lines, ": panic_at_work\nBroken: runs: "];
    breaks::<OVERLOOKS_PANICS>("runs", rule, &phrases);
}

/// No story is told in parts of a millisecond.
#[test]
fn a_call_that_gives_up_a_part_of_a_millisecond_early_is_found() {
    let failure = find::<Faulty<ROUNDS_TIME_DOWN>>(None).unwrap();
    let report = failure.to_string();
    assert_eq!(failure.timeline.len(), 0, "{report}");
    assert_shows(&report, &["ns): call #1 should wait"]);
    assert!(find::<Faulty<ROUNDS_TIME_DOWN>>(Some(calls().boxed())).is_none());
}

/// The README shows it with the list that the test `suite::rules` prints.
#[test]
fn a_lost_wake_is_shown_in_a_few_steps_with_all_rules_that_it_breaks() {
    let readme = include_str!("../../README.md");
    let history = find::<Faulty<LOSES_THE_WAKE>>(Some(calls().boxed())).unwrap();
    let report = failure_of(|| hold_all::<Faulty<LOSES_THE_WAKE>>("toy"));
    let (shortest, list) = report.split_once("\n\nRules that fail:\n").unwrap();
    assert!(shortest.starts_with("waits::a_woken_getter_passes_the_wake_on\n"));
    let shown = format!("{history}\n\nRules that fail:\n{list}\n```");
    assert_shows(readme, &[&shown]);
    let broken = rules_broken::<Faulty<LOSES_THE_WAKE>>();
    assert_eq!(broken.len(), list.lines().count(), "{report}");
}

/// As the test does that `conformance!` makes. What fails is kept where it does no harm.
#[test]
fn a_drawn_history_that_fails_comes_with_the_rules_that_do() {
    let kept = concat!(env!("CARGO_TARGET_TMPDIR"), "/lost_wake.txt");
    let report = failure_of(|| drawn::<Faulty<LOSES_THE_WAKE>>(Draw::Calls, kept));
    let phrases = [
        "is cancelled",
        "Expected state at ",
        "To try it again: Configuration",
        "\n\nRules that fail:\n  room::",
        "\n  waits::a_call_that_finds_no_place_harms_no_other: A call",
    ];
    assert_shows(&report, &phrases);
}
