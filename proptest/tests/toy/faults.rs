//! Seven faults, and what the suite says of each: a short hireport, and the rule that is broken.

use proptest::strategy::{BoxedStrategy, Strategy};
use requeue_proptest::conformance::hold;
use requeue_proptest::histories::{Step, calls, find};
use requeue_proptest::subject::{Call, OnWorkQueue};

use super::{Plan, Toy};

type Faulty<P> = OnWorkQueue<Toy<P>>;

struct LostBaton;

impl Plan for LostBaton {
    const LOSES_THE_BATON: bool = true;
}

struct MissedDrain;

impl Plan for MissedDrain {
    const FORGETS_THE_DRAIN: bool = true;
}

struct LateAlarm;

impl Plan for LateAlarm {
    const KEEPS_THE_OLD_ALARM: bool = true;
}

struct HandedOutTwice;

impl Plan for HandedOutTwice {
    const HANDS_OUT_TWICE: bool = true;
}

struct LeakedSlot;

impl Plan for LeakedSlot {
    const LEAKS_THE_RUN: bool = true;
}

struct Hasty;

impl Plan for Hasty {
    const ROUNDS_TIME_DOWN: bool = true;
}

struct Careless;

impl Plan for Careless {
    const OVERLOOKS_PANICS: bool = true;
}

/// The message of a rule that must not hold.
fn failure_of<P: Plan>(group: &str, name: &str) -> String {
    let Err(failure) = std::panic::catch_unwind(|| hold::<Faulty<P>>(group, name)) else {
        panic!("the fault is not found");
    };
    let message = failure.downcast_ref::<String>().map(String::as_str);
    message.unwrap_or("no message").to_owned()
}

/// What is reported of a fault that drawn histories show: few steps, and the rule.
#[track_caller]
fn finds<P: Plan>(steps_max: usize, phrases: &[&str], rule: &str) {
    finds_among::<P>(calls().boxed(), steps_max, phrases, rule);
}

#[track_caller]
fn finds_among<P: Plan>(
    drawn: BoxedStrategy<Vec<Step>>,
    steps_max: usize,
    phrases: &[&str],
    rule: &str,
) {
    let failure = find::<Faulty<P>>(Some(drawn)).unwrap();
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
    assert_eq!(failure.rule.unwrap().group, rule, "{report}");
}

#[test]
fn a_lost_baton_is_found() {
    finds::<LostBaton>(5, &["is cancelled", "sleeps on"], "cancelled_getters");
    let failure = failure_of::<LostBaton>("cancelled_getters", "a_woken_getter_passes_the_wake_on");
    assert!(failure.contains("passes the wake on"), "{failure}");
}

#[test]
fn a_missed_drain_wake_is_found() {
    finds::<MissedDrain>(
        5,
        &["Drain", "should have ended", "sleeps on"],
        "drain_wakes",
    );
    let failure = failure_of::<MissedDrain>("drain_wakes", "the_last_active_key_ends_the_drain");
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
        "sleeps on",
    ];
    finds::<LateAlarm>(7, &phrases, "timer_owner_hand_over");
    let failure = failure_of::<LateAlarm>(
        "timer_owner_hand_over",
        "a_deadline_that_moves_forward_is_watched",
    );
    assert!(failure.contains("Ok(Sooner)"), "{failure}");
    assert!(
        failure.contains("moves forward is watched at once"),
        "{failure}"
    );
}

/// If its worker completes the key first, that is the shorter way to find out.
#[test]
fn a_double_hand_out_is_found() {
    let completes = |step: &Step| match step {
        Step::Start(call) => *call != Call::Get,
        Step::NextUnrun(_) => true,
        Step::Add(_) | Step::Cancel(_) | Step::Nudge(_) | Step::Settle => false,
        _ => true,
    };
    let none_completes = calls().prop_map(move |mut steps| {
        steps.retain(|step| !completes(step));
        steps
    });
    let phrases = ["Add(1): Ok(Ready)", "call #1", "key 1", "call #2"];
    finds_among::<HandedOutTwice>(none_completes.boxed(), 4, &phrases, "dirty_re_add");
    assert!(find::<Faulty<HandedOutTwice>>(Some(calls().boxed())).is_some());
}

#[test]
fn a_leaked_slot_is_found() {
    finds::<LeakedSlot>(7, &["dropped before it runs"], "cancelled_getters");
    let failure = failure_of::<LeakedSlot>(
        "cancelled_getters",
        "a_run_that_was_declared_over_is_completed",
    );
    assert!(
        failure.contains("even if it is dropped before it ran"),
        "{failure}"
    );
}

#[test]
fn a_call_that_gives_up_a_part_of_a_millisecond_early_is_found() {
    let failure = find::<Faulty<Hasty>>(None).unwrap();
    let report = failure.to_string();
    assert_eq!(failure.timeline.len(), 0, "{report}");
    assert!(report.contains("ns): call #1 should wait"), "{report}");
    assert!(find::<Faulty<Hasty>>(Some(calls().boxed())).is_none());
}

/// The same holds for a case that never waits.
#[test]
fn a_case_reports_how_it_got_there() {
    let failure = failure_of::<Careless>("panicking_worker", "its_key_comes_back_as_failed");
    let (report, place) = failure.split_once(", at ").unwrap();
    let expected = "\
panicking_worker::its_key_comes_back_as_failed
  1. a new queue, limited by Exponential { base_ns: 1000000, max_ns: 1000000000 }
  2. add(1): Ok(Ready)
  3. a worker takes the first ready key, and panics
  4. num_requeues(1): 0
assertion `left == right` failed: num_requeues 1
  left: 0
 right: 1";
    assert_eq!(report, expected);
    assert!(place.contains("panicking_worker.rs"), "{place}");
    assert!(place.contains("Broken: panicking_worker: "), "{place}");
}
