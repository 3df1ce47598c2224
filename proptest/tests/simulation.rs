//! The users' kit, on reconcilers that are right and on some that are not.

#[path = "../examples/fleet.rs"]
#[allow(dead_code, reason = "its `main` is not called here")]
mod fleet;
#[path = "simulation/scripts.rs"]
mod scripts;
#[path = "simulation/worlds.rs"]
mod worlds;

use std::env;
use std::process::Command;
use std::time::Duration;

use requeue_core::Workers;
use requeue_core::limiter::Exponential;
use requeue_proptest::simulation::Property::{
    Always, Eventually, HistoryEnds, RunEnds, SameSeedSameHistory, WorldPanics,
};
use requeue_proptest::simulation::{Check, Fault};

use crate::fleet::Fleet;
use crate::worlds::{Counting, Habit, TIMEOUT};

/// The README shows what the example prints.
#[test]
fn a_planted_bug_is_reported_in_a_few_lines() {
    let failure = Check::new(Fleet::with_bug).find().unwrap_err().to_string();
    assert!(README.contains(&failure), "{failure}");
}

const README: &str = include_str!("../README.md");

#[test]
fn without_the_bug_thousands_of_seeds_pass() {
    Check::new(Fleet::default).seeds(3_000).run();
}

fn with(habit: Habit) -> Check<Counting> {
    // A grant that never comes is waited for again and again.
    Check::new(move || Counting::new(habit)).settings(|it| it.settle = 5 * TIMEOUT)
}

#[test]
fn each_bad_habit_is_found_and_its_history_is_short() {
    let gives_up = with(Habit::None).workers(Workers::new(2).max_retries(1));
    let never_rests = with(Habit::NeverRests).settings(|it| it.steps_max = 1_000);
    let adds = with(Habit::AddsWhatIsMissing).seeds(1_000);
    let oversleeps = with(Habit::SuspendsAfterItAsked).seeds(1_000);
    let twice = with(Habit::CountsTwice).settings(|it| it.faults = ALL_BUT_LATE.to_vec());
    // What the history shows, and in how many lines at most. Two kinds cannot be shortened.
    for (check, property, shows, lines_max) in [
        (with(Habit::SwallowsFailures), Eventually, "LOST", 8),
        (twice, Always, "run 2 begins, attempt 2", 12),
        (with(Habit::QuitsAtShutdown), Eventually, "SHUT DOWN", 14),
        (with(Habit::Hangs), RunEnds, "run 1 begins", 4),
        (with(Habit::Spins), RunEnds, "run 1 begins", 4),
        (
            with(Habit::AssertsInItsWorld),
            WorldPanics,
            "Grows(0, 1)",
            4,
        ),
        (adds, Always, "write: done LATE", 20),
        (oversleeps, Always, "suspend: for 60s at most", 20),
        (gives_up, Eventually, "the key is given up", 14),
        (never_rests, HistoryEnds, "lines are left out", 121),
        (with(Habit::LeftToChance), SameSeedSameHistory, "", 121),
    ] {
        let failure = check.find().expect_err(shows);
        assert_eq!(failure.breach.property, property, "{failure}");
        assert!(failure.timeline.contains(shows), "{shows}: {failure}");
        let lines = failure.timeline.lines().count();
        assert!(lines <= lines_max, "{lines} lines: {failure}");
        let is_short = property != HistoryEnds || failure.events == 1;
        assert!(is_short, "{failure}");
    }
}

#[test]
fn habits_that_do_no_harm_pass_and_a_run_that_waits_for_an_event_misses_none() {
    let adds = with(Habit::AddsWhatIsMissing).settings(|it| it.faults = ALL_BUT_LATE.to_vec());
    adds.seeds(1_000).run();
    with(Habit::SuspendsAtItsEnd).seeds(1_000).run();
    with(Habit::SuspendsBeforeItAsks).seeds(1_000).run();
    let soon = with(Habit::None).settings(|it| it.settle = Duration::from_secs(5));
    soon.run();
    with(Habit::Polls).run();
}

const ALL_BUT_LATE: [Fault; 4] = [
    Fault::RequestLost,
    Fault::AnswerLost,
    Fault::Panic,
    Fault::Abort,
];

/// A failure that comes late counts: after an early one the key is mostly added once more.
#[test]
fn a_key_without_a_run_is_found_often_and_reported_as_one_run() {
    let check = with(Habit::SwallowsFailures);
    let failures = (0..1_000).filter_map(|seed| check.replay(seed).err());
    let failures: Vec<_> = failures.collect();
    let found = failures.len();
    assert!(found >= 30, "in {found} of 1000 histories");
    for failure in failures {
        let runs = failure.timeline.matches(" begins").count();
        assert_eq!(runs, 1, "{failure}");
    }
}

/// Every fault there is, and every way to shut down, happens in some of the histories. Each is the
/// same again, and no other's.
#[test]
fn nothing_that_production_does_is_left_out_and_a_seed_gives_the_same_history_again() {
    let base = Duration::from_millis(3);
    let limiter = move || Exponential::new(base, 1_000 * base);
    let check = || Check::new(Fleet::default).workers(3).limiter(limiter);
    let (first, second) = (check(), check());
    let histories: Vec<_> = (0..200).map(|seed| first.history(seed)).collect();
    for (seed, history) in histories.iter().enumerate().take(50) {
        assert_eq!(*history, second.history(seed as u64));
    }
    let different = histories.windows(2).all(|pair| pair[0] != pair[1]);
    assert!(different, "seeds differ");
    let happenings = "the request was LOST|the answer was LOST|done LATE|PANICS: simulated|\
        run is ABORTED|SHUT DOWN: Drain|SHUT DOWN: Finish|\
        SHUT DOWN: Abort|SHUT DOWN: Crash|what was handed back|add_after|\
        refused, the queue is shutting down|add: dirty|add: coalesced|attempt 4";
    for happening in happenings.split('|') {
        let seen = histories.iter().any(|history| history.contains(happening));
        assert!(seen, "{happening}");
    }
}

#[test]
fn what_is_left_out_does_not_happen() {
    let check = Check::new(Fleet::with_bug).settings(|it| {
        it.faults = vec![Fault::Abort];
        it.shuts_down = false;
    });
    let histories: String = (0..100).map(|seed| check.history(seed)).collect();
    assert!(histories.contains("ABORTED"));
    for other in ["LOST", "PANICS", "SHUT DOWN"] {
        assert!(!histories.contains(other), "{other}");
    }
}

#[test]
fn a_seed_gives_the_same_history_in_another_process_where_a_variable_names_it() {
    let check = Check::new(Fleet::with_bug);
    if env::var_os("REQUEUE_SIM_SEED").is_some() {
        check.run();
        return;
    }
    let seed = (1..).find(|seed| check.replay(*seed).is_err());
    let failure = check.replay(seed.unwrap()).unwrap_err().to_string();
    let this = "a_seed_gives_the_same_history_in_another_process_where_a_variable_names_it";
    let output = Command::new(env::current_exe().unwrap())
        .args(["--exact", this, "--nocapture"])
        .env("REQUEUE_SIM_SEED", seed.unwrap().to_string())
        .output()
        .unwrap();
    assert!(!output.status.success());
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains(&failure), "{failure}\n\nand there:\n\n{text}");
}
