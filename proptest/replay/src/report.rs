//! What a replay found.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::{self, Debug};

use requeue_proptest::guarded;
use serde::Deserialize;

/// How many steps are shown before a mismatch.
const HISTORY: usize = 100;

/// What the replay of a file found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
}

/// A file that cannot be replayed, because a line of it is no such recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadTrace {
    /// The line at fault, counted from one.
    pub line: usize,
    /// What is wrong with it.
    pub reason: String,
}

impl fmt::Display for BadTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.reason)
    }
}

impl std::error::Error for BadTrace {}

/// What was not as recorded, with its history. The replay of a recording ends there.
#[derive(Debug)]
pub(crate) struct Mismatch(pub(crate) String);

/// Replays each line with `run`.
///
/// # Errors
///
/// [`BadTrace`] for a line that cannot be read: a recording that is skipped proves nothing.
pub(crate) fn replay_lines<T: for<'de> Deserialize<'de>>(
    jsonl: &str,
    mut run: impl FnMut(T, &mut Progress) -> Result<(), Mismatch>,
) -> Result<Report, BadTrace> {
    let mut progress = Progress::default();
    for (index, line) in jsonl.lines().enumerate() {
        let trace = serde_json::from_str(line).map_err(|error| BadTrace {
            line: index + 1,
            reason: error.to_string(),
        })?;
        progress.report.traces += 1;
        if let Err(Mismatch(text)) = run(trace, &mut progress) {
            progress.report.mismatches += 1;
            progress.report.first_mismatch.get_or_insert(text);
        }
    }
    Ok(progress.report)
}

/// The replay so far, and enough of its past to explain a mismatch.
#[derive(Default)]
pub(crate) struct Progress {
    report: Report,
    title: String,
    recorded: usize,
    history: VecDeque<String>,
}

impl Progress {
    /// Begins the recording `id` of `subject`.
    pub(crate) fn begin(&mut self, id: &str, subject: &impl Debug) {
        self.title = format!("{id}: {subject:?}");
        self.history.clear();
        self.recorded = 0;
    }

    /// Counts a result that differs, by the difference that allows it.
    pub(crate) fn differs(&mut self, reason: &'static str) {
        *self.report.differences.entry(reason).or_default() += 1;
    }

    /// Counts a step that is compared with the queue.
    pub(crate) fn covers(&mut self) {
        *self.report.covered.get_or_insert(0) += 1;
    }

    /// Records what is about to be compared: a step, or the end.
    pub(crate) fn record(&mut self, step: String, is_step: bool) {
        self.report.steps += u64::from(is_step);
        self.recorded += 1;
        if self.history.len() == HISTORY {
            self.history.pop_front();
        }
        self.history.push_back(step);
    }

    /// Returns a mismatch in the last step, with its history.
    pub(crate) fn mismatch(&self, what: &str) -> Mismatch {
        let mut text = self.title.clone();
        let omitted = self.recorded - self.history.len();
        if omitted > 0 {
            text += &format!("\n  ({omitted} earlier steps)");
        }
        for step in &self.history {
            text += "\n  ";
            text += step;
        }
        Mismatch(format!("{text}   <- not as recorded{what}"))
    }

    /// Runs the replay of one recording. A panic of the queue is a mismatch.
    ///
    /// # Errors
    ///
    /// As `run`, or the panic.
    pub(crate) fn guard(
        &mut self,
        run: impl FnOnce(&mut Self) -> Result<(), Mismatch>,
    ) -> Result<(), Mismatch> {
        let outcome = guarded(|| run(self));
        outcome
            .unwrap_or_else(|panic| Err(self.mismatch(&format!("\n  the queue panicked: {panic}"))))
    }

    /// Records a step, and whether it went as recorded.
    ///
    /// # Errors
    ///
    /// The mismatch, if it did not.
    pub(crate) fn step(
        &mut self,
        op: &impl Debug,
        is_as_recorded: bool,
        answer: &impl Debug,
    ) -> Result<(), Mismatch> {
        self.record(format!("{op:?} -> {answer:?}"), true);
        if is_as_recorded {
            Ok(())
        } else {
            Err(self.mismatch(""))
        }
    }
}
