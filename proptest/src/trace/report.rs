//! What a replay found.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::{self, Debug};

use serde::Deserialize;

use crate::caught::guarded;

/// How many steps before a mismatch are told with it.
const HISTORY: usize = 100;

/// What the replay of a file found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// How many recordings the file holds.
    pub traces: u64,
    /// How many recorded steps were replayed.
    pub steps: u64,
    /// How many recordings went otherwise than recorded. The replay of a recording ends there.
    pub mismatches: u64,
    /// The first of them, told up to the step at fault.
    pub first_mismatch: Option<String>,
    /// How many results were allowed to differ, by the documented difference that allows it.
    pub differences: BTreeMap<&'static str, u64>,
    /// How many steps were compared, of recordings whose comparison ends where a documented
    /// difference first changes a result; nothing for others, all of whose steps are compared.
    pub covered: Option<u64>,
}

impl fmt::Display for Report {
    /// One line of totals, and one indented line per documented difference.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "traces {}, steps {}, mismatches {}, documented differences {}",
            self.traces,
            self.steps,
            self.mismatches,
            self.differences.values().sum::<u64>()
        )?;
        if let Some(covered) = self.covered {
            write!(
                f,
                "\n  steps before a difference changes a result: {covered}"
            )?;
        }
        for (name, count) in &self.differences {
            write!(f, "\n  {name}: {count}")?;
        }
        Ok(())
    }
}

/// A file that cannot be replayed: it is no recording, or not one that this replay understands.
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

/// Why the replay of one recording ended early.
#[derive(Debug)]
pub(super) enum Stop {
    /// It went otherwise than recorded; here is how.
    Mismatch(String),
    /// It cannot be replayed.
    Bad(String),
}

/// Replays each line with `run`.
///
/// # Errors
///
/// [`BadTrace`] for a line that cannot be read: a recording that is skipped proves nothing.
pub(super) fn replay_lines<T: for<'de> Deserialize<'de>>(
    jsonl: &str,
    mut run: impl FnMut(T, &mut Progress) -> Result<(), Stop>,
) -> Result<Report, BadTrace> {
    let mut progress = Progress::default();
    for (index, line) in jsonl.lines().enumerate() {
        let bad = |reason| BadTrace {
            line: index + 1,
            reason,
        };
        if line.trim().is_empty() {
            continue;
        }
        let trace = serde_json::from_str(line).map_err(|error| bad(error.to_string()))?;
        progress.report.traces += 1;
        match run(trace, &mut progress) {
            Ok(()) => {}
            Err(Stop::Bad(reason)) => return Err(bad(reason)),
            Err(Stop::Mismatch(story)) => {
                progress.report.mismatches += 1;
                progress.report.first_mismatch.get_or_insert(story);
            }
        }
    }
    Ok(progress.report)
}

/// The replay so far, and enough of its past to explain a mismatch.
#[derive(Default)]
pub(super) struct Progress {
    report: Report,
    title: String,
    told: usize,
    history: VecDeque<String>,
}

impl Progress {
    /// Begins the recording `id` of `subject`.
    pub(super) fn begin(&mut self, id: &str, subject: &impl Debug) {
        self.title = format!("{id}: {subject:?}");
        self.history.clear();
        self.told = 0;
    }

    /// Notes that a result differs, and why that is allowed.
    pub(super) fn differs(&mut self, reason: &'static str) {
        *self.report.differences.entry(reason).or_default() += 1;
    }

    /// Notes that a step comes before any difference.
    pub(super) fn covers(&mut self) {
        *self.report.covered.get_or_insert(0) += 1;
    }

    /// Notes what is about to be compared, which is a step unless it is the end.
    pub(super) fn tell(&mut self, step: String, is_step: bool) {
        self.report.steps += u64::from(is_step);
        self.told += 1;
        if self.history.len() == HISTORY {
            self.history.pop_front();
        }
        self.history.push_back(step);
    }

    /// The story of a mismatch in the step that was told last.
    pub(super) fn mismatch(&self, what: &str) -> Stop {
        let mut story = self.title.clone();
        let untold = self.told - self.history.len();
        if untold > 0 {
            story += &format!("\n  ({untold} earlier steps)");
        }
        for step in &self.history {
            story += "\n  ";
            story += step;
        }
        Stop::Mismatch(format!("{story}   <- not as recorded{what}"))
    }

    /// Runs the replay of one recording. If the subject panics, that is its mismatch.
    ///
    /// # Errors
    ///
    /// What `run` answers, or the story of the panic.
    pub(super) fn guard(
        &mut self,
        run: impl FnOnce(&mut Self) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        let outcome = guarded(|| run(self));
        outcome
            .unwrap_or_else(|panic| Err(self.mismatch(&format!("\n  the queue panicked: {panic}"))))
    }

    /// Notes a step, and whether it went as recorded.
    ///
    /// # Errors
    ///
    /// The story, if it did not.
    pub(super) fn step(
        &mut self,
        op: &impl Debug,
        is_as_recorded: bool,
        answer: &impl Debug,
    ) -> Result<(), Stop> {
        self.tell(format!("{op:?} -> {answer:?}"), true);
        if is_as_recorded {
            Ok(())
        } else {
            Err(self.mismatch(""))
        }
    }
}
