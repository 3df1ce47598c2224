//! Progress on stderr: a bar in a terminal, lines elsewhere.

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use indicatif::{HumanBytes, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::mirror::{Tally, locked};

/// The time between two lines if there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(1);

pub(crate) enum Progress {
    Bar(ProgressBar),
    /// When the last line was written.
    Lines(Mutex<Instant>),
}

/// The number of keys in the queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(crate) ready: usize,
    pub(crate) active: usize,
    pub(crate) delayed: usize,
}

impl Load {
    /// Whether there is nothing left to do.
    pub(crate) fn is_idle(self) -> bool {
        self.to_go() == 0
    }

    fn to_go(self) -> usize {
        self.ready + self.active + self.delayed
    }
}

impl Progress {
    pub(crate) fn new() -> Self {
        if !io::stderr().is_terminal() {
            return Self::Lines(Mutex::new(Instant::now()));
        }
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("[{bar:30}] {pos}/{len} {msg}") {
            bar.set_style(style.progress_chars("=> "));
        }
        Self::Bar(bar)
    }

    /// Shows the progress, but not too often.
    pub(crate) fn show(&self, load: Load, tally: &Tally) {
        let runs = tally.runs.load(Ordering::Relaxed);
        match self {
            Self::Bar(bar) => {
                bar.set_length(runs.saturating_add(load.to_go() as u64));
                bar.set_position(runs);
                bar.set_message(Copied(tally).to_string());
            }
            Self::Lines(last) => {
                let mut last = locked(last);
                if last.elapsed() >= LINE_EVERY {
                    *last = Instant::now();
                    let to_go = load.to_go();
                    write_line(&format!(
                        "{runs} checks done, {to_go} to go, {}",
                        Copied(tally)
                    ));
                }
            }
        }
    }

    /// Shows that the trees are the same, and that the program keeps watching.
    pub(crate) fn in_step(&self, tally: &Tally) {
        let runs = tally.runs.load(Ordering::Relaxed);
        let message = format!(
            "target and source are the same, {}; watching",
            Copied(tally)
        );
        match self {
            Self::Bar(bar) => {
                bar.set_length(runs);
                bar.set_position(runs);
                bar.set_message(message);
            }
            Self::Lines(_) => write_line(&message),
        }
    }

    /// A line on stdout.
    pub(crate) fn say(&self, line: &str) {
        // If nobody reads this, the work continues.
        self.above(|| drop(writeln!(io::stdout(), "{line}")));
    }

    /// A line on stderr.
    pub(crate) fn warn(&self, line: &str) {
        self.above(|| write_line(&format!("mirror: {line}")));
    }

    /// Lines on stderr, without other lines between them.
    pub(crate) fn warn_all(&self, lines: &[String]) {
        let lines: Vec<_> = lines.iter().map(|line| format!("mirror: {line}")).collect();
        self.above(|| write_line(&lines.join("\n")));
    }

    pub(crate) fn finish(&self) {
        if let Self::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }

    fn above(&self, write: impl FnOnce()) {
        match self {
            Self::Bar(bar) => bar.suspend(write),
            Self::Lines(_) => write(),
        }
    }
}

fn write_line(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

struct Copied<'t>(&'t Tally);

impl fmt::Display for Copied<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files = self.0.files.load(Ordering::Relaxed);
        let bytes = HumanBytes(self.0.bytes.load(Ordering::Relaxed));
        write!(f, "{files} files copied, {bytes}")
    }
}
