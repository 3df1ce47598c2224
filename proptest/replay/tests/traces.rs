//! Everything that the real client-go was recorded doing, replayed on each of our queues.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeMap;
use std::fs::File;
use std::io::read_to_string;
use std::path::Path;

use flate2::read::MultiGzDecoder;
use requeue_replay::{Kind, Report, Runtime, backoff, differences, replay};

fn recorded(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../traces");
    let file = File::open(folder.join(format!("{name}.jsonl.gz"))).unwrap();
    read_to_string(MultiGzDecoder::new(file)).unwrap()
}

/// The differences are pinned, so that a change of behaviour shows even where it is allowed.
fn expect(report: &Report, traces: u64, steps: u64, expected: &[(&'static str, u64)]) {
    let history = report.first_mismatch.as_deref().unwrap_or_default();
    assert_eq!(report.mismatches, 0, "{history}");
    assert_eq!((report.traces, report.steps), (traces, steps));
    let expected = BTreeMap::from_iter(expected.iter().copied());
    assert_eq!(report.differences, expected);
}

fn expect_on_each(
    name: &str,
    kind: Kind,
    [traces, steps]: [u64; 2],
    differences: &[(&'static str, u64)],
) {
    let recorded = recorded(name);
    for runtime in Runtime::ALL {
        println!("{runtime:?}");
        let report = replay(&recorded, kind, runtime).unwrap();
        expect(&report, traces, steps, differences);
    }
}

#[test]
fn queue() {
    expect_on_each(
        "queue",
        Kind::Queue,
        [400, 44_834],
        &[
            (differences::ADD_AFTER_SHUTDOWN, 1701),
            (differences::DONE_OF_INACTIVE, 752),
            (differences::DRAIN_WAITS, 877),
            (differences::LIMITER_AFTER_SHUTDOWN, 815),
        ],
    );
}

#[test]
fn queue_quirks() {
    expect_on_each(
        "queue_quirks",
        Kind::Queue,
        [80, 9880],
        &[
            (differences::ADD_AFTER_SHUTDOWN, 571),
            (differences::DONE_OF_INACTIVE, 433),
            (differences::DRAIN_WAITS, 310),
            (differences::EVERY_DRAINER, 25),
            (differences::LIMITER_AFTER_SHUTDOWN, 204),
            (differences::QUEUED_ONCE, 3061),
            (differences::SHUT_DOWN_INTERRUPTS, 270),
        ],
    );
}

#[test]
fn queue_ties() {
    let ties = [(differences::TIES_IN_ORDER, 95)];
    expect_on_each("queue_ties", Kind::Ties, [40, 1649], &ties);
}

#[test]
fn limiters() {
    let left_open = [(differences::DELAY_OF_2_POW_63, 2)];
    expect_on_each("limiter", Kind::Limiter, [200, 14_754], &left_open);
}

#[test]
fn backoffs() {
    let report = backoff::replay(&recorded("backoff")).unwrap();
    expect(&report, 200, 5831, &[(backoff::DURATION_PAST_2_POW_63, 2)]);
}

#[test]
fn priorities() {
    expect_on_each(
        "priority",
        Kind::Priority,
        [200, 21_280],
        &[
            (differences::ADDED_ACTIVE, 13),
            (differences::DELAY_ENDED, 17),
            (differences::LEN_COUNTS_READY, 5438),
            (differences::RETRY_WITHOUT_DELAY, 82),
            (differences::SHUT_DOWN_HANDS_OUT, 21),
            (differences::TIES_IN_ORDER, 1),
        ],
    );
    // All are predicted by the model with controller-runtime's rules, and so many are compared.
    let report = replay(&recorded("priority"), Kind::Priority, Runtime::CoreFixed).unwrap();
    assert_eq!(report.covered, Some(19_356));
}
