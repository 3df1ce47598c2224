//! Everything that the real client-go was recorded doing, replayed on each of our queues.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeMap;
use std::path::Path;

use requeue_replay::{Report, Runtime, differences, file, replay};

fn replayed(name: &str, runtime: Runtime) -> Report {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../traces");
    let text = file::read(&folder.join(format!("{name}.jsonl.gz"))).unwrap();
    let report = replay(&text, runtime).unwrap();
    let history = report.first_mismatch.as_deref().unwrap_or_default();
    assert_eq!(report.mismatches, 0, "{}: {history}", runtime.name());
    report
}

/// The differences are pinned, so that a change of behaviour shows even where it is allowed.
fn expect(name: &str, traces: u64, steps: u64, expected: &[(&'static str, u64)]) {
    for runtime in Runtime::ALL {
        let report = replayed(name, runtime);
        assert_eq!((report.traces, report.steps), (traces, steps));
        let expected = BTreeMap::from_iter(expected.iter().copied());
        assert_eq!(report.differences, expected, "{}", runtime.name());
    }
}

#[test]
fn queue() {
    expect(
        "queue",
        400,
        44_834,
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
    expect(
        "queue_quirks",
        80,
        9880,
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
    expect("queue_ties", 40, 1649, &[(differences::TIES_IN_ORDER, 95)]);
}

#[test]
fn limiters() {
    let name = requeue_replay::limiters::DELAY_OF_2_POW_63;
    expect("limiter", 200, 14_754, &[(name, 2)]);
}

#[test]
fn backoffs() {
    let name = requeue_replay::backoff::DURATION_PAST_2_POW_63;
    expect("backoff", 200, 5831, &[(name, 2)]);
}

#[test]
fn priorities() {
    expect(
        "priority",
        200,
        21_280,
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
    let report = replayed("priority", Runtime::CoreFixed);
    assert_eq!(report.covered, Some(19_356));
}
