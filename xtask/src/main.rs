//! `cargo xtask …`: everything that CI does, one command each. A check is a row of
//! [`steps::STEPS`].

mod api;
mod book;
mod bounds;
mod builds;
mod cmd;
mod examples;
mod firmware;
mod fuzz;
mod kube;
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

Commands, which CONTRIBUTING.md explains:
  test, ci [STEP…], ci --except STEP…
  api, book, firmware [--write]
  bench [ARGUMENT…], bench --plot [PICTURE…]
  kube [SCENARIO…], replicas [COUNT], shards [--marks] [--seeds N] [--minutes M]
  deny, miri [ARGUMENT…], platforms, soak --minutes M [--seed S]
  release --dry-run [CHECK…], help

Exit code: 0 all well, 1 a step failed, 2 wrong arguments.

Steps of `ci` (a star marks those of `test`):";

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
        ["bench", "--plot", names @ ..] => {
            let line = "cargo run --release -p requeue-bench --features peers --bin pictures --";
            cmd(line).arg("--measure").args(names.to_vec()).run()
        }
        ["bench", rest @ ..] => cmd("cargo bench -p requeue-bench")
            .args(rest.to_vec())
            .run(),
        ["firmware", "--write"] => firmware::try_all(true),
        ["firmware"] => ci(&["firmware"], How::new(false, true)),
        ["kube", scenarios @ ..] => kube::real(scenarios),
        ["release", rest @ ..] => release::run(rest),
        ["replicas", rest @ ..] => servers::try_replicas(rest),
        ["shards", rest @ ..] => servers::prove_shards(rest),
        ["soak", rest @ ..] => soak::run(rest),
        ["platforms"] => builds::platforms(),
        ["miri", rest @ ..] => fuzz::miri(rest),
        ["deny"] => steps::advisories(),
        other => Err(Stop::Mistake(format!(
            "unknown command `{}`",
            other.join(" ")
        ))),
    }
}

fn ci(names: &[&str], how: How) -> Verdict {
    report::run(&choose(STEPS, names)?, how)
}

fn help() -> Verdict {
    println!("{HELP}");
    for step in STEPS {
        let star = IN_TEST.contains(&step.name).then_some('*');
        println!("{} {:<10} {}", star.unwrap_or(' '), step.name, step.about);
    }
    Ok(())
}
