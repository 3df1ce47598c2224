//! Keeps one directory tree a faithful copy of another, with a requeue work queue.
//!
//! ```text
//!   first walk ──┐                    ┌─ worker ─┐
//!   file events ─┼─▶ add ─▶ queue ─▶ ─┼─ worker ─┼─▶ compare one path, make it right
//!   retries ─────┘    (one per path)  └─ worker ─┘          │
//!        ▲                                                  ▼
//!        └──── again later ◀── failed ◀────────── done ◀────┴──▶ add: children, parent
//! ```
//!
//! A key says *where* something may be wrong, never *what* has happened. A worker compares source
//! and target at that path as they are now. So a thousand events on one path cause one copy, a
//! repeated event is harmless, and the next run repairs what a killed run left.
//!
//! - `key` defines the keys. `job` connects queue, workers, signals and progress.
//! - `plan` compares, `entry` and `tree` act, `copy` and `removal` write, `watch` listens.
//! - `roots` opens the two trees. All access to them is through `dir` and `handle`.
//! - `args`, `progress`, `figures`, `snapshot`, `report` and `text` are the user interface.

#[cfg(unix)]
mod args;
#[cfg(unix)]
mod copy;
#[cfg(unix)]
mod dir;
#[cfg(unix)]
mod entry;
#[cfg(unix)]
mod error;
#[cfg(unix)]
mod figures;
#[cfg(unix)]
mod handle;
#[cfg(unix)]
mod job;
#[cfg(unix)]
mod key;
#[cfg(unix)]
mod mirror;
#[cfg(unix)]
mod plan;
#[cfg(unix)]
mod progress;
#[cfg(unix)]
mod removal;
#[cfg(unix)]
mod report;
#[cfg(unix)]
mod roots;
#[cfg(unix)]
mod snapshot;
#[cfg(unix)]
mod sparse;
#[cfg(unix)]
mod stat;
#[cfg(all(test, unix))]
mod swapped;
#[cfg(unix)]
mod text;
#[cfg(unix)]
mod tree;
#[cfg(unix)]
mod watch;

use std::process::ExitCode;

/// The arguments or the trees are wrong, or the job could not start.
const EXIT_USAGE: u8 = 2;

#[cfg(unix)]
fn main() -> ExitCode {
    use std::io::Write;

    use args::Command;

    let done = match args::parse(std::env::args_os().skip(1)) {
        Ok(Command::Mirror(options)) => job::start(&options),
        Ok(Command::Say(text)) => {
            // A pipe that closes early is not an error.
            let _ = std::io::stdout().write_all(text.as_bytes());
            return ExitCode::SUCCESS;
        }
        Err(message) => Err(message),
    };
    match done {
        Ok(report) => {
            report.print();
            report.exit_code()
        }
        Err(message) => {
            let _ = writeln!(std::io::stderr(), "mirror: {message}");
            ExitCode::from(EXIT_USAGE)
        }
    }
}

#[cfg(not(unix))]
fn main() -> ExitCode {
    eprintln!(
        "mirror: this example runs only on Unix, because it needs modes, symlinks and signals"
    );
    ExitCode::from(EXIT_USAGE)
}
