//! Figures in JSON: `--json=FILE` writes them, and pictures are drawn from them.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

/// The figures of a run of a benchmark, and their origin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// The origin of the figures.
    pub source: Source,
    /// One for each contender in each row.
    pub figures: Vec<Figure>,
}

/// The origin of figures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// The command that measures them again.
    pub command: String,
    /// The measured commit, and whether anything but documentation has changed since.
    pub commit: String,
    /// The day, by the calendar of UTC.
    pub date: String,
    /// The processors.
    pub machine: String,
    /// The compiler.
    pub rustc: String,
    /// The load: how many threads ran or waited for a processor in the last minute, on average. On
    /// an idle machine these are at most the threads of the benchmark.
    pub load: String,
}

/// One contender in one row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// The heading of the table.
    pub table: String,
    /// The name of the row.
    pub work: String,
    /// The size of the work: in most tables, the number of keys.
    pub size: u64,
    /// The name of the column.
    pub contender: String,
    /// The measured value.
    pub value: f64,
    /// The unit.
    pub unit: String,
}

impl Figures {
    /// Returns the JSON of the figures, one figure a line.
    ///
    /// # Errors
    ///
    /// A value is not a number.
    pub fn to_json(&self) -> serde_json::Result<String> {
        let lines = self.figures.iter().map(serde_json::to_string);
        let lines = lines.collect::<serde_json::Result<Vec<_>>>()?.join(",\n");
        let source = serde_json::to_string(&self.source)?;
        Ok(format!(
            "{{\"source\":{source},\n\"figures\":[\n{lines}\n]}}\n"
        ))
    }

    /// Reads what [`to_json`](Self::to_json) returns.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or has other contents.
    pub fn read(file: &Path) -> io::Result<Self> {
        Ok(serde_json::from_str(&std::fs::read_to_string(file)?)?)
    }

    /// Writes the JSON.
    ///
    /// # Errors
    ///
    /// The file cannot be written, or a value is not a number.
    pub fn write(&self, file: &Path) -> io::Result<()> {
        std::fs::write(file, self.to_json()?)
    }
}

impl Source {
    /// Describes this machine, now, and the repository in which the process runs.
    pub fn here(command: impl Into<String>) -> Self {
        let mut commit = printed("git rev-parse --short=7 HEAD");
        let changed =
            printed("git diff --name-only HEAD -- :/ :(top,exclude)docs :(top,exclude)*.md");
        if !changed.is_empty() {
            commit.push_str(" with changes");
        }
        let rustc = printed("rustc --version");
        let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let first = |text: &str, words| -> String {
            let words: Vec<&str> = text.split_whitespace().take(words).collect();
            words.join(" ")
        };
        Self {
            command: command.into(),
            commit,
            date: printed("date -u +%F"),
            machine: crate::harness::machine(),
            rustc: first(&rustc, 2),
            load: first(&load, 1),
        }
    }
}

/// The output of a command line, without the end of the line. Empty if it fails.
fn printed(line: &str) -> String {
    let mut words = line.split(' ');
    let mut command = Command::new(words.next().unwrap_or_default());
    let output = command.args(words).stderr(Stdio::null()).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    text.unwrap_or_default().trim_end().to_owned()
}
