//! `cargo xtask …`: everything the continuous integration does, one command each. A check is a row
//! of [`steps::STEPS`].

mod api;
mod book;
mod builds;
mod cmd;
mod examples;
mod firmware;
mod fuzz;
mod kube;
mod mutants;
mod pictures;
mod release;
mod report;
mod servers;
mod soak;
mod steps;
mod tidy;
mod toolchain;
mod tools;
mod workspace;

use std::env;
use std::process::ExitCode;

use cmd::cmd;
use report::{How, Stop, Verdict};
use steps::{IN_TEST, STEPS, choose};

const HELP: &str = "\
Usage: cargo xtask COMMAND

Commands:
  test                        the recorded traces, every test and every doctest; stops at the first
                              failure
  ci [STEP…]                  every step, or those named; goes on after a failure
  ci --except STEP…           all steps but those named
  api                         writes the lists of public items, docs/api, which the step `api` compares
  book                        copies the programs of the guide into its pages, which the step `book`
                              compares
  bench [ARGUMENT…]           hands its arguments to `cargo bench -p requeue-bench`
  bench --plot [PICTURE…]     measures what pictures show, and draws them
  firmware                    the images of `examples/firmware`, on every emulated board
  kube [SCENARIO…]            controllers on a real API server, which is built once; takes a quarter
                              of an hour
  release --dry-run [CHECK…]  whether a release could go out; publishes nothing
  replicas [COUNT]            three replicas of `webhooks`, to try; with a PostgreSQL and an etcd of
                              their own
  shards [--marks] [--seeds N] [--minutes M]
                              replicas on a real etcd, faults, their writes checked; then the step
                              `replicas`
  soak --minutes M [--seed S] the tests of chance, with new seeds until the time is over
  platforms                   the steps `systems` and `processors`, the adapters' tests and the
                              recordings there
  miri [ARGUMENT…]            core's tests under Miri: hands its arguments to `cargo miri test`
  deny                        the step `deny`, and known advisories, which are fetched
  mutants [FILE…]             whether the tests notice when core, or a file of it, is broken; takes hours
  help                        this page

A step that cannot be run on this machine is skipped and says why. Where CI=true, or if it was
asked for by name, it has failed. A command that cannot be run has failed.
Exit code: 0 all well, 1 a step failed, 2 a mistake in the call.

Steps of `ci`, those of `test` marked with a star:";

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match dispatch(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Stop::Failed(why)) => {
            println!("FAILED: {why}");
            ExitCode::FAILURE
        }
        Err(Stop::Skipped(why) | Stop::NotRun(why)) => {
            println!("NOT RUN: {why}");
            ExitCode::FAILURE
        }
        Err(Stop::Mistake(what)) => {
            eprintln!("xtask: {what}; `cargo xtask help` lists the commands and the steps");
            ExitCode::from(2)
        }
    }
}

fn dispatch(words: &[&str]) -> Verdict {
    match words {
        [] | ["help" | "-h" | "--help"] => help(),
        ["test"] => ci(&IN_TEST, How::new(true, false)),
        ["ci", names @ ..] => {
            let by_name = names.first().is_some_and(|first| *first != "--except");
            ci(names, How::new(false, by_name))
        }
        ["api"] => api::write(),
        ["book"] => book::write(),
        ["bench", "--plot", names @ ..] => pictures::measure(names),
        ["bench", rest @ ..] => cmd("cargo bench -p requeue-bench")
            .args(rest.to_vec())
            .run(),
        ["firmware"] => ci(&["firmware"], How::new(false, true)),
        ["kube", scenarios @ ..] => kube::real(scenarios),
        ["release", rest @ ..] => release::run(rest),
        ["replicas", rest @ ..] => servers::try_replicas(rest),
        ["shards", rest @ ..] => servers::prove_shards(rest),
        ["soak", rest @ ..] => soak::run(rest),
        ["platforms"] => builds::platforms(),
        ["miri", rest @ ..] => fuzz::miri(rest),
        ["deny"] => steps::advisories(),
        ["mutants", files @ ..] => mutants::run(files),
        other => Err(Stop::Mistake(format!(
            "not understood: `{}`",
            other.join(" ")
        ))),
    }
}

fn ci(names: &[&str], how: How) -> Verdict {
    report::run(&choose(names).map_err(Stop::Mistake)?, how)
}

fn help() -> Verdict {
    println!("{HELP}");
    for step in STEPS {
        let star = if IN_TEST.contains(&step.name) {
            '*'
        } else {
            ' '
        };
        println!("{star} {:<10} {}", step.name, step.about);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_on_the_help_page_and_others_are_mistakes() {
        for wrong in [
            &["tests"][..],
            &["test", "fmt"],
            &["ci", "tidiness"],
            &["help", "me"],
        ] {
            assert!(
                matches!(dispatch(wrong), Err(Stop::Mistake(_))),
                "{wrong:?}"
            );
        }
        let source = include_str!("main.rs");
        let arms = source
            .lines()
            .filter_map(|line| line.trim_start().strip_prefix("[\""));
        let names: Vec<&str> = arms.filter_map(|arm| arm.split('"').next()).collect();
        assert!(names.len() > 14, "{names:?}");
        for name in names {
            assert!(HELP.contains(&format!("\n  {name} ")), "{name}");
        }
    }
}
