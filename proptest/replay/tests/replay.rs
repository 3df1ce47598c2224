//! What a replay reports of a recording that is wrong.

#![allow(clippy::unwrap_used, reason = "a test")]

use requeue_replay::{Kind, Report, Runtime};

fn replay(line: &str) -> Report {
    requeue_replay::replay(line, Kind::Queue, Runtime::CoreFixed).unwrap()
}

/// A recording of one key with a limiter that doubles from one nanosecond.
fn recording(ops: &str, end: &str) -> String {
    let limiter = r#"{"type":"exponential","base_ns":1,"max_ns":8}"#;
    format!(r#"{{"id":"t-0","keys":1,"limiter":{limiter},"ops":[{ops}],"final":{{{end}}}}}"#)
}

const END: &str = r#""len":1,"shutting_down":false,"t":0,"depth":1,"adds":1,"retries":0,
    "latency_ns":[],"work_duration_ns":[],"unfinished_work_ns":0,"longest_running_ns":0,
    "metric_ticks":0,"num_requeues":[0]"#;

fn end() -> String {
    END.replace('\n', "")
}

#[test]
fn a_mismatch_is_shown_with_its_history() {
    let ops = r#"{"op":"add","k":1,"len":1},{"op":"get","would_block":true,"len":1}"#;
    let report = replay(&recording(ops, &end()));
    assert_eq!((report.steps, report.mismatches), (2, 1));
    let history = report.first_mismatch.unwrap();
    for shown in [
        "  0ns: Step { op: Add(One { k: 1, refused: false }), len: Some(1), drained: [] }\n",
        "would_block: true }), len: Some(1), drained: [] }   <- not as recorded\n",
        "which is not what the rules of that queue say: Get(Get { k: Some(1), priority: 0,",
        "the queue: total 1, ready 1; 1 ready\n",
    ] {
        assert!(history.contains(shown), "no {shown:?} in\n{history}");
    }
}

#[test]
fn what_the_end_says_is_compared() {
    let ops = r#"{"op":"add","k":1,"len":1}"#;
    assert_eq!(replay(&recording(ops, &end())).mismatches, 0);
    for right in end().split(',') {
        let (name, value) = right.split_once(':').unwrap();
        let wrong = match value {
            "false" => "true",
            "[]" | "[0]" => "[1]",
            _ => "7",
        };
        let end = end().replace(right, &format!("{name}:{wrong}"));
        assert_eq!(replay(&recording(ops, &end)).mismatches, 1, "{end}");
    }
}

#[test]
fn what_cannot_be_replayed_is_an_error() {
    for (line, shown) in [
        ("not json", "line 1: "),
        (
            &recording(r#"{"op":"cancel","k":1,"len":1}"#, &end()),
            "unknown variant `cancel`",
        ),
        (
            &recording(r#"{"op":"forget","k":1,"n":1,"len":1}"#, &end()),
            "unknown field `n`",
        ),
    ] {
        let text = requeue_replay::replay(line, Kind::Queue, Runtime::CoreFixed).unwrap_err();
        assert!(text.contains(shown), "no {shown:?} in {text:?}");
    }
}
