//! `requeue-top` in a terminal that tmux makes: a queue's figures, one key, and the way out.
//!
//! Whether there is a tmux shows when this runs; without one there is nothing to test, and that is no
//! test that passed.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may panic"
)]

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use requeue::std::WorkQueue;
use requeue_inspect::{Inspector, Registry};

/// If a text is not shown after this time, it is broken.
const BROKEN_AFTER: Duration = Duration::from_secs(60);

fn main() {
    let name = "a_terminal_shows_the_queue_and_one_key";
    let mut words = env::args()
        .skip(1)
        .filter(|word| !word.starts_with('-'))
        .peekable();
    let is_selected = words.peek().is_none() || words.any(|word| name.contains(&word));
    if !is_selected || env::args().any(|word| word == "--list") {
        return;
    }
    if Command::new("tmux")
        .arg("-V")
        .stdout(Stdio::null())
        .status()
        .is_err()
    {
        return println!("NOT RUN: there is no tmux on this machine");
    }
    a_terminal_shows_the_queue_and_one_key();
    println!("test {name} ... ok");
}

fn a_terminal_shows_the_queue_and_one_key() {
    let (orders, nodes) = (WorkQueue::new(), WorkQueue::<u32>::new());
    let registry = Registry::new().with(Inspector::new("orders", &orders));
    let window = registry
        .with(Inspector::new("nodes", &nodes))
        .listen("127.0.0.1:0")
        .unwrap();
    orders.add("first".to_owned()).unwrap();
    orders
        .add_after("later".to_owned(), Duration::from_secs(86_400 * 9))
        .unwrap();
    nodes.add(7).unwrap();
    orders.pause();

    let mut terminal = Terminal::start(&format!("http://{}/", window.address()));
    let shown = terminal.until("1 ready, 0 active, 1 delayed");
    assert!(
        shown.contains("The queue is paused: 1 ready key will not run"),
        "{shown}"
    );
    // It follows.
    orders.add("second".to_owned()).unwrap();
    terminal.until("2 ready, 0 active, 1 delayed");
    terminal.press("f f f");
    let shown = terminal.until("state: delayed");
    assert!(
        shown.contains("later") && !shown.contains("first"),
        "{shown}"
    );
    terminal.press("Down Enter");
    terminal.until("It was added for later, and waits for 8 d 23 h more.");
    terminal.press("Escape");
    terminal.until("WHY IT DOES NOT RUN");
    terminal.press("Tab f f f");
    let shown = terminal.until("It waits for a worker, and is next.");
    assert!(
        shown.contains("Nothing keeps keys from running."),
        "{shown}"
    );
    // Without its window it says so, and comes back by itself.
    drop(window);
    terminal.until("no news: ");
    terminal.press("q");
    terminal.ended();
}

/// A terminal without a screen: tmux tells when the program has written.
struct Terminal {
    socket: String,
    tmux: Child,
    orders: ChildStdin,
    lines: Receiver<String>,
}

impl Terminal {
    fn start(url: &str) -> Self {
        let socket = format!("requeue-top-{}", std::process::id());
        let program = env!("CARGO_BIN_EXE_requeue-top");
        let mut tmux = Command::new("tmux");
        tmux.args([
            "-L",
            &socket,
            "-f",
            "/dev/null",
            "-C",
            "new-session",
            "-x",
            "120",
            "-y",
            "30",
        ]);
        tmux.args([program, url])
            .env("TERM", "xterm-256color")
            .env_remove("TMUX");
        let mut tmux = tmux
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (orders, output) = (tmux.stdin.take().unwrap(), tmux.stdout.take().unwrap());
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in BufReader::new(output).split(b'\n') {
                let line = String::from_utf8_lossy(&line.unwrap()).into_owned();
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Self {
            socket,
            tmux,
            orders,
            lines,
        }
    }

    /// Waits until a text is on the screen, and returns the screen.
    fn until(&mut self, text: &str) -> String {
        let broken = Instant::now() + BROKEN_AFTER;
        loop {
            let capture = ["-L", &self.socket, "capture-pane", "-p"];
            let screen = Command::new("tmux").args(capture).output().unwrap();
            let screen = String::from_utf8(screen.stdout).unwrap();
            if screen.contains(text) {
                return screen;
            }
            // The next line says that the program has written.
            let line = self.lines.recv_timeout(BROKEN_AFTER);
            let is_broken = line.is_err() || Instant::now() > broken;
            assert!(!is_broken, "no {text} in\n{screen}");
        }
    }

    fn press(&mut self, keys: &str) {
        writeln!(self.orders, "send-keys {keys}").unwrap();
    }

    fn ended(mut self) {
        while self.lines.recv_timeout(BROKEN_AFTER).unwrap() != "%exit" {}
        assert!(self.tmux.wait().unwrap().success());
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let kill = ["-L", &self.socket, "kill-server"];
        let _ = Command::new("tmux")
            .args(kill)
            .stderr(Stdio::null())
            .status();
        let _ = self.tmux.wait();
    }
}
