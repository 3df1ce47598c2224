//! A process that receives signals: this program starts itself as a child.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitStatus, Stdio};

use requeue_kube::shutdown_on_signal;

fn main() {
    if std::env::args().any(|word| word == "child") {
        return child();
    }
    for (first, second, exit_code) in [("TERM", "INT", 130), ("INT", "TERM", 143)] {
        assert_eq!(
            two_signals(first, second).code(),
            Some(exit_code),
            "{first}"
        );
        println!("SIG{first} cancels the token, and SIG{second} after it ends the process: ok");
    }
}

#[tokio::main(flavor = "current_thread")]
async fn child() {
    let stop = shutdown_on_signal().unwrap();
    println!("ready");
    stop.cancelled().await;
    println!("stopping");
    // It drains for ever.
    std::future::pending::<()>().await;
}

fn two_signals(first: &str, second: &str) -> ExitStatus {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .arg("child")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "ready");
    send(first, &child);
    assert_eq!(lines.next().unwrap().unwrap(), "stopping");
    send(second, &child);
    assert!(lines.next().is_none());
    child.wait().unwrap()
}

fn send(signal: &str, child: &Child) {
    let sent = Command::new("kill")
        .args(["-s", signal, &child.id().to_string()])
        .status();
    assert!(sent.unwrap().success());
}
