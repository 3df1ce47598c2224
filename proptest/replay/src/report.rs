//! What a replay finds, and how a file is replayed line by line.

use std::collections::BTreeMap;

use requeue_proptest::guarded;
use serde::Deserialize;

/// What the replay of a file found.
#[derive(Debug, Default)]
pub struct Report {
    /// How many recordings the file holds.
    pub traces: u64,
    /// How many recorded steps were replayed.
    pub steps: u64,
    /// How many recordings had a mismatch. The replay of a recording ends there.
    pub mismatches: u64,
    /// The history of the first mismatch, up to the step at fault.
    pub first_mismatch: Option<String>,
    /// How many results were allowed to differ, by the documented difference that allows it.
    pub differences: BTreeMap<&'static str, u64>,
    /// How many steps were compared, if a documented difference ends the comparison; `None` if all
    /// steps were compared.
    pub covered: Option<u64>,
    /// The history of the recording that is being replayed.
    history: Vec<String>,
}

impl Report {
    /// Writes a line of the history: what the recording is about, or what is compared next.
    pub(crate) fn note(&mut self, line: String) {
        self.history.push(line);
    }

    /// The same for a step, which counts.
    pub(crate) fn step(&mut self, line: String) {
        self.steps += 1;
        self.note(line);
    }

    /// Counts a result that differs, by the difference that allows it.
    pub(crate) fn differs(&mut self, name: &'static str) {
        *self.differences.entry(name).or_default() += 1;
    }
}

/// Replays each line with `run`, which returns what is not as recorded. A panic is a mismatch.
///
/// # Errors
///
/// The first line that cannot be read, and why: a recording that is skipped proves nothing.
pub(crate) fn replay_lines<T: for<'de> Deserialize<'de>>(
    jsonl: &str,
    mut run: impl FnMut(&T, &mut Report) -> Result<(), String>,
) -> Result<Report, String> {
    let mut report = Report::default();
    for (line, text) in (1..).zip(jsonl.lines()) {
        let trace = serde_json::from_str(text).map_err(|error| format!("line {line}: {error}"))?;
        report.traces += 1;
        report.history.clear();
        let replayed = guarded(|| run(&trace, &mut report));
        if let Err(why) = replayed.unwrap_or_else(|panic| Err(format!("a panic: {panic}"))) {
            let history = report.history.join("\n  ");
            let mismatch = format!("{history}   <- not as recorded\n  {why}");
            report.mismatches += 1;
            report.first_mismatch.get_or_insert(mismatch);
        }
    }
    Ok(report)
}
