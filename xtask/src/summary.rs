//! Runs `cargo test` and prints one line for each binary, a total, and all that failed.

use std::io::{self, BufRead, BufReader};
use std::path::Path;

use crate::invocation::Invocation;

/// What the tests of a run have come to.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    pub(crate) ignored: usize,
}

impl Totals {
    pub(crate) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.ignored += other.ignored;
    }
}

/// Shows a `cargo test` line and runs it. Prints what its binaries come to, line by line as they
/// end, and the whole output of one that fails.
///
/// # Errors
///
/// It cannot be started, or it fails.
pub(crate) fn run(line: &Invocation, folder: &Path) -> (Totals, Result<(), String>) {
    let mut totals = Totals::default();
    let outcome = match line.spawn_piped(folder) {
        Ok((mut child, output)) => {
            let read = totals_of(BufReader::new(output), &mut totals, &mut |line| {
                println!("{line}")
            });
            let status = child.wait();
            match (read, status) {
                (Ok(()), Ok(status)) if status.success() => Ok(()),
                (Ok(()), Ok(status)) => Err(format!("{status}: {line}")),
                (Err(error), _) | (_, Err(error)) => Err(format!("{error}: {line}")),
            }
        }
        Err(error) => Err(error),
    };
    (totals, outcome)
}

/// Reads what `cargo test` prints, adds up its results, and shows what a person wants to see.
fn totals_of(
    output: impl BufRead,
    totals: &mut Totals,
    show: &mut dyn FnMut(&str),
) -> io::Result<()> {
    let mut binary = Binary::default();
    for line in output.split(b'\n') {
        let line = line?;
        let line = String::from_utf8_lossy(&line);
        match Line::of(&line) {
            Line::Begins(name) => {
                binary.show_rest(show);
                binary = Binary::new(name);
            }
            Line::Ends(result) => {
                totals.add(result);
                binary.end(result, &line, show);
            }
            Line::Progress => {}
            Line::Other if binary.is_running => binary.output.push(line.into_owned()),
            Line::Other => show(&line),
        }
    }
    binary.show_rest(show);
    Ok(())
}

/// A line of cargo's or of a test's.
#[derive(Debug, PartialEq, Eq)]
enum Line {
    /// A binary begins.
    Begins(String),
    /// A binary ends.
    Ends(Totals),
    /// A dependency was fetched or built.
    Progress,
    Other,
}

impl Line {
    fn of(line: &str) -> Self {
        let trimmed = line.trim_start();
        if let Some(rest) = trimmed.strip_prefix("Running ") {
            let name = rest.rsplit_once(" (").map_or(rest, |(name, _)| name);
            let package = rest.rsplit_once("/deps/").map_or("", |(_, file)| file);
            let package = package.rsplit_once('-').map_or(package, |(stem, _)| stem);
            return Self::Begins(format!("{package}: {name}"));
        }
        if let Some(name) = trimmed.strip_prefix("Doc-tests ") {
            return Self::Begins(format!("{name}: documentation"));
        }
        if let Some(rest) = line.strip_prefix("test result: ") {
            return Self::Ends(result_of(rest));
        }
        let progress = [
            "Compiling ",
            "Downloading ",
            "Downloaded ",
            "Updating ",
            "Blocking ",
        ];
        let is_progress = progress.iter().any(|word| trimmed.starts_with(word));
        // What is built from a path is of this workspace, and there are few of those.
        if is_progress && !trimmed.contains("(/") {
            return Self::Progress;
        }
        Self::Other
    }
}

/// Reads `ok. 12 passed; 0 failed; 0 ignored; …`.
fn result_of(rest: &str) -> Totals {
    let count = |word: &str| {
        let pieces = rest.split([';', '.']).map(str::trim);
        let mut counts = pieces.filter_map(|piece| piece.strip_suffix(word)?.trim().parse().ok());
        counts.next().unwrap_or(0)
    };
    Totals {
        passed: count("passed"),
        failed: count("failed"),
        ignored: count("ignored"),
    }
}

/// A binary whose tests are running.
#[derive(Debug, Default)]
struct Binary {
    name: String,
    is_running: bool,
    output: Vec<String>,
}

impl Binary {
    fn new(name: String) -> Self {
        Self {
            name,
            is_running: true,
            output: Vec::new(),
        }
    }

    fn end(&mut self, result: Totals, line: &str, show: &mut dyn FnMut(&str)) {
        if result.failed > 0 {
            self.show_rest(show);
        }
        let time = line
            .rsplit_once("finished in ")
            .map_or("", |(_, time)| time);
        if result != Totals::default() {
            let Totals {
                passed,
                failed,
                ignored,
            } = result;
            let ignored = if ignored > 0 {
                format!(", {ignored} ignored")
            } else {
                String::new()
            };
            show(&format!(
                "  {:<48} {passed} passed, {failed} failed{ignored}  {time}",
                self.name
            ));
        }
        self.output.clear();
        self.is_running = false;
    }

    /// The output of a binary that failed, or died before it could say so.
    fn show_rest(&mut self, show: &mut dyn FnMut(&str)) {
        if !self.output.is_empty() {
            show(&format!("  {}:", self.name));
        }
        self.output.drain(..).for_each(|line| show(&line));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(output: &str) -> (Totals, Vec<String>) {
        let (mut totals, mut lines) = (Totals::default(), Vec::new());
        let mut show = |line: &str| lines.push(line.to_owned());
        totals_of(output.as_bytes(), &mut totals, &mut show).unwrap();
        (totals, lines)
    }

    const PASSES: &str = "\
   Compiling libc v0.2.1
   Compiling requeue-core v0.1.0 (/home/me/requeue/core)
     Running unittests src/lib.rs (target/debug/deps/requeue_core-0a1b)

running 2 tests
test time::tests::what_saturates_is_never ... ok
test time::tests::another ... ok

test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.02s
";

    #[test]
    fn a_binary_that_passes_is_one_line() {
        let (totals, lines) = shown(PASSES);
        assert_eq!(
            totals,
            Totals {
                passed: 2,
                failed: 0,
                ignored: 0
            }
        );
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].contains("Compiling requeue-core"));
        assert!(
            lines[1].contains("requeue_core: unittests src/lib.rs"),
            "{lines:?}"
        );
        assert!(lines[1].contains("2 passed, 0 failed") && lines[1].ends_with("0.02s"));
    }

    #[test]
    fn a_binary_that_fails_shows_all_it_said() {
        let failing = PASSES.replace("another ... ok", "another ... FAILED\nleft: 1");
        let failing = failing.replace("ok. 2 passed; 0 failed", "FAILED. 1 passed; 1 failed");
        let (totals, lines) = shown(&failing);
        assert_eq!(
            totals,
            Totals {
                passed: 1,
                failed: 1,
                ignored: 0
            }
        );
        assert!(lines.iter().any(|line| line == "left: 1"), "{lines:?}");
    }

    #[test]
    fn a_binary_that_dies_shows_all_it_said() {
        let cut = PASSES.split("test result").next().unwrap();
        let (_, lines) = shown(&format!(
            "{cut}error: test failed, to rerun pass `-p requeue-core`\n"
        ));
        assert!(
            lines
                .iter()
                .any(|line| line.contains("what_saturates_is_never")),
            "{lines:?}"
        );
        assert!(
            lines
                .iter()
                .any(|line| line.starts_with("error: test failed"))
        );
    }

    #[test]
    fn an_error_of_the_compiler_is_shown() {
        let (_, lines) = shown("   Compiling libc v0.2.1\nerror[E0308]: mismatched types\n");
        assert_eq!(lines, ["error[E0308]: mismatched types"]);
    }
}
