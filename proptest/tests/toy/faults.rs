//! Faults, and what the suite reports of each: a short history, and the rules that are broken.

use proptest::strategy::{BoxedStrategy, Strategy};
use requeue_proptest::conformance::{drawn, hold, hold_all, rules_broken};
use requeue_proptest::histories::{Operation, calls, find};
use requeue_proptest::subject::{Call, OnWorkQueue};

use super::{
    FORGETS_THE_DRAIN, HANDS_OUT_TWICE, KEEPS_THE_OLD_ALARM, LEAKS_THE_RUN, LOSES_THE_WAKE,
    OVERLOOKS_PANICS, POISONS_ITS_LOCK, ROUNDS_TIME_DOWN, Toy, YIELDS_WITH_A_KEY,
};

type Faulty<const F: u8> = OnWorkQueue<Toy<F>>;

/// The message of a rule that must not hold.
fn failure_of<const F: u8>(group: &str, name: &str) -> String {
    let Err(failure) = std::panic::catch_unwind(|| hold::<Faulty<F>>(group, name)) else {
        panic!("the fault is not found");
    };
    let message = failure.downcast_ref::<String>().map(String::as_str);
    message.unwrap_or("no message").to_owned()
}

/// What is reported of a fault that drawn histories show: few steps, and a group of rules, one of
/// which fails.
#[track_caller]
fn finds<const F: u8>(steps_max: usize, phrases: &[&str], group: &str) {
    finds_among::<F>(calls().boxed(), steps_max, phrases, group);
}

#[track_caller]
fn finds_among<const F: u8>(
    drawn: BoxedStrategy<Vec<Operation>>,
    steps_max: usize,
    phrases: &[&str],
    group: &str,
) {
    let failure = find::<Faulty<F>>(Some(drawn)).unwrap();
    let report = failure.to_string();
    println!("{report}");
    assert!(
        failure.timeline.len() < steps_max,
        "more than {steps_max} steps:\n{report}"
    );
    assert!(report.lines().count() <= steps_max + 2, "{report}");
    for phrase in phrases {
        assert!(report.contains(phrase), "no {phrase:?} in\n{report}");
    }
    let broken = rules_broken::<Faulty<F>>();
    let names: Vec<_> = broken.iter().map(|rule| (rule.group, rule.name)).collect();
    println!("{names:#?}");
    assert!(names.iter().any(|name| name.0 == group), "{names:?}");
}

#[test]
fn a_lost_wake_is_found() {
    finds::<LOSES_THE_WAKE>(5, &["is cancelled", "still waiting"], "waits");
    let failure = failure_of::<LOSES_THE_WAKE>("waits", "a_woken_getter_passes_the_wake_on");
    assert!(failure.contains("passes the wake on"), "{failure}");
}

#[test]
fn the_readme_shows_what_is_reported_of_a_lost_wake() {
    let readme = include_str!("../../README.md");
    let history = find::<Faulty<LOSES_THE_WAKE>>(Some(calls().boxed())).unwrap();
    let mut shown = format!("{history}\n\nRules that fail:\n");
    for rule in rules_broken::<Faulty<LOSES_THE_WAKE>>() {
        shown += &format!("  {}::{}: {}\n", rule.group, rule.name, rule.text);
    }
    assert!(
        readme.contains(&shown),
        "the README shows another:\n{shown}"
    );
}

#[test]
fn calls_that_come_and_go_many_times_are_shown_once() {
    let failure = failure_of::<LOSES_THE_WAKE>("waits", "a_place_is_given_back");
    assert!(failure.lines().count() < 12, "{failure}");
}

/// As the test `suite::rules` does.
#[test]
fn the_first_rule_that_fails_is_shown_and_all_are_listed() {
    let failure =
        std::panic::catch_unwind(|| hold_all::<Faulty<LOSES_THE_WAKE>>("toy")).unwrap_err();
    let report = failure.downcast_ref::<String>().unwrap();
    assert!(report.starts_with("waits::a_woken_getter_passes_the_wake_on\n"));
    let (_, list) = report.split_once("\n\nRules that fail:\n").unwrap();
    assert_eq!(list.lines().count(), 6, "{report}");
}

/// As the test does that `conformance!` makes. What fails is kept where it does no harm.
#[test]
fn a_drawn_history_that_fails_comes_with_the_rules_that_do() {
    let kept = concat!(env!("CARGO_TARGET_TMPDIR"), "/lost_wake.txt");
    let drawn = || drawn::histories_of_calls::<Faulty<LOSES_THE_WAKE>>(kept);
    let failure = std::panic::catch_unwind(drawn).unwrap_err();
    let report = failure.downcast_ref::<String>().unwrap();
    for phrase in [
        "is cancelled",
        "Expected state at ",
        "To try it again: Configuration",
        "\n\nRules that fail:\n  waits::",
        "\n  waits::a_call_that_finds_no_place_harms_no_other: A call",
    ] {
        assert!(report.contains(phrase), "no {phrase:?} in\n{report}");
    }
}

#[test]
fn a_missed_drain_wake_is_found() {
    finds::<FORGETS_THE_DRAIN>(
        5,
        &["Drain", "should have ended", "still waiting"],
        "shutdown",
    );
    let failure = failure_of::<FORGETS_THE_DRAIN>("shutdown", "the_last_active_key_ends_the_drain");
    assert!(
        failure.contains("should have ended: Drained(Complete)"),
        "{failure}"
    );
}

#[test]
fn a_lowered_deadline_that_is_not_armed_again_is_found() {
    let phrases = [
        "Delayed",
        "Advance",
        "call #1 should have answered key",
        "still waiting",
    ];
    finds::<KEEPS_THE_OLD_ALARM>(7, &phrases, "waits");
    let failure =
        failure_of::<KEEPS_THE_OLD_ALARM>("waits", "a_deadline_that_moves_forward_is_watched");
    assert!(failure.contains("): Sooner"), "{failure}");
    assert!(
        failure.contains("moves forward is watched at once"),
        "{failure}"
    );
}

/// If its worker completes the key first, that is the shorter way to find out.
#[test]
fn a_double_hand_out_is_found() {
    let completes = |step: &Operation| match step {
        Operation::Start(call) => *call != Call::Get,
        Operation::NextUnrun(_) => true,
        Operation::Add(_) | Operation::Cancel(_) | Operation::Nudge(_) | Operation::Settle => false,
        _ => true,
    };
    let none_completes = calls().prop_map(move |mut steps| {
        steps.retain(|step| !completes(step));
        steps
    });
    let phrases = ["Add(1): Ready", "call #1", "key 1", "call #2"];
    finds_among::<HANDS_OUT_TWICE>(none_completes.boxed(), 4, &phrases, "waits");
    assert!(find::<Faulty<HANDS_OUT_TWICE>>(Some(calls().boxed())).is_some());
}

#[test]
fn a_leaked_slot_is_found() {
    finds::<LEAKS_THE_RUN>(7, &["dropped before it runs"], "waits");
    let failure = failure_of::<LEAKS_THE_RUN>("waits", "a_run_that_was_declared_over_is_completed");
    assert!(
        failure.contains("even if it is dropped before its first poll"),
        "{failure}"
    );
}

#[test]
fn a_key_that_is_lost_between_take_and_guard_is_found() {
    finds::<YIELDS_WITH_A_KEY>(6, &["is still active"], "waits");
    let failure = failure_of::<YIELDS_WITH_A_KEY>(
        "waits",
        "a_getter_cancelled_while_it_takes_a_key_gives_it_back",
    );
    let lines = "
  5. call #1 is cancelled
  6. call #2: Get: call #2 should have answered key 1, but it is still waiting; \
key 1 is still active
Expected state at 0ns: ready 1";
    assert!(failure.contains(lines), "{failure}");
}

#[test]
fn a_lock_that_is_poisoned_is_found() {
    let failure =
        failure_of::<POISONS_ITS_LOCK>("runs", "a_panic_under_the_lock_does_not_poison_it");
    let lines = "
  1. PanicUnderLock: it is caught
  2. panic_under_lock: the queue panicked: called `Result::unwrap()` on an `Err` value: PoisonError";
    assert!(failure.contains(lines), "{failure}");
}

#[test]
fn a_call_that_gives_up_a_part_of_a_millisecond_early_is_found() {
    let failure = find::<Faulty<ROUNDS_TIME_DOWN>>(None).unwrap();
    let report = failure.to_string();
    assert_eq!(failure.timeline.len(), 0, "{report}");
    assert!(report.contains("ns): call #1 should wait"), "{report}");
    assert!(find::<Faulty<ROUNDS_TIME_DOWN>>(Some(calls().boxed())).is_none());
}

/// The same holds for a story that never waits.
#[test]
fn a_story_reports_how_it_got_there() {
    let failure =
        failure_of::<OVERLOOKS_PANICS>("runs", "a_key_whose_worker_panics_comes_back_as_failed");
    let (report, place) = failure.split_once("\nIn ").unwrap();
    let expected = "\
runs::a_key_whose_worker_panics_comes_back_as_failed
  1. Add(1): Ready
  2. PanicAtWork: key 1 is: expected due 1ms, failures 1, got none
Expected state at 0ns: delayed 1 until 1ms; failures of 1 with 1";
    assert_eq!(report, expected);
    assert!(
        place.starts_with("proptest/src/stories/runs.txt:"),
        "{place}"
    );
    assert!(place.contains(": panic_at_work\nBroken: runs: "), "{place}");
}
