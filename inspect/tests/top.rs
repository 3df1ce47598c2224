//! `requeue-top` as text, beside a window.
#![allow(missing_docs, clippy::unwrap_used, reason = "a test may panic")]

use std::process::{Command, Output};
use std::time::Duration;

use requeue::std::WorkQueue;
use requeue_inspect::{Inspector, Registry};

fn top(words: &[&str]) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_requeue-top"));
    program.args(words).output().unwrap()
}

#[test]
fn it_prints_what_keeps_keys_from_running() {
    let (queue, other) = (WorkQueue::new(), WorkQueue::<u32>::new());
    let registry = Registry::new().with(Inspector::new("orders/new", &queue));
    let registry = registry.with(Inspector::new("nodes", &other));
    let window = registry.listen("127.0.0.1:0").unwrap();
    let url = window.address().to_string();

    queue.add("a\u{1b}[2J".to_owned()).unwrap();
    queue
        .add_after("later".to_owned(), Duration::from_secs(86_400 * 9))
        .unwrap();
    queue.pause();
    let printed = top(&["--once", &url]);
    assert!(printed.status.success(), "{printed:?}");
    let text = String::from_utf8(printed.stdout).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines,
        [
            "orders/new: 1 ready, 0 active, 1 delayed, 0 runs, 0 failures",
            "  ! The queue is paused: 1 ready key will not run until it is unpaused.",
            "  a\\u{1b}[2J: The queue is paused: no key runs until it is unpaused.",
            "  later: It was added for later, and waits for 8 d 23 h more.",
            "nodes: 0 ready, 0 active, 0 delayed, 0 runs, 0 failures",
        ]
    );
}

#[test]
fn it_says_what_is_wrong() {
    let usage = top(&["--help"]);
    assert_eq!(usage.status.code(), Some(2));
    assert!(
        String::from_utf8(usage.stderr)
            .unwrap()
            .starts_with("usage: requeue-top")
    );

    // A port that was free, and is closed.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", free.local_addr().unwrap());
    drop(free);
    let refused = top(&["--once", &url]);
    assert_eq!(refused.status.code(), Some(1));
    let why = String::from_utf8(refused.stderr).unwrap();
    assert!(why.contains(&url) && why.contains("refused"), "{why}");
}
