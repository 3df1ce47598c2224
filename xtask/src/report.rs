//! Runs steps one after another, shows how many are left, and prints all results at the end.

use std::env;
use std::fmt::Display;
use std::time::{Duration, Instant};

/// The result of a step.
pub(crate) type Verdict<T = ()> = Result<T, Stop>;

/// Why a step did not pass.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The check failed, or its tools did.
    Failed(String),
    /// This machine cannot run it.
    Skipped(String),
    /// The same, for a step that need not run everywhere.
    NotRun(String),
    /// The arguments of a command are wrong.
    Mistake(String),
}

impl<E: Display> From<E> for Stop {
    fn from(why: E) -> Self {
        Self::Failed(why.to_string())
    }
}

/// Joins failures into one verdict.
///
/// # Errors
///
/// There are some.
pub(crate) fn verdict(failures: &[String]) -> Verdict {
    if failures.is_empty() {
        return Ok(());
    }
    Err(failures.join("\n").into())
}

/// A check.
pub(crate) struct Step {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    /// Roughly how long it takes the first time, on two processors.
    pub(crate) seconds: u32,
    pub(crate) run: fn() -> Verdict,
}

/// How to run steps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct How {
    /// Whether to stop at the first failure.
    pub(crate) stops: bool,
    /// Whether the steps were named. Then a step that cannot run has failed, except in CI.
    pub(crate) by_name: bool,
    /// Whether a step that has to run everywhere has failed if it cannot, as in CI.
    pub(crate) strict: bool,
}

impl How {
    pub(crate) fn new(stops: bool, by_name: bool) -> Self {
        let strict = env::var("CI").is_ok_and(|value| !["", "0", "false"].contains(&&*value));
        Self {
            stops,
            by_name,
            strict,
        }
    }

    /// Judges a verdict: a word for the table, the reason, and whether the step has failed.
    fn judge(self, verdict: Verdict) -> (&'static str, String, bool) {
        match verdict {
            Ok(()) => ("passed", String::new(), false),
            Err(Stop::Failed(why) | Stop::Mistake(why)) => ("FAILED", why, true),
            Err(Stop::Skipped(why) | Stop::NotRun(why)) if self.by_name && !self.strict => {
                ("FAILED", format!("cannot run: {why}"), true)
            }
            Err(Stop::Skipped(why)) if self.strict => ("FAILED", why, true),
            Err(Stop::Skipped(why)) => ("skipped", why, false),
            Err(Stop::NotRun(why)) => ("NOT RUN", why, false),
        }
    }
}

/// Runs steps, and ends with a table of them.
///
/// # Errors
///
/// The names of those that failed.
pub(crate) fn run(steps: &[&Step], how: How) -> Verdict {
    let mut rows = Vec::new();
    let mut failed = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        if how.stops && !failed.is_empty() {
            rows.push(row(step.name, "not run", Duration::ZERO, ""));
            continue;
        }
        let left: u32 = steps[index..].iter().map(|step| step.seconds).sum();
        let (number, of, minutes) = (index + 1, steps.len(), left.div_ceil(60));
        println!(
            "\n=== {number} of {of}, {minutes} min left, {}: {}",
            step.name, step.about
        );
        let begun = Instant::now();
        let (result, why, has_failed) = how.judge((step.run)());
        failed.extend(has_failed.then(|| step.name.to_owned()));
        rows.push(row(step.name, result, begun.elapsed(), &why));
        println!("{}", rows[index]);
    }
    println!("\n{:<10} {:<8} {:>7}", "step", "result", "seconds");
    rows.iter().for_each(|row| println!("{row}"));
    verdict(&failed)
}

fn row(name: &str, result: &str, took: Duration, why: &str) -> String {
    let seconds = took.as_secs_f64();
    let row = format!("{name:<10} {result:<8} {seconds:>7.1}  {why}");
    row.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn step(name: &'static str, run: fn() -> Verdict) -> Step {
        let (about, seconds) = ("", 60);
        Step {
            name,
            about,
            seconds,
            run,
        }
    }
    const GOOD: Step = step("good", || Ok(()));
    const BAD: Step = step("bad", || Err("broken".into()));
    const LATE: Step = step("late", || panic!("a step after a failure"));

    #[test]
    fn a_step_that_cannot_run_has_failed_by_name_and_if_promised_in_ci() {
        let skipped = || Err(Stop::Skipped("no tool".to_owned()));
        let not_run = || Err(Stop::NotRun("no nightly".to_owned()));
        for (by_name, strict, words) in [
            (true, false, ["passed", "FAILED", "FAILED", "FAILED"]),
            (false, false, ["passed", "FAILED", "skipped", "NOT RUN"]),
            (true, true, ["passed", "FAILED", "FAILED", "NOT RUN"]),
            (false, true, ["passed", "FAILED", "FAILED", "NOT RUN"]),
        ] {
            let (stops, verdicts) = (false, [Ok(()), (BAD.run)(), skipped(), not_run()]);
            let how = How {
                stops,
                by_name,
                strict,
            };
            let judged = verdicts.map(|verdict| how.judge(verdict));
            assert!(
                judged
                    .iter()
                    .all(|(word, _, failed)| *failed == (*word == "FAILED"))
            );
            assert_eq!(judged.map(|(word, ..)| word), words);
        }
    }

    #[test]
    fn a_failure_stops_a_test_and_not_a_ci() {
        let failed = |steps: &[&Step], stops| match run(steps, How::new(stops, false)) {
            Err(Stop::Failed(names)) => names,
            other => panic!("{other:?}"),
        };
        assert_eq!(failed(&[&GOOD, &BAD, &LATE], true), "bad");
        assert_eq!(failed(&[&BAD, &GOOD, &BAD], false), "bad\nbad");
        assert!(run(&[&GOOD], How::new(true, false)).is_ok());
    }
}
