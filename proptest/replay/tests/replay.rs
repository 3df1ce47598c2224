//! The `replay` program: what it prints, and how it exits.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs the program on a file of these lines. Returns its exit code and what it printed.
fn replay(name: &str, lines: &str) -> (i32, String, String) {
    run(&[
        "--runtime",
        "core-fixed",
        write(name, lines).to_str().unwrap(),
    ])
}

fn run(arguments: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_replay"))
        .args(arguments)
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let code = output.status.code().unwrap();
    (code, text(output.stdout), text(output.stderr))
}

fn write(name: &str, lines: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, lines).unwrap();
    path
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
    let (code, out, _) = replay("wrong.jsonl", &recording(ops, &end()));
    assert_eq!(code, 1);
    for shown in [
        "wrong.jsonl: traces 1, steps 2, mismatches 1, documented differences 0",
        "  0ns: {\"k\":1,\"len\":1,\"op\":\"add\"}\n",
        "  0ns: {\"len\":1,\"op\":\"get\",\"would_block\":true}   <- not as recorded\n",
        "recorded Seen { outcome: WouldBlock, gauges: None, len: 1 }, which is not what",
        "1: KeyState { ready: true, active: false",
    ] {
        assert!(out.contains(shown), "no {shown:?} in\n{out}");
    }
}

#[test]
fn what_the_end_says_is_compared() {
    let ops = r#"{"op":"add","k":1,"len":1}"#;
    let wrong_ends = [
        ("\"len\":1", "\"len\":0"),
        ("\"t\":0", "\"t\":1"),
        ("\"depth\":1", "\"depth\":0"),
        ("\"adds\":1", "\"adds\":2"),
        ("\"retries\":0", "\"retries\":1"),
        ("\"latency_ns\":[]", "\"latency_ns\":[1]"),
        ("\"work_duration_ns\":[]", "\"work_duration_ns\":[1]"),
        ("\"unfinished_work_ns\":0", "\"unfinished_work_ns\":1"),
        ("\"longest_running_ns\":0", "\"longest_running_ns\":1"),
        ("\"metric_ticks\":0", "\"metric_ticks\":1"),
        ("\"num_requeues\":[0]", "\"num_requeues\":[1]"),
        ("\"shutting_down\":false", "\"shutting_down\":true"),
    ];
    for (index, (right, wrong)) in wrong_ends.into_iter().enumerate() {
        let end = end().replace(right, wrong);
        let (code, out, _) = replay(&format!("end-{index}.jsonl"), &recording(ops, &end));
        assert_eq!(code, 1, "{wrong}: {out}");
    }
}

#[test]
fn what_cannot_be_replayed_is_reported_in_one_line() {
    let cases = [
        ("", "line 1: no recordings"),
        ("not json", "line 1: not a recording: "),
        (
            &recording(r#"{"op":"cancel","k":1,"len":1}"#, &end()),
            "unknown variant `cancel`",
        ),
        (
            &recording(r#"{"op":"get","len":1}"#, &end()),
            "a member is missing: {\"len\":1,\"op\":\"get\"}",
        ),
        (
            &recording("", &end().replace("\"depth\":1,", "")),
            "t-0: no \"depth\"",
        ),
        (
            &recording(r#"{"op":"add","k":2,"len":1}"#, &end()),
            "key 2 is not one of 1..=1",
        ),
    ];
    for (index, (lines, shown)) in cases.into_iter().enumerate() {
        let (code, _, problem) = replay(&format!("bad-{index}.jsonl"), lines);
        assert_eq!(code, 2, "{lines}: {problem}");
        assert!(problem.contains(shown), "no {shown:?} in {problem:?}");
        assert_eq!(problem.trim_end().lines().count(), 1, "{problem}");
    }
}

#[test]
fn a_folder_is_replayed_file_by_file() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../traces");
    let (code, out, problem) = run(&["--runtime=core-growable", folder]);
    assert_eq!((code, problem.as_str()), (0, ""), "{out}");
    let files: Vec<_> = out
        .lines()
        .filter(|line| !line.starts_with(' '))
        .map(|line| line.split(':').next().unwrap())
        .collect();
    let names = [
        "backoff",
        "limiter",
        "priority",
        "queue",
        "queue_quirks",
        "queue_ties",
    ];
    assert_eq!(files, names.map(|name| format!("{name}.jsonl.gz")));
    assert!(
        out.contains("\n  steps before a difference changes a result: 19356\n"),
        "{out}"
    );
}

#[test]
fn mistakes_in_the_call() {
    for (arguments, shown) in [
        (&[][..], "usage: replay"),
        (&["--runtime"], "usage: replay"),
        (&["--runtime", "std"], "usage: replay"),
        (&["--runtime", "smol", "x"], "no runtime \"smol\""),
        (&["--fast", "x"], "no option \"--fast\""),
        (&["--runtime", "std", "/nowhere"], "/nowhere: "),
    ] {
        let (code, _, problem) = run(arguments);
        assert_eq!(code, 2);
        assert!(problem.contains(shown), "no {shown:?} in {problem:?}");
    }
}
