//! Runs that are stopped, killed or never end.
#![cfg(unix)]
#![allow(
    missing_docs,
    unreachable_pub,
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic, and its support is shared"
)]

mod support;

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::time::Instant;

use support::Place;

const SIGKILL: i32 = 9;

/// How many files are in [`much`].
const FILES: usize = 800;

/// A tree about which a verbose run says more than a pipe holds, so that it stands still in the
/// middle until it is read from. There is enough for two such runs: a pipe holds 64 KiB at most,
/// and a line has over 230 bytes.
fn much() -> Place {
    let mut place = Place::new();
    let padding = "p".repeat(220);
    for file in 0..FILES {
        place.write(format!("d{}/{padding}{file}", file % 30), "content");
    }
    place
}

#[test]
fn a_killed_run_is_made_good_by_the_next() {
    let place = much();
    for lines in [1, 100] {
        let mut run = place.start(&["--verbose"]);
        run.read_stdout(lines);
        run.signal("KILL");
        let outcome = run.end();
        assert_eq!(outcome.status.signal(), Some(SIGKILL));
        assert!(!place.is_mirrored());
    }
    let last = place.mirror(&[]);
    last.assert_code(0);
    place.assert_mirrored();
    assert!(last.figure("files copied") < FILES as u64);
}

#[test]
fn a_stopped_run_says_what_is_left() {
    let place = much();
    for signal in ["INT", "TERM"] {
        let mut run = place.start(&["--verbose", "--grace", "0"]);
        // One line may be about the root itself; before another, all that is in it has been added.
        run.read_stdout(2);
        run.signal(signal);
        run.wait_for("stopping");
        let outcome = run.end();
        outcome.assert_code(1);
        let left = outcome.figure("left undone");
        assert!(left > 10, "{outcome:?}");
        let named = outcome.stderr.matches("mirror: left undone: ").count();
        assert_eq!(named, 11, "ten names and the rest: {}", outcome.stderr);
        assert_eq!(outcome.figure("given up"), 0);
    }
    place.mirror(&[]).assert_code(0);
    place.assert_mirrored();
}

#[test]
fn a_second_signal_stops_at_once() {
    let mut place = Place::new();
    place.write("file", "content");
    let mut run = place.start_unheard(&["--verbose", "--grace", "3600"]);
    // The worker that has copied the file cannot say so, so the workers cannot end by themselves.
    run.wait_for_file(&place.target().join("file"));
    run.signal("INT");
    run.wait_for("stopping");
    run.signal("INT");
    run.end_unread().assert_code(130);
}

#[test]
fn a_signal_asks_what_the_queue_holds() {
    let mut place = Place::new();
    place.write("file", "content");
    let mut run = place.start_unheard(&["--verbose", "--workers", "4"]);
    // The worker that has copied the file waits for ever to say so.
    run.wait_for_file(&place.target().join("file"));
    run.signal("USR1");
    run.wait_for("mirror: active for ");
    run.signal("INT");
    run.wait_for("stopping");
    run.signal("INT");
    let outcome = run.end_unread();
    outcome.assert_code(130);
    assert!(outcome.stderr.contains(": file\n"), "{}", outcome.stderr);
}

#[test]
fn a_watch_follows_every_change() {
    let mut place = Place::new();
    place.write("storm", "before");
    place.write("old/a/file", "x");
    place.write("old/b/file", "y");
    place.write("gone/file", "z");
    let mut run = place.start(&["--watch", "--verbose"]);
    run.wait_for("are the same");
    place.assert_mirrored();

    let source = place.source();
    let begun = Instant::now();
    for write in 0..300 {
        fs::write(source.join("storm"), format!("{write:03}")).unwrap();
    }
    let storm_millis = begun.elapsed().as_millis();
    fs::create_dir_all(source.join("new/deep/deeper")).unwrap();
    fs::write(source.join("new/deep/deeper/file"), "new").unwrap();
    fs::rename(source.join("old"), source.join("moved")).unwrap();
    fs::write(source.join("moved/a/file"), "after the move").unwrap();
    fs::remove_dir_all(source.join("gone")).unwrap();
    fs::write(source.join("gone"), "a file now").unwrap();
    // After the last change comes a last line.
    while !place.is_mirrored() {
        run.wait_for("are the same");
    }

    run.signal("INT");
    let outcome = run.end();
    outcome.assert_code(0);
    place.assert_mirrored();
    // A copy is made when the file has rested, by a clock that ticks every 10 ms at worst.
    let copies = outcome.stdout.matches("copied storm\n").count() as u128;
    assert!(
        copies <= storm_millis / 10 + 2,
        "{copies} in {storm_millis} ms"
    );
}
