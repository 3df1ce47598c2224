//! A real process that gets real signals. No test waits for a time: both sides say what they have
//! done, in lines.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that panics has failed"
)]

use std::env;
use std::io::{BufRead, BufReader, Lines, Write, stdin};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

use requeue_std::{Action, WorkQueue, on_ctrl_c};

/// Set for the process that gets the signals, which is this one again.
const CHILD: &str = "REQUEUE_CTRL_C_CHILD";

/// Not a test, but the other process: each of its runs ends when a line comes in.
#[test]
fn child() {
    if env::var_os(CHILD).is_none() {
        return;
    }
    let queue = WorkQueue::new();
    queue.add_many([1, 2], |_| unreachable!());
    let stopping = queue.clone();
    on_ctrl_c(move || {
        stopping.shut_down();
        println!("\nis: stopping");
    })
    .unwrap();
    println!("\nis: second handler {}", on_ctrl_c(|| {}).is_err());
    let leftovers = queue.run(1, |key| {
        println!("\nis: working on {key}");
        stdin().read_line(&mut String::new()).unwrap();
        Action::Success
    });
    println!("\nis: ended with {} left", leftovers.unwrap().len());
}

struct Process {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Process {
    fn start() -> Self {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "child", "--nocapture"])
            .env(CHILD, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut process = Self {
            child,
            input,
            output,
        };
        process.says("second handler true");
        process.says("working on 1");
        process
    }

    /// Reads the next line that the test in the process has written.
    #[track_caller]
    fn says(&mut self, expected: &str) {
        let mut lines = self.output.by_ref().map(Result::unwrap);
        let said = lines.find_map(|line| line.strip_prefix("is: ").map(str::to_owned));
        assert_eq!(said.as_deref(), Some(expected));
    }

    fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &id]).status();
        assert!(sent.unwrap().success());
    }

    fn lets_a_run_end(&mut self) {
        self.input.write_all(b"\n").unwrap();
    }

    fn end(mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }
}

#[test]
fn the_first_signal_drains() {
    for signal in ["INT", "TERM"] {
        let mut process = Process::start();
        process.signal(signal);
        process.says("stopping");
        process.lets_a_run_end();
        process.says("working on 2");
        process.lets_a_run_end();
        process.says("ended with 0 left");
        assert!(process.end().success());
    }
}

#[test]
fn the_second_signal_ends_the_process() {
    let mut process = Process::start();
    process.signal("INT");
    process.says("stopping");
    process.signal("INT");
    assert_eq!(process.end().code(), Some(130));
}
