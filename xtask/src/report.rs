//! Runs steps one after another and says at the end how each of them went.

use std::env;
use std::time::{Duration, Instant};

use crate::steps::Step;
use crate::workspace::Workspace;

/// How a step went.
pub(crate) type Verdict = Result<(), Stop>;

/// Why a step did not pass.
#[derive(Debug)]
pub(crate) enum Stop {
    /// What it checks is not so, or its tools broke.
    Failed(String),
    /// This machine cannot run it.
    Skipped(String),
    /// The same, for a step that is not promised to run: no failure unless it was asked for by
    /// name.
    NotRun(String),
}

impl From<String> for Stop {
    fn from(why: String) -> Self {
        Self::Failed(why)
    }
}

/// What to do with the steps after one that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnFailure {
    Stop,
    GoOn,
}

/// How steps were asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// Among all others: a step that cannot be run is shown, and leaves the rest alone.
    ForAll,
    /// A step that cannot be run has failed.
    ByName,
}

/// The steps so far.
#[derive(Debug)]
pub(crate) struct Report {
    on_failure: OnFailure,
    asked: Asked,
    /// Whether a step that cannot be run is a failure: a gate with a hole in it is not green.
    strict: bool,
    /// How many steps there will be.
    planned: usize,
    rows: Vec<Row>,
}

impl Report {
    pub(crate) fn new(on_failure: OnFailure, asked: Asked, planned: usize) -> Self {
        let strict = env::var("CI").is_ok_and(|value| !["", "0", "false"].contains(&&*value));
        Self {
            on_failure,
            asked,
            strict,
            planned,
            rows: Vec::new(),
        }
    }

    /// Runs a step, unless one before it failed and the rest is not wanted.
    pub(crate) fn step(&mut self, step: &Step, workspace: &Workspace) {
        if self.on_failure == OnFailure::Stop && self.any_failed() {
            self.rows
                .push(Row::new(step, Outcome::NotRun(String::new())));
            return;
        }
        let (number, planned) = (self.rows.len() + 1, self.planned);
        println!("\n=== {number} of {planned}, {}: {}", step.name, step.about);
        let start = Instant::now();
        let outcome = match (step.run)(workspace) {
            Ok(()) => Outcome::Passed,
            Err(Stop::Skipped(why) | Stop::NotRun(why)) if self.asked == Asked::ByName => {
                Outcome::Failed(format!("not run, and asked for by name: {why}"))
            }
            Err(Stop::Skipped(why)) if !self.strict => Outcome::Skipped(why),
            Err(Stop::Skipped(why)) => {
                Outcome::Failed(format!("{why}; where CI=true, that is a failure"))
            }
            Err(Stop::NotRun(why)) => Outcome::NotRun(why),
            Err(Stop::Failed(why)) => Outcome::Failed(why),
        };
        let row = Row {
            took: start.elapsed(),
            ..Row::new(step, outcome)
        };
        println!("{}", row.line());
        self.rows.push(row);
    }

    /// Prints the table; returns whether no step failed.
    pub(crate) fn conclude(&self) -> bool {
        println!("\n{:<10} {:<8} {:>7}", "step", "result", "seconds");
        for row in &self.rows {
            println!("{}", row.line());
        }
        !self.any_failed()
    }

    fn any_failed(&self) -> bool {
        let failed = |row: &Row| matches!(row.outcome, Outcome::Failed(_));
        self.rows.iter().any(failed)
    }
}

#[derive(Debug)]
struct Row {
    name: &'static str,
    outcome: Outcome,
    took: Duration,
}

#[derive(Debug)]
enum Outcome {
    Passed,
    Failed(String),
    Skipped(String),
    NotRun(String),
}

impl Row {
    fn new(step: &Step, outcome: Outcome) -> Self {
        Self {
            name: step.name,
            outcome,
            took: Duration::ZERO,
        }
    }

    fn line(&self) -> String {
        let (result, why) = match &self.outcome {
            Outcome::Passed => ("passed", String::new()),
            Outcome::Failed(why) => ("FAILED", format!("  ({why})")),
            Outcome::Skipped(why) => ("skipped", format!("  ({why})")),
            Outcome::NotRun(why) if why.is_empty() => ("not run", String::new()),
            Outcome::NotRun(why) => ("NOT RUN", format!("  ({why})")),
        };
        let seconds = self.took.as_secs_f64();
        format!("{:<10} {result:<8} {seconds:>7.1}{why}", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: Step = Step {
        name: "good",
        about: "passes",
        in_test: false,
        run: |_| Ok(()),
    };
    const BAD: Step = Step {
        name: "bad",
        about: "fails",
        in_test: false,
        run: |_| Err(Stop::Failed("broken".to_owned())),
    };
    const RARE: Step = Step {
        name: "rare",
        about: "is run where it can be",
        in_test: false,
        run: |_| Err(Stop::NotRun("no nightly".to_owned())),
    };
    const ABSENT: Step = Step {
        name: "absent",
        about: "cannot be run",
        in_test: false,
        run: |_| Err(Stop::Skipped("no tool".to_owned())),
    };

    fn results(steps: &[&Step], on_failure: OnFailure, strict: bool) -> (Vec<String>, bool) {
        asked(Asked::ForAll, steps, on_failure, strict)
    }

    fn asked(
        asked: Asked,
        steps: &[&Step],
        on_failure: OnFailure,
        strict: bool,
    ) -> (Vec<String>, bool) {
        let workspace = Workspace {
            root: ".".into(),
            packages: Vec::new(),
        };
        let mut report = Report {
            on_failure,
            asked,
            strict,
            planned: steps.len(),
            rows: Vec::new(),
        };
        for step in steps {
            report.step(step, &workspace);
        }
        let word = |row: &Row| row.line().split_whitespace().nth(1).map(str::to_owned);
        (
            report.rows.iter().filter_map(word).collect(),
            report.conclude(),
        )
    }

    #[test]
    fn a_failure_stops_a_test_and_not_a_ci() {
        let steps = [&GOOD, &BAD, &GOOD];
        let (rows, ok) = results(&steps, OnFailure::Stop, false);
        assert_eq!((rows.join(" ").as_str(), ok), ("passed FAILED not", false));
        let (rows, ok) = results(&steps, OnFailure::GoOn, false);
        assert_eq!(
            (rows.join(" ").as_str(), ok),
            ("passed FAILED passed", false)
        );
    }

    #[test]
    fn what_cannot_be_run_is_skipped_by_hand_and_fails_in_ci() {
        let (rows, ok) = results(&[&ABSENT, &GOOD], OnFailure::Stop, false);
        assert_eq!((rows.join(" ").as_str(), ok), ("skipped passed", true));
        let (rows, ok) = results(&[&ABSENT, &GOOD], OnFailure::GoOn, true);
        assert_eq!((rows.join(" ").as_str(), ok), ("FAILED passed", false));
    }

    #[test]
    fn a_step_that_is_not_promised_fails_nowhere() {
        let (rows, ok) = results(&[&RARE, &GOOD], OnFailure::Stop, true);
        assert_eq!((rows.join(" ").as_str(), ok), ("NOT passed", true));
    }

    #[test]
    fn a_step_that_was_asked_for_by_name_and_cannot_be_run_has_failed() {
        for step in [&RARE, &ABSENT] {
            let (rows, ok) = asked(Asked::ByName, &[step, &GOOD], OnFailure::GoOn, false);
            assert_eq!((rows.join(" ").as_str(), ok), ("FAILED passed", false));
        }
    }
}
