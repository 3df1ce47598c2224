//! Runs steps one after another, shows how many are left, and prints all results at the end.

use std::env;
use std::fmt::Display;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
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
                let why = format!("not run, and asked for by name: {why}");
                ("FAILED", why, true)
            }
            Err(Stop::Skipped(why)) if self.strict => (
                "FAILED",
                format!("{why}; where CI=true, that is a failure"),
                true,
            ),
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
    let planned = steps.iter().map(|step| step.seconds).sum();
    let mut plan = Plan {
        planned,
        done: 0,
        start: Instant::now(),
    };
    for (index, step) in steps.iter().enumerate() {
        if how.stops && !failed.is_empty() {
            rows.push(row(step.name, "not run", Duration::ZERO, ""));
            continue;
        }
        let (number, of, left) = (index + 1, steps.len(), plan.left(Duration::ZERO));
        println!(
            "\n=== {number} of {of}, {left}, {}: {}",
            step.name, step.about
        );
        let begun = Instant::now();
        let verdict = plan.watch(step);
        let (result, why, has_failed) = how.judge(verdict);
        failed.extend(has_failed.then(|| step.name.to_owned()));
        rows.push(row(step.name, result, begun.elapsed(), &why));
        println!("{}", rows[index]);
        plan.done += step.seconds;
    }
    println!("\n{:<10} {:<8} {:>7}", "step", "result", "seconds");
    rows.iter().for_each(|row| println!("{row}"));
    verdict(&failed)
}

/// How much is left to do, in seconds of a first time.
struct Plan {
    planned: u32,
    done: u32,
    start: Instant,
}

impl Plan {
    /// Runs a step, and says twice a minute how long all that is left takes.
    fn watch(&self, step: &Step) -> Verdict {
        let (running, ended) = mpsc::channel::<()>();
        thread::scope(|scope| {
            scope.spawn(move || {
                let begun = Instant::now();
                while ended.recv_timeout(HALF_A_MINUTE) == Err(RecvTimeoutError::Timeout) {
                    let step_done = begun
                        .elapsed()
                        .min(Duration::from_secs(step.seconds.into()));
                    println!("=== {}: {}", step.name, self.left(step_done));
                }
            });
            let verdict = (step.run)();
            drop(running);
            verdict
        })
    }

    /// The time left, with so much done of the present step. A machine that has been slower so far
    /// stays slower. One that has been faster had built something before.
    fn left(&self, of_step: Duration) -> String {
        let done = f64::from(self.done) + of_step.as_secs_f64();
        // A download in the first minute says little about the rest.
        let pace = (self.start.elapsed().as_secs_f64() + 60.0) / (done + 60.0);
        let seconds = pace.max(1.0) * (f64::from(self.planned) - done);
        match (seconds / 60.0).round() {
            0.0 => "less than a minute left".to_owned(),
            minutes => format!("about {minutes} min left"),
        }
    }
}

/// How often the time left is shown.
const HALF_A_MINUTE: Duration = Duration::from_secs(30);

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

    /// The word for a verdict if steps were asked for by name, if all were, and in CI for both.
    fn words(verdict: fn() -> Verdict) -> [&'static str; 4] {
        let how = |by_name, strict| How {
            stops: false,
            by_name,
            strict,
        };
        let (by_name, all) = (how(true, false), how(false, false));
        [by_name, all, how(true, true), how(false, true)].map(|how| {
            let (word, _, has_failed) = how.judge(verdict());
            assert_eq!(has_failed, word == "FAILED");
            word
        })
    }

    #[test]
    fn a_step_that_cannot_run_has_failed_by_name_and_if_promised_in_ci() {
        assert_eq!(words(|| Ok(())), ["passed"; 4]);
        assert_eq!(words(|| Err("broken".into())), ["FAILED"; 4]);
        let skipped = words(|| Err(Stop::Skipped("no tool".to_owned())));
        assert_eq!(skipped, ["FAILED", "skipped", "FAILED", "FAILED"]);
        let not_run = words(|| Err(Stop::NotRun("no nightly".to_owned())));
        assert_eq!(not_run, ["FAILED", "NOT RUN", "NOT RUN", "NOT RUN"]);
    }

    #[test]
    fn what_is_left_grows_on_a_slow_machine_and_does_not_shrink_where_much_is_built() {
        let left = |elapsed, done, of_step| {
            let start = Instant::now()
                .checked_sub(Duration::from_secs(elapsed))
                .unwrap();
            Plan {
                planned: 600,
                done,
                start,
            }
            .left(Duration::from_secs(of_step))
        };
        assert_eq!(left(0, 0, 0), "about 10 min left");
        assert_eq!(left(10, 300, 0), "about 5 min left");
        assert_eq!(left(300, 240, 60), "about 5 min left");
        assert_eq!(left(660, 240, 60), "about 10 min left");
        assert_eq!(left(60, 0, 0), "about 20 min left");
        assert_eq!(left(600, 580, 0), "less than a minute left");
    }

    #[test]
    fn a_failure_stops_a_test_and_not_a_ci() {
        let failed = |verdict| match verdict {
            Err(Stop::Failed(names)) => names,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            failed(run(&[&GOOD, &BAD, &LATE], How::new(true, false))),
            "bad"
        );
        assert_eq!(
            failed(run(&[&BAD, &GOOD, &BAD], How::new(false, false))),
            "bad\nbad"
        );
        assert!(run(&[&GOOD], How::new(true, false)).is_ok());
    }
}
